"""What people read on a phone at 3 a.m."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scheduler.config.load import load_texts
from scheduler.core.job import Job
from scheduler.core.model import Cause, Run, Status
from scheduler.core.news import Place, digest, message, trial
from scheduler.core.news_words import Facts
from scheduler.core.result_words import details, headline
from scheduler.core.tiding import Kind, Tiding

NOW = datetime(2026, 11, 30, 3, 0, tzinfo=UTC)
DUE = datetime(2026, 11, 30, 2, 45, tzinfo=UTC)
HOUR = timedelta(hours=1)
PLACE = Place("https://sched.example.com/", "production")
JOB = """
jobs:
  backup:
    schedule: "45 3 * * *"
    timezone: Europe/Berlin
    command: "x"
    description: |
      The nightly backup.
      More words.
    severity: critical
    runbook: https://wiki/backup
"""


def job() -> Job:
    return load_texts({"jobs.yaml": JOB}, "jobs.yaml", environ={}).jobs["backup"]


def run(status: Status = Status.FAILED, **changes: Any) -> Run:
    fields: dict[str, Any] = {
        "seq": 1,
        "id": "01a229c2-0000-7000-8000-0000b087c81e",
        "job": "backup",
        "key": "k",
        "cause": Cause.SCHEDULE,
        "status": status,
        "created_at": DUE,
        "queue": "default",
        "priority": 0,
        "attempt": 1,
        "exit_code": 3,
        "reason": "exit",
        "error": "exit code 3",
        "finished_at": DUE,
        "took": 2.04,
    }
    return Run(**{**fields, **changes})


def tiding(kind: Kind, **changes: Any) -> Tiding:
    return Tiding(**{"kind": kind, "job": "backup", "since": DUE, "key": "k", **changes})


def test_a_miss_says_what_since_when_why_and_what_to_type() -> None:
    facts = Facts(job(), run(), "pg_dump: connection refused", DUE - 24 * HOUR, 2)
    told = message(tiding(Kind.MISSED), facts, PLACE, NOW)
    assert told.title == "✗ backup: MISSED (critical, production)"
    assert told.text.splitlines() == [
        "No success by its deadline, Mon 2026-11-30 03:45 Europe/Berlin (15m ago).",
        "Last success: Sun 2026-11-29 03:45 Europe/Berlin (1d ago).",
        "Run b087c81e failed (exit 3) after 2s, Mon 2026-11-30 03:45 Europe/Berlin (15m ago).",
        "Last line: pg_dump: connection refused",
        "What it is: The nightly backup.",
        "Runbook: https://wiki/backup",
        "Type: schedctl logs b087c81e",
        "Link: https://sched.example.com/v1/jobs/backup",
    ]


def test_a_miss_of_a_job_that_has_never_run_or_is_still_at_it() -> None:
    never = message(tiding(Kind.MISSED), Facts(job()), Place(), NOW).text
    assert "It has never succeeded." in never
    assert never.endswith("Type: schedctl describe backup")
    running = Facts(job(), run(Status.RUNNING, finished_at=None, exit_code=None, error=None, reason=None))
    assert "Run b087c81e is still on its way." in message(tiding(Kind.MISSED), running, Place(), NOW).text


def test_failures_are_counted() -> None:
    once, thrice = Facts(job(), run(), failures=1), Facts(job(), run(), failures=3)
    assert message(tiding(Kind.FAILING), once, Place(), NOW).title == "✗ backup: FAILED (critical)"
    assert message(tiding(Kind.FAILING), thrice, Place(), NOW).title == "✗ backup: FAILED 3 times in a row (critical)"


def test_a_recovery_says_how_long_it_was() -> None:
    detail = {"state": "missed", "was_since": (DUE - 3 * HOUR).isoformat()}
    told = message(tiding(Kind.RECOVERED, detail=detail), Facts(job(), last_line="x"), PLACE, NOW)
    assert told.title == "✓ backup: well again after 3h (production)"
    assert "It had missed its deadline for 3h, since Mon 2026-11-30 00:45 Europe/Berlin (3h15m ago)." in told.text
    assert "Last line" not in told.text


def test_a_completion_has_the_result() -> None:
    result = {"failed": 30, "total": 500, "what": "pages", "pages": [f"/p/{number}" for number in range(30)]}
    ended = run(Status.COMPLETED, result=result, exit_code=0, reason=None, error=None)
    told = message(tiding(Kind.COMPLETED, run=ended.id), Facts(job(), ended), PLACE, NOW)
    assert told.title == "✓ backup: completed, 30 of 500 pages failed (production)"
    lines = told.text.splitlines()
    assert lines[:3] == ["At Mon 2026-11-30 03:45 Europe/Berlin (15m ago), took 2s.", "pages (30):", "- /p/0"]
    assert "… and 11 more" in lines
    assert lines[-1] == f"Link: https://sched.example.com/v1/runs/{ended.id}"
    assert told.names["result"] == result


def test_a_completion_without_a_result_says_its_last_message_or_nothing() -> None:
    ended = run(Status.COMPLETED, message="all shipped", result=None)
    said = message(tiding(Kind.COMPLETED), Facts(job(), ended), Place(), NOW).title
    assert said == "✓ backup: completed, all shipped"
    assert message(tiding(Kind.COMPLETED), Facts(), Place(), NOW).title == "✓ backup: completed"


def test_a_scan_that_is_overdue_says_up_to_when_events_are_complete() -> None:
    detail = {"watermark": (DUE - HOUR).isoformat()}
    told = message(tiding(Kind.SCAN_OVERDUE, detail=detail), Facts(job()), Place(), NOW)
    assert told.title == "✗ backup: SCAN OVERDUE (critical)"
    assert "Events are complete up to Mon 2026-11-30 02:45 Europe/Berlin (1h15m ago)." in told.text
    assert "Type: schedctl scans backup" in told.text


def test_a_dead_letter_says_what_to_decide() -> None:
    told = message(tiding(Kind.DEAD_LETTER, run=run().id), Facts(job(), run(attempt=5)), Place(), NOW)
    assert told.title == "✗ backup: DEAD LETTER (critical)"
    assert "5 attempts" in told.text
    assert "Type: schedctl dead-letters retry b087c81e   (or: discard b087c81e)" in told.text


def test_a_trial_says_that_it_is_one() -> None:
    told = trial("ops", PLACE, NOW)
    assert told.title == "✓ ops: a test (production)"
    assert "If you read this, it works." in told.text


def test_a_digest_counts_all_and_lists_some() -> None:
    told = [(replace(tiding(Kind.MISSED), job=f"job-{number}"), Facts(last_line="boom")) for number in range(20)]
    more = [replace(tiding(Kind.FAILING), job=f"more-{number}") for number in range(980)]
    found = digest(told, more, PLACE, NOW)
    assert found.title == "✗ 1000 jobs: 20 missed, 980 failing (production)"
    lines = found.text.splitlines()
    assert lines[0] == "✗ job-0: MISSED, Mon 2026-11-30 02:45 UTC (15m ago) - boom"
    assert lines[20] == "… and 980 more"
    assert lines[21] == "Type: schedctl notify list --limit 1000"
    assert (found.names["count"], len(found.names["items"]), found.names["kind"]) == (1000, 20, "digest")


def test_a_digest_about_one_job_names_it() -> None:
    found = digest([(tiding(Kind.DEAD_LETTER), Facts())] * 5, [], Place(), NOW)
    assert found.title == "✗ backup: 5 dead letters"


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (None, ""),
        ({"summary": " 3 new\nrows "}, "3 new rows"),
        ({"failed": 0, "total": 7, "what": "files"}, "all 7 files succeeded"),
        ({"failed": 2, "total": 7}, "2 of 7 failed"),
        ({"failed": True, "total": 7}, ""),
        ({"rows": 3}, ""),
        ("done", "done"),
        (42, "42"),
        (["a"], ""),
    ],
)
def test_the_headline_of_a_result(result: Any, said: str) -> None:
    assert headline(result) == said


def test_the_details_of_a_result_are_lines_without_control_characters() -> None:
    result = {"summary": "x", "rows": 3, "bad": [{"page": 1, "why": "404\x1b[0m"}, "b"], "empty": [], "note": ""}
    assert details(result) == ["rows: 3", "bad (2):", "- page 1, why 404 [0m", "- b"]
    assert details(["a", 1]) == ["- a", "- 1"]
    assert details("text") == []
