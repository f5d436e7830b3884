from __future__ import annotations

import pytest

from tests.faces import JOBS, Faces
from tests.web.client import Client


def test_pause_and_resume(acting: Client) -> None:
    paused = acting.post("/v1/jobs/report/pause", json={"until": "2026-03-03T00:00:00+01:00", "reason": "move"})
    assert paused.json()["pauses"] == [
        {
            "job": "report",
            "from": "2026-03-02T08:00:00Z",
            "until": "2026-03-02T23:00:00Z",
            "reason": "move",
            "author": "ana",
        }
    ]
    assert acting.get("/v1/jobs/report").json()["job"]["state"] == "paused"
    assert acting.post("/v1/jobs/report/resume").json() == {"resumed": ["report"]}
    assert acting.post("/v1/jobs/report/resume").json() == {"resumed": []}


def test_several_jobs_are_paused_or_none(acting: Client) -> None:
    assert acting.post("/v1/pause", json={"jobs": ["report", "nope"]}).status_code == 404
    assert acting.get("/v1/jobs?state=paused").json()["jobs"] == []
    assert len(acting.post("/v1/pause", json={"jobs": ["report", "ticket"]}).json()["pauses"]) == 2
    assert acting.post("/v1/resume", json={"jobs": ["report", "ticket"]}).json()["resumed"] == ["report", "ticket"]


def test_a_pause_that_is_over_already_is_refused(acting: Client) -> None:
    answer = acting.post("/v1/jobs/report/pause", json={"until": "2026-03-01T00:00:00Z"})
    assert answer.status_code == 422


def test_reload_says_what_it_would_do_and_does_it(acting: Client, faces: Faces) -> None:
    faces.rig.text = JOBS.replace("  minutely:", "  hourly:").replace('"* * * * *"', '"0 * * * *"')
    would = acting.post("/v1/reload", json={"dry_run": True}).json()
    assert (would["applied"], would["added"], would["removed"]) == (False, ["hourly"], ["minutely"])
    assert "minutely" in [job["name"] for job in acting.get("/v1/jobs").json()["jobs"]]
    assert acting.post("/v1/reload", json={"if_hash": "abc"}).status_code == 409
    did = acting.post("/v1/reload", json={"if_hash": would["hash"][:12]}).json()
    assert did["applied"] is True
    assert did["hash"] == would["hash"]
    assert "hourly" in [job["name"] for job in acting.get("/v1/jobs").json()["jobs"]]


def test_a_bad_file_changes_nothing_and_is_told_with_its_lines(acting: Client, faces: Faces) -> None:
    faces.rig.text = JOBS.replace("15 8 * * 1", "15 8 * * 9")
    answer = acting.post("/v1/reload")
    assert answer.status_code == 422
    assert "jobs.yaml:8" in answer.json()["detail"]
    assert acting.get("/v1/jobs/report").json()["job"]["schedule"] == ["15 8 * * 1"]


def test_audit(acting: Client, faces: Faces) -> None:
    for _ in range(5):
        faces.rig.tick(minutes=1)
        faces.rig.executor.finish_all()
        faces.rig.tick(seconds=1)
    faces.rig.tick(minutes=2)
    report = acting.get("/v1/audit?job=minutely").json()
    assert report["clean"] is True
    (balance,) = report["jobs"]
    assert balance["expected"] == balance["ran"] + sum(balance["skipped"].values()) >= 5
    assert acting.get("/v1/audit?job=nope").status_code == 404


def test_the_author_of_a_reload_is_noted(acting: Client, faces: Faces) -> None:
    faces.rig.text = JOBS.replace("15 8", "16 8")
    acting.post("/v1/reload")
    assert acting.get("/v1/generations").json()["generations"][0]["author"] == "ana"


@pytest.mark.parametrize("path", ["/v1/nodes", "/v1/queues", "/v1/database", "/v1/dead-letters", "/v1/effective"])
def test_what_there_is_can_be_read(acting: Client, path: str) -> None:
    answer = acting.get(path)
    assert answer.status_code == 200
    assert answer.json()


def test_the_texts_in_force_are_for_those_who_may_act(acting: Client, reading: Client) -> None:
    assert acting.get("/v1/configuration").json()["files"]["jobs.yaml"] == JOBS
    assert reading.get("/v1/configuration").status_code == 401
    assert reading.get("/v1/effective?job=report").status_code == 401


def test_effective_values_name_their_lines(acting: Client) -> None:
    values = {one["key"]: one["where"] for one in acting.get("/v1/effective?job=report").json()["values"]}
    assert values["schedule"] == "jobs.yaml:8"
    assert values["timezone"] == "jobs.yaml:3"
    assert values["overlap"] == "(default)"
