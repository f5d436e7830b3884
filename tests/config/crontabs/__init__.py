"""Crontabs to import, and a shorthand for importing one."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from scheduler.config.crontab import Given
from scheduler.config.crontab_columns import Known
from scheduler.config.crontab_homes import Homes
from scheduler.config.crontab_writer import Imported, import_crontab
from scheduler.config.load import load_texts
from scheduler.core.job import Configuration

SAMPLES = Path(__file__).parent
NOW = datetime(2026, 1, 1, tzinfo=UTC)
DEBIAN = (SAMPLES / "etc" / "crontab").read_text()
USER = r"""
SHELL=/bin/bash
MAILTO="ops@example.com"
PATH = "/usr/local/bin:/usr/bin:/bin"
GREETING='hello world'

# Dump the database
# every night
15 2 * * * pg_dump db > /backup/db-$(date +\%F).sql
@reboot /opt/start.sh
CRON_TZ=America/New_York
# */5 * * * * /old/thing
0 9 13 * 5 mail -s "hi: there" me@x%Hello,%%it is "100\%"
* * * * * nohup /opt/x.py &
60 * * * * bad
0 0 * * foo
@daily
-5 5 * * * quiet
TZ=UTC
@hourly /opt/x.py # every hour
"""


def read(
    text: str,
    name: str = "crontab",
    *,
    system: bool = False,
    faithful: bool = False,
    shadow: bool = False,
    homes: Homes | None = None,
    known: Known | None = None,
) -> tuple[Imported, Configuration]:
    found = import_crontab(
        [Given(name, text, system)],
        zone="Europe/Berlin",
        now=NOW,
        faithful=faithful,
        shadow=shadow,
        homes=homes,
        known=known,
    )
    return found, load_texts({"jobs.yaml": found.yaml}, "jobs.yaml", environ={})


def left_out(found: Imported) -> dict[int, str]:
    return {one.line: one.reason for one in found.left_out}
