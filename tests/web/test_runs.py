from __future__ import annotations

import threading

import pytest

from scheduler.core.model import FailReason, Output
from scheduler.core.outcome import Failed
from scheduler.web.output import cut
from tests.engine.rig import failed
from tests.faces import JOBS, Faces
from tests.web.client import Client


def start(client: Client, job: str = "ticket") -> str:
    return str(client.post(f"/v1/jobs/{job}/runs").json()["run_id"])


def test_history_has_runs_and_skips_newest_first(acting: Client, faces: Faces) -> None:
    faces.rig.tick(minutes=1)
    faces.rig.tick(minutes=1)
    entries = acting.get("/v1/runs?job=minutely").json()["entries"]
    assert [(entry["type"], entry["status"], entry["reason"]) for entry in entries] == [
        ("skip", "SKIPPED", "overlap"),
        ("run", "RUNNING", None),
    ]
    assert entries[0]["first"] == entries[0]["last"] == "2026-03-02T08:02:00Z"
    assert acting.get("/v1/runs?job=minutely&skips=false").json()["entries"][0]["type"] == "run"
    assert [e["type"] for e in acting.get("/v1/runs?status=skipped").json()["entries"]] == ["skip"]


def test_history_is_paged(acting: Client, faces: Faces) -> None:
    made = [acting.post("/v1/jobs/ticket/runs", json={"payload": one}).json()["run_id"] for one in range(5)]
    seen: list[str] = []
    cursor = ""
    while True:
        page = acting.get(f"/v1/runs?limit=2&cursor={cursor}").json()
        seen += [entry["run_id"] for entry in page["entries"]]
        cursor = page["cursor"]
        if cursor is None:
            break
    assert seen == made[::-1]
    assert acting.get("/v1/runs?cursor=made-up").status_code == 422


def test_pages_are_pieces_of_one_list_the_last_recorded_first(acting: Client, faces: Faces) -> None:
    """What is made up for late stands where it was recorded."""
    faces.rig.reload(JOBS.replace("    command: [minutely]", "    command: [minutely]\n    catch_up: all"))
    faces.rig.tick(minutes=1)
    faces.rig.finish()
    faces.rig.turn(minutes=3)
    asked = start(acting)
    for _ in range(4):
        faces.rig.tick(seconds=2)
        faces.rig.finish()
    recorded = [run.id for run in faces.rig.runs()[::-1]]
    assert asked in recorded
    page = acting.get("/v1/runs").json()["entries"]
    assert [one["run_id"] for one in page] == recorded
    assert [one["at"] for one in page] == sorted((one["at"] for one in page), reverse=True)
    seen: list[str] = []
    cursor = ""
    while True:
        found = acting.get(f"/v1/runs?limit=2&cursor={cursor}").json()
        seen += [one["run_id"] for one in found["entries"]]
        cursor = found["cursor"]
        if cursor is None:
            break
    assert seen == recorded


def test_a_run_is_found_by_its_end_and_by_its_job(acting: Client) -> None:
    run = start(acting)
    assert acting.get(f"/v1/runs/{run[-8:]}").json()["run_id"] == run
    assert acting.get("/v1/runs/ticket").json()["run_id"] == run
    assert acting.get("/v1/runs/0000-no-such-run").status_code == 404


def test_waiting_ends_when_the_run_does(acting: Client, faces: Faces) -> None:
    run = start(acting)
    faces.rig.tick()
    answers: list[str] = []
    asked = threading.Thread(target=lambda: answers.append(acting.get(f"/v1/runs/{run}?wait=60").json()["status"]))
    asked.start()
    faces.rig.executor.finish(run)
    faces.rig.tick(seconds=1)
    asked.join(20)
    assert answers == ["COMPLETED"]


def test_waiting_ends_when_the_time_is_over(acting: Client) -> None:
    run = start(acting)
    assert acting.get(f"/v1/runs/{run}?wait=1").json()["status"] == "PENDING"


def test_output_of_a_finished_run_and_of_a_running_one(acting: Client, faces: Faces) -> None:
    run = start(acting)
    faces.rig.tick()
    faces.live[run] = b"one\n\xff\x00two\n"
    answer = acting.get(f"/v1/runs/{run}/log")
    assert answer.content == b"one\n\xff\x00two\n"
    assert answer.headers["schedctl-complete"] == "false"
    assert answer.headers["schedctl-offset"] == "10"
    assert acting.get(f"/v1/runs/{run}/log?offset=4").content == b"\xff\x00two\n"
    assert acting.get(f"/v1/runs/{run}/log?offset=999").content == b""
    faces.rig.executor.finish(run)
    faces.rig.tick(seconds=1)
    answer = acting.get(f"/v1/runs/{run}/log")
    assert answer.content == b"printed\n"
    assert answer.headers["schedctl-complete"] == "true"
    assert answer.headers["schedctl-status"] == "COMPLETED"
    assert acting.get(f"/v1/runs/{run}/log?attempt=2").status_code == 404


