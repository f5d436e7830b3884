"""`import-crontab --external`: jobs that are expected, and the same crontab with its commands wrapped."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime

import pytest

from scheduler.config.crontab import Given, read_crontabs
from scheduler.config.crontab_columns import Known
from scheduler.config.crontab_writer import Imported, import_crontab
from scheduler.config.load import load_texts

NOW = datetime(2026, 3, 2, 8, tzinfo=UTC)


def imported(text: str, *, system: bool = False) -> Imported:
    return import_crontab([Given("tab", text, system)], zone="Europe/Berlin", now=NOW, external=True)


def lines(found: Imported) -> list[str]:
    return [line.strip() for line in found.steps if " exec " in line]


def test_jobs_are_expected_and_nothing_of_them_runs_here() -> None:
    found = imported("A=b\nMAILTO=x\n0 2 * * * backup --all\n@reboot warm\n")
    jobs = load_texts({"jobs.yaml": found.yaml}, "jobs.yaml").jobs
    assert [(name, job.external, job.schedule is None) for name, job in jobs.items()] == [
        ("backup", True, False),
        ("warm", True, True),
    ]
    assert found.left_out == []
    assert "run-now" not in found.yaml
    assert lines(found)[1] == "@reboot schedctl exec warm -- /bin/sh -c warm"


@pytest.mark.parametrize(
    "line",
    [
        "0 2 * * * backup --all",
        '*/5 * * * * cd /srv && ./run "it\'s" $(date +\\%F) | gzip > /tmp/x.gz',
        "0 0 * * 1 mail -s 'a  b' root%first%second",
        "@daily echo # no comment to cron",
    ],
)
def test_cron_runs_the_same_command(line: str) -> None:
    """Cron would read the wrapped line, and the shell it starts would run the wrapper with the text of before."""
    (wrapped,) = lines(imported(line + "\n"))
    (before,) = read_crontabs([Given("tab", line + "\n")], Known()).entries
    (after,) = read_crontabs([Given("tab", wrapped + "\n")], Known()).entries
    assert (after.schedule, after.stdin) == (before.schedule, before.stdin)
    words = shlex.split(after.command)
    assert words[:2] + words[3:6] == ["schedctl", "exec", "--", "/bin/sh", "-c"]
    assert words[6:] == [before.command]


def test_users_and_shells_stay() -> None:
    found = imported("SHELL=/bin/bash\n0 2 * * * www-data backup\n", system=True)
    assert lines(found) == ["0 2 * * * www-data schedctl exec backup -- /bin/bash -c backup"]


def test_lines_that_cannot_be_read_are_told() -> None:
    found = imported("0 2 * * * backup\n0 25 * * * broken\n")
    assert [one.line for one in found.lost] == [2]
