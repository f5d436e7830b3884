"""docs/operations.md, moving here: the examples are what they say."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from apscheduler.triggers.cron import CronTrigger

from scheduler.config.check import check
from scheduler.config.crontab import Given
from scheduler.config.crontab_notes import FAITHFUL
from scheduler.config.crontab_writer import import_crontab
from scheduler.config.sources import Stored
from scheduler.core.schedule import DayMatch, Schedule
from tests.docs.markdown import DOCS, blocks, sections

TEXT = (DOCS / "operations.md").read_text("utf-8")
PARTS = sections(TEXT, 2)
NOW = datetime(2026, 1, 1, 12, 34, 7, tzinfo=UTC)


def test_the_crontab_becomes_what_is_shown() -> None:
    part = PARTS["Moving from cron"]
    (crontab,), (shown,) = blocks(part, "crontab"), blocks(part, "yaml")
    found = import_crontab([Given("crontab", crontab)], zone="Europe/Berlin", now=NOW)
    assert found.yaml == shown
    assert not found.lost


def test_the_table_names_what_faithful_writes() -> None:
    for key, word, _ in FAITHFUL:
        assert f"`{key}: {word}`" in PARTS["Moving from cron"]


@pytest.mark.parametrize("example", [one for name in PARTS if "Moving" in name for one in blocks(PARTS[name], "yaml")])
def test_an_example_is_good(example: str) -> None:
    report = check(Stored({"f": example}, "f"), NOW, environ={}, elsewhere=True)
    assert not report.errors, report.errors
    assert {one.code for one in report.warnings} <= {"clock-change"}


ROWS = re.findall(
    r"^\| `(CronTrigger[^`]*)` \| `([^`]*)`(?: with `day_match: (\w+)`)? \|$",
    PARTS["Moving from APScheduler"],
    re.MULTILINE,
)


def test_the_table_was_found() -> None:
    assert len(ROWS) == 8


@pytest.mark.parametrize(("theirs", "ours", "day_match"), ROWS)
def test_both_come_at_the_same_times(theirs: str, ours: str, day_match: str) -> None:
    call = theirs.removesuffix(")") + ", timezone=UTC)"
    trigger: Any = eval(call, {"CronTrigger": CronTrigger, "UTC": UTC})
    schedule = Schedule((ours,), "UTC", cast(DayMatch, day_match or "cron"), "")
    instant: datetime | None = NOW
    previous = None
    for _ in range(30):
        assert instant is not None
        instant = schedule.after(instant)
        previous = trigger.get_next_fire_time(previous, previous or NOW)
        assert previous == instant
