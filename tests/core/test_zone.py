"""Zones: what is accepted, what is refused, and with which suggestion."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC

import pytest
import tzdata

from scheduler.core.errors import ScheduleError
from scheduler.core.zone import TZDATA_VERSION, zone_names, zone_of

SUGGESTIONS = {
    "CST": "America/Chicago",
    "EST": "America/New_York",
    "CET": "Europe/Berlin",
    "IST": "Asia/Kolkata",
    "est": "America/New_York",
    "UTC+8": "Etc/GMT-8",
    "GMT+8": "Etc/GMT-8",
    "+08:00": "Etc/GMT-8",
    "UTC-5": "Etc/GMT+5",
    "-0500": "Etc/GMT+5",
    "+00:00": "UTC",
    "+05:30": "Asia/Kolkata",
    "Europe/Munich": "Europe/Berlin",
    "Europe": "Europe/",
    "": "Europe/Berlin",
    '"Europe/Berlin"': "Europe/Berlin",
    "europe/berlin": "Europe/Berlin",
    "UTC ": "UTC",
    "utc": "UTC",
    "Z": "UTC",
    "America/New York": "America/New_York",
    "New York": "America/New_York",
    "Berlin": "Europe/Berlin",
    "Bejing": "IANA",
    "Beijing": "Asia/Shanghai",
    "Asia/Shangai": "Asia/Shanghai",
    "America/Buenos_Aries": "Buenos_Aires",
    "../etc/passwd": "IANA",
    "/etc/localtime": "IANA",
    "localtime": "IANA",
    "Factory": "IANA",
    "posixrules": "IANA",
    "Europe/Berlin\0": "Europe/Berlin",
    "a" * 10_000: "IANA",
}


@pytest.mark.parametrize("name", SUGGESTIONS)
def test_refuses_with_a_suggestion(name):
    with pytest.raises(ScheduleError) as refusal:
        zone_of(name)

    assert SUGGESTIONS[name] in (refusal.value.hint or "")


def test_every_name_of_the_database_is_a_zone():
    assert all(zone_of(name) is not None for name in zone_names())
    assert {"Asia/Calcutta", "US/Eastern", "Etc/GMT-8", "GMT", "America/Argentina/Buenos_Aires"} <= zone_names()


def test_utc_is_datetime_utc():
    assert zone_of("UTC") is UTC
    assert zone_of("Etc/UTC") is UTC


def test_the_version_is_that_of_the_package():
    assert TZDATA_VERSION == tzdata.IANA_VERSION


WITHOUT_TZDATA = """
import sys
sys.modules["tzdata"] = None
from datetime import UTC, datetime
from scheduler.core.errors import ScheduleError
from scheduler.core.schedule import TZDATA_VERSION, Schedule
assert TZDATA_VERSION == "none"
assert Schedule(("0 8 * * *",), "UTC").after(datetime(2026, 3, 1, tzinfo=UTC)) == datetime(2026, 3, 1, 8, tzinfo=UTC)
try:
    Schedule(("0 8 * * *",), "Europe/Berlin")
except ScheduleError as error:
    print(error)
"""


def test_without_the_package_only_utc_works_and_the_remedy_is_named():
    """The host's own database is no substitute: it may be another version."""
    run = subprocess.run([sys.executable, "-c", WITHOUT_TZDATA], capture_output=True, text=True, check=False)

    assert run.returncode == 0, run.stderr
    assert "install tzdata" in run.stdout
