from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scheduler.core.model import Cause, Run, Status
from scheduler.web.habits import habits_json
from tests.faces import Faces
from tests.web.client import Client

DUE = datetime(2026, 3, 2, 8, tzinfo=UTC)


def runs(seconds: Sequence[float], late: float = 0.0, attempt: int = 1, cause: Cause = Cause.SCHEDULE) -> list[Run]:
    start = DUE + timedelta(seconds=late)
    return [
        Run(
            *(number, str(number), "a", str(number), cause, Status.COMPLETED, DUE, "default", 0, attempt),
            scheduled_for=DUE,
            started_at=start,
            finished_at=start + timedelta(seconds=length),
        )
        for number, length in enumerate(seconds)
    ]


def habits(found: list[Run], **definition: Any) -> dict[str, Any]:
    shown = habits_json(found, {"timeout": "1h", "grace": "1h", **definition})
    assert shown is not None
    return shown


def advice(found: list[Run], **definition: Any) -> dict[str, str]:
    return {one["key"]: one["value"] for one in habits(found, **definition)["advice"]}


def test_nothing_is_said_before_ten_runs() -> None:
    assert habits_json(runs([1.0] * 9), {}) is None
    assert habits(runs([1.0] * 10))["runs"] == 10


def test_shares_are_lengths_that_occurred() -> None:
    found = habits(runs([float(number) for number in range(100, 0, -1)]))
    assert (found["p50_s"], found["p95_s"], found["longest_s"]) == (50.0, 95.0, 100.0)
    found = habits(runs([float(number) for number in range(1, 11)]))
    assert (found["p50_s"], found["p95_s"], found["longest_s"]) == (5.0, 10.0, 10.0)


@pytest.mark.parametrize(
    ("seconds", "timeout", "fits"),
    [
        (3.0, "1h", None),
        (3.0, "1d", "5m"),
        (3.0, "121m", "5m"),
        (3.0, "2h", None),
        (300.0, "5m30s", "15m"),
        (300.0, "7m", None),
        (3600.0, "1h", "3h"),
        (30 * 86400.0, "30d", None),
    ],
)
def test_a_timeout_that_is_far_off(seconds: float, timeout: str, fits: str | None) -> None:
    assert advice(runs([seconds] * 10), timeout=timeout, grace="100d", heartbeat=False).get("timeout") == fits


def test_waits_between_attempts_are_no_work() -> None:
    found = [replace(run, took=2.0) for run in runs([3000.0] * 10)]
    assert habits(found)["p50_s"] == 2.0


def test_attempts_that_were_repeated_tell_nothing_of_the_timeout() -> None:
    assert advice(runs([3500.0] * 10), heartbeat=False) == {"timeout": "3h"}
    assert advice(runs([3500.0] * 10, attempt=2), heartbeat=False) == {}


def test_grace_is_compared_with_how_late_successes_come() -> None:
    assert advice(runs([3.0] * 10, late=3500)) == {"grace": "3h"}
    assert advice(runs([3.0] * 10), grace="7h") == {"grace": "5m"}
    assert advice(runs([3.0] * 10), grace="7h", heartbeat=False) == {}
    assert advice(runs([3.0] * 10, late=3500, cause=Cause.MANUAL)) == {}
    (said,) = habits(runs([3.0] * 10, late=3500))["advice"]
    assert said["why"] == "the latest of 10 successes came 58m23s after its instant"


def test_a_job_in_full_has_its_habits_and_its_last_result(acting: Client, faces: Faces) -> None:
    assert acting.get("/v1/jobs/minutely").json()["job"]["habits"] is None
    for _ in range(10):
        faces.rig.tick(minutes=1)
        faces.rig.turn(seconds=2)
        faces.rig.finish()
    job = acting.get("/v1/jobs/minutely?runs=0").json()["job"]
    assert (job["habits"]["runs"], job["habits"]["p50_s"]) == (10, 2.0)
    assert [one["key"] for one in job["habits"]["advice"]] == ["timeout"]
    assert job["last_result"] is None
    assert acting.get("/v1/jobs/ticket").json()["job"]["definition"]["retries"] == ["1m"]
    assert acting.get("/v1/jobs/quiet").json()["job"]["definition"]["retries"] == {
        "without_payload": 0,
        "with_payload": ["1m", "5m", "30m", "2h"],
    }
