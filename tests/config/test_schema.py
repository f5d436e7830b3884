"""The JSON Schema: in step with the models, and in agreement with the loader."""

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from scheduler.config.check import check_file
from scheduler.config.load import load_file
from scheduler.config.schema import schema, text
from scheduler.config.starter import starter
from scheduler.config.syntax import parse
from tests.config.test_broken import ACTIONS, KEYS
from tests.config.test_definition import JOBS
from tests.config.test_fuzz import FEATURES
from tests.config.texts import load

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "jobs.yaml"


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft7Validator:
    return jsonschema.Draft7Validator(json.loads(text()))


def uncommented(starting: str) -> str:
    """The starter with the jobs in its comments."""
    return re.sub(r"^  # (?=(?: |[a-z-]+:))", "  ", starting, flags=re.MULTILINE)


def test_the_committed_schema_is_the_generated_one() -> None:
    committed = ROOT / "scheduler" / "config" / "jobs.schema.json"
    assert committed.read_text("utf-8") == text(), (
        "python -m scheduler.config.schema > scheduler/config/jobs.schema.json"
    )
    assert (ROOT / "jobs.schema.json").resolve() == committed


def test_it_is_a_schema_of_draft_7() -> None:
    jsonschema.Draft7Validator.check_schema(schema())
    assert "$ref" not in text()


def objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if isinstance(value.get("properties"), dict):
            yield value
        for one in value.values():
            yield from objects(one)
    elif isinstance(value, list):
        for one in value:
            yield from objects(one)


def test_every_property_is_described_and_nothing_else_is_allowed() -> None:
    found = list(objects(schema()))
    assert len(found) > 5
    for one in found:
        assert one["additionalProperties"] is False
        for name, described in one["properties"].items():
            assert described.get("description"), name


def test_good_files_are_good_to_both(validator: jsonschema.Draft7Validator) -> None:
    jobs = "".join(f"  j{number}: {{{keys}}}\n" for number, keys in enumerate(JOBS))
    for good in (
        SAMPLE.read_text(),
        starter(),
        uncommented(starter("Asia/Tokyo")),
        FEATURES.decode(),
        "jobs:\n" + jobs,
    ):
        load(good, HOST="h")
        errors = list(validator.iter_errors(parse(good, "f").data))
        assert not errors, errors[0]


def test_most_broken_values_are_broken_to_the_schema_too(validator: jsonschema.Draft7Validator) -> None:
    """An editor shows them red; what needs more than a schema (variables, ranges of times) only the loader finds."""
    passed = [bad for bad, *_ in (*KEYS, *ACTIONS) if validator.is_valid(parse(bad, "f").data)]
    assert len(passed) < 35, passed


def test_the_starter_holds_what_it_shows() -> None:
    assert list(load(starter("Europe/Berlin")).jobs) == ["hello"]
    assert list(load(uncommented(starter())).jobs) == ["hello", "nightly-backup", "warm-cache", "after-backup"]


def test_the_sample_is_good_without_a_warning() -> None:
    report = check_file(SAMPLE, datetime(2026, 1, 1, tzinfo=UTC), environ={}, elsewhere=True)
    assert (list(report.errors), list(report.warnings)) == ([], [])
    jobs = load_file(SAMPLE).jobs
    assert not any(job.child.secrets for job in jobs.values())
    weekly = jobs["weekly-seo-report"].schedule
    assert weekly is not None
    assert (weekly.expressions, weekly.zone) == (("0 8 * * 1",), "Asia/Shanghai")
    assert weekly.after(datetime(2026, 1, 1, tzinfo=UTC)) == datetime(2026, 1, 5, 0, 0, tzinfo=UTC)


def test_the_scripts_of_the_sample_exist() -> None:
    for job in load_file(SAMPLE).jobs.values():
        command = job.action.options["command"]
        for word in command if isinstance(command, list) else ():
            assert not word.startswith("examples/") or (ROOT / word).is_file()


def test_the_report_completes_and_lists_the_pages_that_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCHED_REPORT_FILE", str(tmp_path / "report"))
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(ROOT / "examples" / "seo_report.py"), run_name="__main__")
    assert ended.value.code == 0
    lines = [json.loads(line) for line in (tmp_path / "report").read_text().splitlines()]
    result = lines[-1]["result"]
    assert (result["pages"], result["failed"], len(result["failed_pages"])) == (500, 30, 30)
    assert [line["progress"] for line in lines[:-1]] == sorted(line["progress"] for line in lines[:-1])
