"""docs/notifications.md: what it shows is what is."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta

import pytest

from scheduler.config.check import check
from scheduler.config.filling import render
from scheduler.config.load import load_texts
from scheduler.config.sources import Stored
from scheduler.core.job import Configuration
from scheduler.core.model import Cause, Run, Status
from scheduler.core.news import Place, digest, message
from scheduler.core.news_words import Facts
from scheduler.core.tiding import KINDS, Kind, Tiding
from tests.docs.markdown import DOCS, anchors, blocks, links

TEXT = (DOCS / "notifications.md").read_text("utf-8")
NOW = datetime(2026, 11, 29, 19, 47, tzinfo=UTC)
DUE = datetime(2026, 11, 29, 19, 45, tzinfo=UTC)


def configured(example: str) -> Configuration:
    return load_texts({"f": example}, "f", environ={})


@pytest.mark.parametrize("example", blocks(TEXT, "yaml"))
def test_an_example_is_good(example: str) -> None:
    report = check(Stored({"f": example}, "f"), NOW, environ={}, elsewhere=True)
    assert not report.errors, report.errors
    assert not report.warnings, report.warnings


def test_every_kind_is_told_of() -> None:
    assert tuple(re.findall(r"^\| `([a-z_]+)` \| .* \|.*\|$", TEXT, re.MULTILINE)) == KINDS


def test_the_message_shown_is_the_one_that_is_sent() -> None:
    shown = blocks(TEXT, "text")[0].splitlines()
    example = """
    jobs:
      backup:
        {schedule: "45 2 * * *", timezone: Asia/Shanghai, command: x, severity: critical,
         runbook: https://wiki.example.com/backup}
    """
    ended = DUE - timedelta(hours=1)
    run = Run(
        seq=1,
        id="01a229c2-0000-7000-8000-0000b087c81e",
        job="backup",
        key="k",
        cause=Cause.SCHEDULE,
        status=Status.FAILED,
        created_at=ended,
        queue="default",
        priority=0,
        attempt=1,
        exit_code=3,
        finished_at=ended,
        took=2.0,
    )
    facts = Facts(
        configured(example).jobs["backup"], run, "pg_dump: connection refused", ended - timedelta(minutes=1438)
    )
    told = message(Tiding(Kind.MISSED, "backup", DUE, "k"), facts, Place("https://schedules.example.com"), NOW)
    assert shown == [told.title, *told.text.splitlines()]


def test_every_name_of_a_template_is_told_and_every_template_can_be_filled_in() -> None:
    tiding = Tiding(Kind.MISSED, "backup", DUE, "k")
    for told in (message(tiding, Facts(), Place(), NOW), digest([(tiding, Facts())] * 4, [], Place(), NOW)):
        section = TEXT.partition("### A plain HTTP request")[2]
        assert [name for name in told.names if f"`{name}`" not in section] == []
        templates = [
            str(channel.options["body"])
            for example in blocks(TEXT, "yaml")
            for channel in configured(example).channels.values()
            if "body" in channel.options
        ]
        assert len(templates) == 3
        for template in templates:
            assert "MISSED" in json.dumps(json.loads(render(template, told.names)))


def test_links_lead_somewhere() -> None:
    for link in links(TEXT):
        file, _, name = link.partition("#")
        if not file.startswith("http"):
            assert name == "" or name in anchors((DOCS / (file or "notifications.md")).read_text("utf-8")), link
            assert (DOCS / (file or ".")).exists(), link
