"""docs/jobs-yaml.md: every key has its section, every section its key, and every example is good."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from textwrap import indent
from typing import Any

import pytest

from scheduler.config.bundle import TOP
from scheduler.config.check import check
from scheduler.config.codes import CODES
from scheduler.config.load import load_texts
from scheduler.config.schema import schema
from scheduler.config.sources import Stored
from scheduler.config.syntax import parse
from tests.docs.markdown import DOCS, anchors, blocks, links, sections

TEXT = (DOCS / "jobs-yaml.md").read_text("utf-8")
SECTIONS = {name.strip("`"): body for name, body in sections(TEXT, 3).items()}
ENVIRON = {"API_HOST": "api.example.com"}
WARNINGS = {"clock-change"}
"""Of examples that nobody should have to dress up."""


def keys() -> set[str]:
    """Every key of the schema, dotted: those of a job as they are, all others below theirs."""
    found: dict[str, Any] = schema()["properties"]
    top = set(found)
    job = found["jobs"]["additionalProperties"]["properties"]
    queue = next(_mappings(found["queues"]["additionalProperties"]))
    source = found["sources"]["additionalProperties"]["properties"]
    channel = found["notify"]["additionalProperties"]["properties"]
    channels = set(_below("notify.", channel))
    return (
        top | channels | set(_below("", job)) | {f"queues.{name}" for name in queue} | set(_below("sources.", source))
    )


def _below(prefix: str, properties: dict[str, Any]) -> Iterator[str]:
    for name, described in properties.items():
        yield f"{prefix}{name}"
        for inner in _mappings(described):
            # What a secret looks like is told once.
            if set(inner) != {"env", "file", "prefix"} or (prefix, name) == ("", "secrets"):
                yield from _below(f"{prefix}{name}.", inner)


def _mappings(described: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The properties of every mapping that may stand there."""
    if "properties" in described:
        yield described["properties"]
    for inner in (described.get("items"), described.get("additionalProperties"), *described.get("anyOf", ())):
        if isinstance(inner, dict):
            yield from _mappings(inner)


def test_every_key_has_a_section_and_every_section_a_key() -> None:
    assert set(SECTIONS) == keys()


@pytest.mark.parametrize("key", SECTIONS)
def test_a_section_begins_with_type_and_default(key: str) -> None:
    first = SECTIONS[key].strip().splitlines()[0]
    actions = ("command", "http", "call", "compensate")
    assert first.startswith("**Type** ")
    assert "**Default** " in first or "required" in first or key in actions


DEFINITION = load_texts({"f": "jobs: {a: {command: x}}"}, "f").jobs["a"].definition
IN_WORDS = ("command", "overlap", "retries", "payload_retries")


@pytest.mark.parametrize("key", sorted(DEFINITION.keys() - set(IN_WORDS)))
def test_a_default_is_what_a_job_has_without_it(key: str) -> None:
    value = DEFINITION[key]
    told = SECTIONS[key].strip().splitlines()[0].partition("**Default** ")[2]
    if value in ("", [], {}):
        assert told.startswith("none")
    else:
        assert f"`{value if isinstance(value, str) else json.dumps(value)}`" in told


def test_every_code_of_a_warning_is_listed() -> None:
    assert re.findall(r"^\| `([a-z-]+)` \| (.+) \|$", TEXT, re.MULTILINE) == list(CODES.items())


@pytest.mark.parametrize("example", blocks(TEXT, "yaml"))
def test_an_example_is_good(example: str) -> None:
    """A whole file, or keys of one job."""
    written = set(parse(example, "f").data)
    if not written & TOP:
        more = "" if written & {"command", "http", "call"} else "command: 'true'\n"
        more += "timezone: UTC\n" if "blackouts" in written else ""
        example = "jobs:\n  example:\n" + indent(example + more, "    ")
    elif "jobs" not in written:
        example += "jobs: {}\n"
    now = datetime(2026, 1, 1, tzinfo=UTC)
    report = check(Stored({"f": example}, "f"), now, environ=ENVIRON, elsewhere=True)
    assert not report.errors, report.errors
    assert not [one for one in report.warnings if one.code not in WARNINGS], report.warnings


def test_links_lead_to_headings() -> None:
    assert {link for link in links(TEXT) if link.startswith("#")} <= {f"#{name}" for name in anchors(TEXT)}
