"""docs/compensation.md: every compensator has its section with a file that is good, and every option is told."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from compensators import registry
from scheduler.config.check import check
from scheduler.config.sources import Stored
from tests.docs.markdown import DOCS, blocks, links, sections

TEXT = (DOCS / "compensation.md").read_text("utf-8")
SECTIONS = {name.strip("`"): body for name, body in sections(TEXT, 3).items() if name.startswith("`")}
WHOLE = [one for one in blocks(TEXT, "yaml") if "sources:" in one]


def test_every_compensator_has_its_section() -> None:
    assert set(SECTIONS) == set(registry.files())


@pytest.mark.parametrize("kind", sorted(registry.files()))
def test_every_option_is_told_and_there_are_no_others(kind: str) -> None:
    rows = re.findall(r"^\| (`.*?) \|", SECTIONS[kind], re.MULTILINE)
    told = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert told == {one.name for one in registry.options(kind)}


@pytest.mark.parametrize("text", WHOLE)
def test_every_file_is_good(text: str) -> None:
    secrets = dict.fromkeys(re.findall(r"env: (\w+)", text), "set")
    report = check(Stored({"f": text}, "f"), datetime(2026, 1, 1, tzinfo=UTC), environ=secrets)
    assert not report.errors, report.errors
    assert not report.warnings, report.warnings


@pytest.mark.parametrize("link", sorted(set(links(TEXT))))
def test_links_lead_somewhere(link: str) -> None:
    if not link.startswith(("http", "#")):
        assert (DOCS / link.partition("#")[0]).exists()
