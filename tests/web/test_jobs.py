from __future__ import annotations

from scheduler.core.model import Node
from scheduler.core.remark import Remark
from tests.engine.doubles import START
from tests.faces import Faces
from tests.web.client import Client


def test_the_list_has_every_job_with_its_state(acting: Client) -> None:
    jobs = {job["name"]: job for job in acting.get("/v1/jobs").json()["jobs"]}
    assert set(jobs) == {"report", "minutely", "ticket", "quiet"}
    assert jobs["quiet"]["state"] == "disabled"
    assert (jobs["report"]["state"], jobs["report"]["state_since"]) == ("new", "2026-03-02T08:00:00Z")
    assert jobs["report"]["schedule"] == ["15 8 * * 1"]
    assert jobs["report"]["timezone"] == "America/New_York"
    assert jobs["report"]["next_run_at"] == "2026-03-02T13:15:00Z"
    assert jobs["ticket"]["next_run_at"] is None


def test_the_list_can_be_narrowed(acting: Client) -> None:
    def names(query: str) -> list[str]:
        return [job["name"] for job in acting.get(f"/v1/jobs?{query}").json()["jobs"]]

    assert names("q=MINUTE") == ["minutely"]
    assert names("team=shop") == ["report"]
    assert names("tag=money") == ["report"]
    assert names("state=disabled") == ["quiet"]
    assert names("q=nothing") == []


def test_a_paused_job_that_runs_is_found_as_either(acting: Client, faces: Faces) -> None:
    faces.rig.tick(minutes=1)
    acting.post("/v1/jobs/minutely/pause", json={})
    assert [job["name"] for job in acting.get("/v1/jobs?state=running").json()["jobs"]] == ["minutely"]
    assert [job["name"] for job in acting.get("/v1/jobs?state=paused").json()["jobs"]] == ["minutely"]


def test_a_job_in_full(acting: Client, faces: Faces) -> None:
    faces.rig.tick(minutes=1)
    job = acting.get("/v1/jobs/minutely?next=2&runs=3").json()["job"]
    assert job["schedule_in_words"].startswith("Every minute")
    assert [one["utc"] for one in job["next"]] == ["2026-03-02T08:02:00Z", "2026-03-02T08:03:00Z"]
    assert job["next"][0]["local"] == "2026-03-02T03:02:00-05:00"
    assert [entry["status"] for entry in job["recent"]] == ["RUNNING"]
    assert job["definition"]["overlap"] == "skip"
    assert job["deadline_at"] == "2026-03-02T08:11:00Z"


def test_an_unknown_job_is_answered_with_what_is_close(acting: Client) -> None:
    answer = acting.get("/v1/jobs/minutly")
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json() == {
        "title": "not found",
        "status": 404,
        "detail": "no job is named `minutly`",
        "hint": "did you mean minutely?",
    }


def test_next_says_which_instants_will_not_run(acting: Client) -> None:
    acting.post("/v1/jobs/minutely/pause", json={"until": "2026-03-02T08:02:00Z", "reason": "move"})
    found = acting.get("/v1/next?job=minutely&count=3").json()["next"]
    assert [(one["utc"][11:16], one["excused"]) for one in found] == [
        ("08:01", "paused: move (ana)"),
        ("08:02", None),
        ("08:03", None),
    ]


def test_next_of_all_jobs_is_by_time_and_without_disabled_ones(acting: Client) -> None:
    found = acting.get("/v1/next?count=3&from=2026-03-02T13:14:00Z").json()["next"]
    assert [(one["job"], one["utc"][11:16]) for one in found] == [
        ("minutely", "13:15"),
        ("report", "13:15"),
        ("minutely", "13:16"),
    ]


def test_a_run_is_accepted_with_its_place(acting: Client, faces: Faces) -> None:
    answer = acting.post("/v1/jobs/ticket/runs", json={"payload": {"order": 17}, "reason": "by hand"})
    assert answer.status_code == 202
    made = answer.json()
    assert made["status"] == "PENDING"
    assert made["status_url"] == answer.headers["location"] == f"/v1/runs/{made['run_id']}"
    assert made["queue_position"] == 0
    run = acting.get(made["status_url"]).json()
    assert run["payload"] == {"order": 17}
    assert run["note"] == "by hand"
    assert run["cause"] == "api"
    assert run["author"] == "ana"


def test_an_idempotency_key_makes_one_run(acting: Client) -> None:
    headers = {"Idempotency-Key": "k1"}
    first = acting.post("/v1/jobs/ticket/runs", json={"payload": 1}, headers=headers)
    second = acting.post("/v1/jobs/ticket/runs", json={"payload": 1}, headers=headers)
    assert (first.status_code, second.status_code) == (202, 200)
    assert first.json()["run_id"] == second.json()["run_id"]
    other = acting.post("/v1/jobs/ticket/runs", json={"payload": 2}, headers=headers)
    assert other.status_code == 409


def test_a_busy_job_refuses_and_names_the_run(acting: Client, faces: Faces) -> None:
    faces.rig.tick(minutes=1)
    (running,) = faces.rig.runs("minutely")
    answer = acting.post("/v1/jobs/minutely/runs")
    assert answer.status_code == 409
    assert running.id[-8:] in answer.json()["detail"]
    queued = acting.post("/v1/jobs/minutely/runs", json={"if_busy": "queue"})
    assert queued.status_code == 202
    assert queued.json()["waiting"]["kind"] == "lock"


def test_a_falsy_payload_is_a_payload(acting: Client) -> None:
    made = acting.post("/v1/jobs/ticket/runs", json={"payload": False}).json()
    run = acting.get(made["status_url"]).json()
    assert run["has_payload"] is True
    assert run["payload"] is False


def test_a_run_that_nobody_will_start_says_so(acting: Client, faces: Faces) -> None:
    assert acting.post("/v1/jobs/ticket/runs", json={"payload": 1}).json()["holdup"] is None
    faces.holdup = "this node is leaving"
    assert acting.post("/v1/jobs/ticket/runs", json={"payload": 2}).json()["holdup"] == "this node is leaving"
    with faces.rig.store.begin() as tx:
        tx.nodes.register(Node("other", "h", 1, "0", START, None, 4, ("special",)), START)
    assert acting.post("/v1/jobs/ticket/runs", json={"payload": 3}).json()["holdup"] == "this node is leaving"
    with faces.rig.store.begin() as tx:
        tx.nodes.register(Node("another", "h", 1, "0", START, None, 4), START)
    assert acting.post("/v1/jobs/ticket/runs", json={"payload": 4}).json()["holdup"] is None


def test_a_problem_of_the_daemon_has_the_keys_of_every_other(acting: Client, faces: Faces) -> None:
    faces.said.append(Remark("disk", "the disk is full", START, "df -h /"))
    acting.post("/v1/jobs/ticket/runs", json={"payload": 1})
    faces.rig.clock.turn(minutes=6)
    problems = acting.get("/v1/status").json()["problems"]
    assert len(problems) == 2
    assert len({tuple(sorted(problem)) for problem in problems}) == 1
