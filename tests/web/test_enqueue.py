"""Asking for runs over HTTP."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.faces import Faces
from tests.web.client import Client

RUNS = "/v1/jobs/ticket/runs"


def test_the_answer_says_where_to_look_and_when_it_will_be(acting: Client, faces: Faces) -> None:
    answer = acting.post(RUNS, json={"payload": 1})
    assert answer.status_code == 202
    made = answer.json()
    assert made["status"] == "PENDING"
    assert made["status_url"] == answer.headers["location"] == f"/v1/runs/{made['run_id']}"
    assert (made["queue_position"], made["estimated_wait_s"], made["new"]) == (0, 0.0, True)
    assert acting.post(RUNS, json={"payload": 2}).json()["queue_position"] == 1
    assert acting.get(made["status_url"]).json()["payload"] == 1


def test_a_run_that_waits_for_its_lock_has_no_place(acting: Client, faces: Faces) -> None:
    faces.rig.tick(minutes=1)
    made = acting.post("/v1/jobs/minutely/runs", json={"payload": 1}).json()
    assert (made["queue_position"], made["estimated_wait_s"], made["waiting"]["kind"]) == (None, None, "lock")
    assert made["waiting"]["holder_job"] == "minutely"


def test_a_key_gives_the_same_run_and_with_another_payload_409(acting: Client) -> None:
    key = {"Idempotency-Key": "order-17"}
    first = acting.post(RUNS, json={"payload": {"a": 1}}, headers=key)
    again = acting.post(RUNS, json={"payload": {"a": 1}}, headers=key)
    other = acting.post(RUNS, json={"payload": {"a": True}}, headers=key)
    assert [one.status_code for one in (first, again, other)] == [202, 200, 409]
    assert first.json()["run_id"] == again.json()["run_id"]
    assert again.json()["new"] is False
    assert again.json()["waiting"]["kind"] == "queue"


def test_without_a_key_job_and_payload_can_be_it(acting: Client) -> None:
    body = {"payload": {"a": 1}, "fingerprint": True}
    first, again = acting.post(RUNS, json=body), acting.post(RUNS, json=body)
    assert [one.status_code for one in (first, again)] == [202, 200]
    assert acting.post(RUNS, json={"payload": {"a": 1}}).status_code == 202


def test_many_at_once(acting: Client, faces: Faces) -> None:
    runs: list[Any] = [{"payload": {"n": number}} for number in range(1000)]
    answer = acting.post(RUNS, json={"runs": runs})
    assert answer.status_code == 202
    made = answer.json()
    assert (made["accepted"], made["repeated"], made["refused"]) == (1000, 0, 0)
    assert [one["queue_position"] for one in made["runs"]] == list(range(1000))
    stored = faces.rig.runs("ticket")
    assert [run.id for run in stored] == [one["run_id"] for one in made["runs"]]
    assert faces.rig.run(stored[500].id).payload == {"n": 500}


def test_of_many_each_has_its_own_answer(acting: Client) -> None:
    runs = [
        {"payload": 1, "key": "a", "reason": "first"},
        {"payload": 1, "key": "a"},
        {"payload": 2, "key": "a"},
        {"payload": 3, "fingerprint": True},
        {"payload": 3, "fingerprint": True},
    ]
    answer = acting.post(RUNS, json={"runs": runs})
    made = answer.json()
    assert (answer.status_code, made["accepted"], made["repeated"], made["refused"]) == (202, 2, 2, 1)
    assert made["runs"][2]["error"]["status"] == 409
    assert made["runs"][0]["run_id"] == made["runs"][1]["run_id"]
    again = acting.post(RUNS, json={"runs": runs})
    assert (again.status_code, again.json()["accepted"]) == (200, 0)
    assert acting.get(made["runs"][0]["status_url"]).json()["note"] == "first"


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ({"runs": []}, "1 to 1000"),
        ({"runs": [{}] * 1001}, "1 to 1000"),
        ({"runs": {}}, "1 to 1000"),
        ({"runs": [1]}, "runs[0]"),
        ({"runs": [{}, {"paylod": 1}]}, "`runs[1]`: unknown field `paylod`"),
        ({"runs": [{}], "payload": 1}, "given for each"),
        ({"runs": [{"key": "x" * 256}]}, "at most 255"),
        ({"runs": [{"key": "a\x00"}]}, "printable ASCII"),
        ({"runs": [{"key": " a"}]}, "printable ASCII"),
        ({"runs": [{"key": "é"}]}, "printable ASCII"),
    ],
)
def test_wrong_batches_are_told(acting: Client, faces: Faces, body: Any, word: str) -> None:
    answer = acting.post(RUNS, json=body)
    assert (answer.status_code, word in answer.text) == (422, True), answer.text
    assert faces.rig.runs() == []


def test_a_batch_for_nobody_is_not_found(acting: Client) -> None:
    assert acting.post("/v1/jobs/tickt/runs", json={"runs": [{"payload": 1}]}).status_code == 404


def test_a_key_in_the_header_is_not_for_many(acting: Client) -> None:
    answer = acting.post(RUNS, json={"runs": [{"payload": 1}]}, headers={"Idempotency-Key": "a"})
    assert answer.status_code == 422


def test_everybody_gets_his_own_answer(acting: Client, faces: Faces) -> None:
    """Many at once, through the thread that commits them together."""
    faces.rig.intake.start()

    def ask(number: int) -> Any:
        return acting.post(RUNS, json={"payload": number}).json()["run_id"]

    with ThreadPoolExecutor(16) as pool:
        made = list(pool.map(ask, range(200)))
    faces.rig.intake.stop()
    assert len(set(made)) == 200
    assert [faces.rig.run(run).payload for run in made] == list(range(200))
    assert faces.rig.store.writes < 200


@pytest.mark.parametrize("many", [False, True])
def test_a_run_goes_on_the_trace_of_its_request(acting: Client, faces: Faces, many: bool) -> None:
    header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    one = {"payload": 1}
    body = {"runs": [one, one]} if many else one
    assert acting.post(RUNS, json=body, headers={"traceparent": header}).status_code == 202
    assert {run.trace for run in faces.rig.runs("ticket")} == {header}
    acting.post(RUNS, json=one, headers={"traceparent": "nonsense"})
    assert faces.rig.runs("ticket")[-1].trace is None
