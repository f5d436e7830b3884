from __future__ import annotations

import json
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from scheduler.core.errors import Unavailable
from scheduler.core.last_line import last_line
from scheduler.core.model import Node, Output, Status
from scheduler.core.remark import Remark
from scheduler.web.answers import Answer
from tests.engine.doubles import START
from tests.engine.rig import canceled, failed
from tests.faces import JOBS, Faces
from tests.web.client import Client, client_of


@pytest.mark.parametrize(
    ("head", "tail", "line"),
    [
        (b"", b"", None),
        (b"one\ntwo\n", b"", "two"),
        (b"one\n\n  \n", b"", "one"),
        (b"one", b"last\n", "last"),
        (b"\xff\xfe broken\n", b"", "\ufffd\ufffd broken"),
        (b"\x1b[31mred\x1b[0m\n", b"", "[31mred [0m"),
        (b"a" * 10_000, b"", "a" * 300),
        (b"dos\r\n", b"", "dos"),
        (b"cause: disk on fire\n[schedulerd] left 2 processes, ended\n", b"", "cause: disk on fire"),
        (b"[schedulerd] could not start\n[schedulerd] oh\n\n", b"", "[schedulerd] oh"),
    ],
)
def test_the_last_line_that_says_something(head: bytes, tail: bytes, line: str | None) -> None:
    assert last_line(Output("r", 1, head, tail, 0, True)) == line


def test_no_output_has_no_last_line() -> None:
    assert last_line(None) is None


def test_an_answer_carries_any_text() -> None:
    for text in ("日本", "\ud800", "\x00", "a" * 100_000):
        assert json.loads(bytes(Answer({"text": text}).body)) == {"text": text}


def test_a_disabled_job_is_nothing_to_worry_about(acting: Client, faces: Faces) -> None:
    faces.rig.clock.turn(days=2)
    faces.rig.tick()
    kinds = {one["job"]: one["kind"] for one in acting.get("/v1/status").json()["problems"]}
    assert "quiet" not in kinds


def test_a_job_that_could_not_be_planned_raises_its_alarm(acting: Client, faces: Faces) -> None:
    with faces.rig.store.begin() as tx:
        tx.jobs.set_alarm("report", "planning failed: oops", enabled=False)
    (problem,) = acting.get("/v1/status").json()["problems"]
    assert (problem["kind"], problem["what"]) == ("alarm", "planning failed: oops")
    assert problem["command"] == "schedctl describe report"


def test_a_late_job_is_told_from_a_missed_one(acting: Client, faces: Faces) -> None:
    faces.rig.tick(minutes=1)
    faces.rig.clock.turn(minutes=12)
    (problem,) = acting.get("/v1/status").json()["problems"]
    assert (problem["kind"], problem["what"]) == ("late", "no success by its deadline; still running")


def test_a_failure_is_told_by_the_run_that_failed(acting: Client, faces: Faces) -> None:
    rig = faces.rig
    rig.tick(minutes=1)
    (bad,) = rig.runs("minutely")
    rig.executor.finish_all(failed())
    rig.tick(seconds=1)

    def told() -> list[str]:
        (problem,) = acting.get("/v1/status").json()["problems"]
        return [problem[key] for key in ("what", "run_id", "error", "last_line", "command")]

    first = told()
    assert first[1:4] == [bad.id, "exit 1", "printed"]
    assert first[4] == f"schedctl logs {bad.id[-8:]}"
    rig.tick(minutes=1)
    assert [run.status for run in rig.runs("minutely")][-1] is Status.RUNNING
    assert told() == first, "also while the job runs again"
    rig.desk.cancel(rig.runs("minutely")[-1].id, author="ana")
    rig.tick(seconds=1)
    rig.executor.finish_all(canceled())
    rig.tick(seconds=1)
    assert rig.runs("minutely")[-1].status is Status.CANCELED
    assert told() == first, "also after a run that somebody canceled"
    rig.tick(minutes=1)
    rig.executor.finish_all()
    rig.tick(seconds=1)
    assert acting.get("/v1/status").json()["problems"] == []


def test_what_a_removed_job_left_undone_stays_in_sight(acting: Client, faces: Faces) -> None:
    acting.post("/v1/jobs/ticket/runs", json={"payload": 1})
    faces.rig.reload(JOBS.replace("  ticket:", "  tickets:"), drop_pending=True)
    status = acting.get("/v1/status").json()
    assert status["dead_letters"] == 1
    assert [(one["job"], one["what"]) for one in status["problems"]] == [
        ("ticket", "1 dead letter: runs with a payload that gave up")
    ]


def test_a_run_that_waits_long_in_its_queue(acting: Client, faces: Faces) -> None:
    acting.post("/v1/jobs/ticket/runs", json={"payload": 1})
    faces.rig.clock.turn(minutes=6)
    problems = acting.get("/v1/status").json()["problems"]
    assert [one["what"] for one in problems if one["kind"] == "queue"] == [
        "queue default: 1 ready, none of them started for long"
    ]


def test_a_database_that_is_away_is_an_answer(faces: Faces) -> None:
    def away() -> Any:
        raise Unavailable("database pg: connection refused", hint="start it")

    known = set(faces_status(faces))
    found = faces_status(faces, readable=SimpleNamespace(queries=away))
    assert set(found) == known
    (problem,) = found["problems"]
    assert (problem["about"], problem["what"]) == ("database", "database pg: connection refused; start it")
    assert problem["since"] is not None
    assert problem["command"] == "schedctl db status"
    assert not found["ok"]
    assert [found[name] for name in ("jobs", "running", "states", "nodes", "next_run_at")] == [None] * 5
    faces.said.append(Remark("database", "connection refused (keeper waits)", START, "schedctl db status"))
    found = faces_status(faces, readable=SimpleNamespace(queries=away))
    assert [one["what"] for one in found["problems"]] == ["connection refused (keeper waits)"]


def test_a_database_that_tells_no_time_is_an_answer_too(faces: Faces) -> None:
    def away() -> datetime:
        raise Unavailable("database pg: connection refused")

    assert [one["about"] for one in faces_status(faces, now=away)["problems"]] == ["database"]


def faces_status(faces: Faces, **changes: Any) -> Any:
    with client_of(faces.with_backend(**changes)) as client:
        answer = client.get("/v1/status")
        assert answer.status_code == 200, answer.text
        return answer.json()


def test_what_runs_of_a_removed_job_is_counted(acting: Client, faces: Faces) -> None:
    faces.rig.tick(minutes=1)
    assert acting.get("/v1/status").json()["running"] == 1
    faces.rig.reload(JOBS.replace("  minutely:", "  hourly:"), drop_pending=True)
    assert acting.get("/v1/status").json()["running"] == 1


def test_there_is_no_next_run_of_what_rests(acting: Client, faces: Faces) -> None:
    def next_run() -> Any:
        return acting.get("/v1/status").json()["next_run_at"]

    rig = faces.rig
    rig.tick(seconds=1)
    minute = next_run()
    rig.desk.pause(["minutely"], until=None, reason="", author="ana")
    assert next_run() > minute
    rig.desk.pause(["report"], until=None, reason="", author="ana")
    assert next_run() is None
    rig.desk.resume(["minutely"], author="ana")
    rig.desk.pause(["minutely"], until=rig.store.now() + timedelta(seconds=5), reason="", author="ana")
    assert next_run() == minute, "its pause is over by then"
    faces.holdup = "this node is leaving"
    assert next_run() is None
    with rig.store.begin() as tx:
        tx.nodes.register(Node("another", "h", 1, "0", START, None, 4), START)
    assert next_run() == minute, "the other one runs it"
