from __future__ import annotations

import asyncio
from typing import cast

import pytest

from scheduler.core.model import FailReason
from scheduler.core.outcome import Failed
from scheduler.web.backend import Backend
from scheduler.web.rates import Lines
from tests.faces import Faces
from tests.web.client import Client

TEXT = """
version: 1
defaults: {timezone: UTC}
queues:
  api: {rate: 1200/m, burst: 1}
  slow: {rate: 1/m, burst: 1}
jobs:
  hourly: {schedule: "0 * * * *", command: [x], grace: 10m, catch_up: none}
  ticket: {command: [x]}
"""


@pytest.fixture
def faces(store: object) -> Faces:
    return Faces(store, TEXT)


def test_a_miss_is_acknowledged(acting: Client, faces: Faces) -> None:
    faces.rig.tick(hours=1)
    faces.rig.finish(Failed(FailReason.EXIT, "exit 1", exit_code=1))
    faces.rig.tick(minutes=20)
    assert acting.get("/v1/jobs/hourly").json()["job"]["state"] == "missed"
    answer = acting.post("/v1/jobs/hourly/ack", json={"reason": "moving"})
    assert answer.status_code == 200
    assert answer.json() == {
        "job": "hourly",
        "from": "2026-03-02T09:00:00Z",
        "until": "2026-03-02T09:20:00Z",
        "reason": "moving",
        "author": "ana",
        "deadline_at": "2026-03-02T10:10:00Z",
    }
    assert acting.get("/v1/jobs/hourly").json()["job"]["state"] == "failing"
    assert acting.post("/v1/jobs/hourly/ack").status_code == 409


def test_instants_are_run_after_all(acting: Client, faces: Faces) -> None:
    faces.rig.tick(hours=3, minutes=5)
    body = {"from": "2026-03-02T09:00:00Z", "until": "2026-03-02T10:00:00Z", "reason": "outage"}
    would = acting.post("/v1/jobs/hourly/backfill", json={**body, "dry_run": True})
    assert (would.status_code, would.json()["dry_run"]) == (200, True)
    assert [one["run_id"] for one in would.json()["runs"]] == [None, None]
    did = acting.post("/v1/jobs/hourly/backfill", json=body)
    assert did.status_code == 202
    runs = did.json()["runs"]
    assert [one["scheduled_for"] for one in runs] == ["2026-03-02T09:00:00Z", "2026-03-02T10:00:00Z"]
    assert [run.id for run in faces.rig.runs("hourly")] == [one["run_id"] for one in runs]
    again = acting.post("/v1/jobs/hourly/backfill", json={"from": body["from"], "max": 1})
    assert [one["why"] for one in again.json()["left_out"]] == ["unfinished", "unfinished"]
    assert acting.post("/v1/jobs/hourly/backfill", json={"from": "2026-03-02T08:01:00Z", "max": 0}).status_code == 422
    assert acting.post("/v1/jobs/hourly/backfill", json={"from": 1}).status_code == 422


def fail_letters(acting: Client, faces: Faces, count: int) -> list[str]:
    made = [acting.post("/v1/jobs/ticket/runs", json={"payload": one}).json()["run_id"] for one in range(count)]
    faces.rig.tick()
    faces.rig.finish(Failed(FailReason.EXIT, "exit 1", exit_code=1, retryable=False))
    return made


def test_letters_are_tried_again(acting: Client, faces: Faces) -> None:
    made = fail_letters(acting, faces, 3)
    one = acting.post("/v1/dead-letters/retry", json={"runs": [made[0], "nonsense"], "reason": "fixed"}).json()
    assert [(line["retry_of"], line["run_id"] is None) for line in one["retried"]] == [
        (made[0], False),
        ("nonsense", True),
    ]
    assert one["retried"][1]["error"]["status"] == 404
    rest = acting.post("/v1/dead-letters/retry", json={"job": "ticket"}).json()["retried"]
    assert [line["retry_of"] for line in rest] == made[1:]
    assert acting.get("/v1/dead-letters").json()["entries"] == []


def test_many_letters_share_transactions(acting: Client, faces: Faces) -> None:
    fail_letters(acting, faces, 30)
    before = faces.rig.store.writes
    assert len(acting.post("/v1/dead-letters/retry", json={"job": "ticket"}).json()["retried"]) == 30
    assert faces.rig.store.writes == before + 1


def test_letters_are_let_go(acting: Client, faces: Faces) -> None:
    made = fail_letters(acting, faces, 3)
    assert acting.post("/v1/dead-letters/discard", json={"runs": [made[1]]}).json() == {"discarded": [made[1]]}
    assert acting.post("/v1/dead-letters/discard", json={"job": "ticket"}).json()["discarded"] == [made[0], made[2]]
    for body in ({}, {"runs": [], "job": ""}, {"runs": ["a"], "job": "b"}):
        assert acting.post("/v1/dead-letters/discard", json=body).status_code == 422


def test_a_token_is_taken_or_waited_for(acting: Client, faces: Faces) -> None:
    assert acting.post("/v1/rates/slow/take").json()["queue"] == "slow"
    late = acting.post("/v1/rates/slow/take")
    assert (late.status_code, late.headers["retry-after"]) == (429, "60")
    assert acting.post("/v1/rates/slow/take?wait=30").status_code == 429, "it would take longer: no need to wait"
    assert acting.post("/v1/rates/default/take").status_code == 409
    assert acting.post("/v1/rates/nope/take").status_code == 404
    assert acting.post("/v1/rates/slow/take?wait=61").status_code == 422


class Bucket:
    """A token comes at every third look."""

    def __init__(self) -> None:
        self.looks = 0

    @property
    def commands(self) -> Bucket:
        return self

    def take_token(self, queue: str) -> float | None:
        self.looks += 1
        return None if self.looks % 3 == 0 else 0.001


def test_those_who_wait_for_tokens_get_them_in_their_order() -> None:
    async def wait() -> list[int]:
        lines, order = Lines(), []
        end = asyncio.get_running_loop().time() + 20

        async def take(number: int) -> None:
            assert await lines.take(cast(Backend, bucket), "api", end) is None
            order.append(number)

        await asyncio.gather(*(take(number) for number in range(8)))
        assert lines._lines == lines._waiting == {}
        return order

    bucket = Bucket()
    assert asyncio.run(wait()) == list(range(8))


def test_who_waits_in_line_for_too_long_is_told_so() -> None:
    async def wait() -> None:
        lines = Lines()
        loop = asyncio.get_running_loop()
        first = asyncio.create_task(lines.take(cast(Backend, Slow()), "api", loop.time() + 20))
        await asyncio.sleep(0)
        assert await lines.take(cast(Backend, Slow()), "api", loop.time() + 0.05) == 1.0
        first.cancel()

    class Slow(Bucket):
        def take_token(self, queue: str) -> float | None:
            return 10.0

    asyncio.run(wait())