def test_output_of_an_earlier_attempt_is_not_taken_for_the_running_one(acting: Client, faces: Faces) -> None:
    run = start(acting)
    faces.rig.tick()
    faces.rig.executor.finish(run, Failed(FailReason.EXIT, "exit 1", exit_code=1))
    faces.rig.tick(seconds=1)
    assert acting.get(f"/v1/runs/{run}/log").headers["schedctl-attempt"] == "1"
    faces.rig.tick(minutes=2)
    answer = acting.get(f"/v1/runs/{run}/log")
    assert (answer.headers["schedctl-attempt"], answer.content) == ("2", b"")
    assert acting.get(f"/v1/runs/{run}/log?attempt=1").content == b"printed\n"


@pytest.mark.parametrize(
    ("offset", "shown", "following"),
    [
        (0, b"head\n[\xe2\x80\xa6 10 bytes left out \xe2\x80\xa6]\ntail", 18),
        (2, b"ad\n[\xe2\x80\xa6 10 bytes left out \xe2\x80\xa6]\ntail", 18),
        (9, b"\n[\xe2\x80\xa6 5 bytes left out \xe2\x80\xa6]\ntail", 18),
        (14, b"tail", 18),
        (16, b"il", 18),
        (18, b"", 18),
        (99, b"", 99),
    ],
)
def test_output_from_an_offset(offset: int, shown: bytes, following: int) -> None:
    assert cut(Output("r", 1, b"head", b"tail", 10, True), offset) == (shown, following)


def test_cancel_and_retry(acting: Client, faces: Faces) -> None:
    run = start(acting)
    answer = acting.post(f"/v1/runs/{run}/cancel", json={"reason": "wrong"})
    assert (answer.status_code, answer.json()["status"]) == (202, "CANCELED")
    assert acting.post(f"/v1/runs/{run}/cancel").status_code == 409
    again = acting.post(f"/v1/runs/{run}/retry")
    assert again.status_code == 202
    assert again.json()["retry_of"] == run
    assert acting.get(f"/v1/runs/{run}").json()["retried_by"] == [again.json()["run_id"]]


def test_who_polls_is_told_when_to_ask_again(acting: Client, faces: Faces) -> None:
    run = start(acting)
    answer = acting.get(f"/v1/runs/{run}/status")
    assert answer.json() == {"status": "PENDING", "progress": None, "message": None}
    assert answer.headers["retry-after"] == "2"
    acting.post(f"/v1/runs/{run}/cancel")
    assert "retry-after" not in acting.get(f"/v1/runs/{run}/status").headers


def test_how_long_a_run_took_is_its_work_and_is_never_negative(acting: Client, faces: Faces) -> None:
    made = acting.post("/v1/jobs/ticket/runs", json={"payload": 1}).json()
    faces.rig.tick()
    faces.rig.turn(seconds=4)
    faces.rig.finish(failed())
    faces.rig.tick(minutes=2)
    faces.rig.turn(seconds=6)
    faces.rig.finish()
    run = acting.get(made["status_url"]).json()
    assert (run["duration_s"], run["duration_exact"], run["elapsed_s"]) == (10.0, True, 130.0)
    assert [(one["duration_s"], one["duration_exact"]) for one in run["attempts"]] == [(4.0, True), (6.0, True)]
    made = acting.post("/v1/jobs/ticket/runs", json={"payload": 1}).json()
    faces.rig.tick()
    faces.rig.turn(seconds=4)
    faces.rig.clock.step(hours=-1)
    faces.rig.finish()
    run = acting.get(made["status_url"]).json()
    assert (run["duration_s"], run["elapsed_s"]) == (4.0, 0.0)


def test_how_long_a_run_took_that_nobody_saw_end_is_only_bounded(acting: Client, faces: Faces) -> None:
    made = acting.post("/v1/jobs/ticket/runs", json={"payload": 1}).json()
    faces.rig.tick()
    faces.rig.clock.turn(hours=9)
    with faces.rig.store.begin() as tx:
        tx.runs.request_cancel([made["run_id"]], "enough", faces.rig.clock.now())
    former = faces.rig.node
    faces.rig.node = "another"
    faces.rig.register()
    with faces.rig.store.begin() as tx:
        tx.nodes.declare_dead(former, 0, faces.rig.clock.now())
    faces.rig.keeper.tick(faces.rig.clock.now())
    run = acting.get(made["status_url"]).json()
    assert (run["status"], run["duration_s"], run["duration_exact"]) == ("CANCELED", 9 * 3600.0, False)
