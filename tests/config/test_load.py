"""Good files: what they become."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scheduler.config.load import load_texts
from scheduler.core.model import Configuration, Overlap, Retries, Status


def load(text: str, **environ: str) -> Configuration:
    return load_texts({"jobs.yaml": text}, "jobs.yaml", environ=environ)


def test_the_shortest_job() -> None:
    job = load("jobs:\n  a: {schedule: 0 8 * * 1, timezone: Asia/Shanghai, command: [echo, hi]}\n").jobs["a"]
    assert job.schedule is not None
    assert (job.schedule.expressions, job.schedule.zone) == (("0 8 * * 1",), "Asia/Shanghai")
    assert (job.action.kind, job.action.options) == ("command", {"command": ["echo", "hi"]})
    assert (job.overlap, job.lock, job.queue) == (Overlap.SKIP, "job:a", "default")
    assert job.timeout == timedelta(hours=24)
    assert job.retries.limit == 0
    assert job.payload_retries.waits == tuple(timedelta(minutes=n) for n in (1, 5, 30, 120))


@pytest.mark.parametrize(
    ("written", "retries"),
    [
        ("3", Retries(limit=3)),
        ("[1m, 10m]", Retries(limit=2, waits=(timedelta(minutes=1), timedelta(minutes=10)))),
        ("{max: 2, delay: 1m}", Retries(limit=2, delay=timedelta(minutes=1))),
    ],
)
def test_retries_have_three_forms(written: str, retries: Retries) -> None:
    job = load(f"jobs: {{a: {{command: x, retries: {written}}}}}").jobs["a"]
    assert job.retries == job.payload_retries == retries


def test_after_defaults_to_completed() -> None:
    jobs = load(
        "jobs:\n  a: {command: x}\n  b: {after: a, command: x}\n  c: {after: {job: a, on: failed}, command: x}"
    ).jobs
    assert jobs["b"].after is not None
    assert jobs["b"].after.on is Status.COMPLETED
    assert jobs["c"].after is not None
    assert jobs["c"].after.on is Status.FAILED
