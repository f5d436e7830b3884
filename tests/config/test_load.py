"""Good files: what they become."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from scheduler.config.load import load_file
from scheduler.config.problem import ConfigError
from scheduler.core.job import CatchUp, Leftovers, Limits, OnLost, Overlap, Queue, Retries
from scheduler.core.model import Status
from scheduler.core.secret import Secret
from tests.config.texts import load, one, problems

CRON = "schedule: 0 8 * * 1, timezone: Asia/Shanghai, command: x"


def test_the_shortest_job_has_the_documented_defaults() -> None:
    job = one(CRON)
    assert job.schedule is not None
    assert (job.schedule.expressions, job.schedule.zone, job.schedule.day_match) == (
        ("0 8 * * 1",),
        "Asia/Shanghai",
        "cron",
    )
    assert (job.action.kind, job.action.options) == ("command", {"command": "x"})
    assert (job.overlap, job.lock, job.queue, job.priority) == (Overlap.SKIP, "job:a", "default", 0)
    assert (job.catch_up, job.catch_up_window, job.catch_up_max) == (CatchUp.LATEST, timedelta(days=7), 100)
    assert (job.timeout, job.kill_after) == (timedelta(hours=24), timedelta(seconds=30))
    assert (job.on_lost, job.leftovers, job.enabled) == (OnLost.RETRY, Leftovers.END, True)
    assert job.retries == Retries(limit=0)
    assert job.payload_retries.waits == tuple(timedelta(minutes=n) for n in (1, 5, 30, 120))
    assert (job.keep, job.keep_output, job.log_limit) == (timedelta(days=90), timedelta(days=30), 1 << 20)
    assert job.watch.heartbeat


def test_every_key_arrives() -> None:
    job = one(
        f"{CRON}, day_match: and, description: d, enabled: false, overlap: queue, lock: l, catch_up: all,"
        "catch_up_max: 7, catch_up_window: 2h, timeout: 5m, kill_after: 1s, on_lost: fail, queue: scans,"
        "priority: -3, keep: 12, keep_output: 1d, log_limit: 64KiB, env: {A: 1}, secrets: {S: {env: T}, F: {file: /f}},"
        "workdir: /w, user: 1000, limits: {memory: 1GiB, tasks: 9, nice: 5}, stdin: hello, grace: 2h,"
        "heartbeat: false, alert_after: 3, severity: critical, team: ops, runbook: http://r, tags: [t, u]"
    )
    assert job.schedule is not None
    assert (job.schedule.day_match, job.description, job.enabled) == ("and", "d", False)
    assert (job.overlap, job.lock) == (Overlap.QUEUE, "lock:l")
    assert (job.catch_up, job.catch_up_max, job.catch_up_window) == (CatchUp.ALL, 7, timedelta(hours=2))
    assert (job.timeout, job.kill_after, job.on_lost) == (timedelta(minutes=5), timedelta(seconds=1), OnLost.FAIL)
    assert (job.queue, job.priority, job.keep, job.keep_output) == ("scans", -3, 12, timedelta(days=1))
    assert (job.log_limit, job.child.env, job.child.stdin) == (65_536, {"A": "1"}, "hello")
    assert job.child.secrets == {"S": Secret(env="T"), "F": Secret(file="/f")}
    assert (job.child.workdir, job.child.user) == ("/w", "1000")
    assert job.child.limits == Limits(memory=1 << 30, tasks=9, nice=5)
    watch = job.watch
    assert (watch.grace, watch.heartbeat, watch.alert_after) == (timedelta(hours=2), False, 3)
    assert (watch.severity, watch.team, watch.runbook, watch.tags) == ("critical", "ops", "http://r", ("t", "u"))


@pytest.mark.parametrize(
    ("written", "retries"),
    [
        ("3", Retries(limit=3)),
        ("0", Retries(limit=0)),
        ("[1m, 10m]", Retries(limit=2, waits=(timedelta(minutes=1), timedelta(minutes=10)))),
        ("{max: 2, delay: 1m}", Retries(limit=2, delay=timedelta(minutes=1))),
        ("{max: 2, backoff: 3, max_delay: 1h}", Retries(limit=2, backoff=3, max_delay=timedelta(hours=1))),
    ],
)
def test_retries_have_three_forms_and_hold_for_every_run(written: str, retries: Retries) -> None:
    job = one(f"command: x, retries: {written}")
    assert job.retries == job.payload_retries == retries


@pytest.mark.parametrize(
    ("keys", "overlap", "lock"),
    [
        ("command: x", Overlap.ALLOW, None),
        ("command: x, overlap: queue", Overlap.QUEUE, "job:a"),
        ("command: x, lock: l", Overlap.QUEUE, "lock:l"),
        (f"{CRON}, overlap: allow", Overlap.ALLOW, None),
        (f"{CRON}, overlap: replace", Overlap.REPLACE, "job:a"),
    ],
)
def test_overlap_and_lock(keys: str, overlap: Overlap, lock: str | None) -> None:
    job = one(keys)
    assert (job.overlap, job.lock) == (overlap, lock)


def test_a_default_that_a_job_cannot_follow_does_not_hold_for_it() -> None:
    jobs = load(
        f"defaults: {{overlap: skip, leftovers: keep}}\njobs:\n  a: {{{CRON}}}\n  b: {{command: x}}\n"
        f"  c: {{{CRON}, overlap: allow}}\n"
    ).jobs
    assert (jobs["a"].overlap, jobs["a"].leftovers) == (Overlap.SKIP, Leftovers.END)
    assert (jobs["b"].overlap, jobs["b"].leftovers) == (Overlap.QUEUE, Leftovers.END)
    assert jobs["c"].leftovers is Leftovers.KEEP


def test_catch_up_all_has_a_window_of_a_day() -> None:
    assert one(f"{CRON}, catch_up: all").catch_up_window == timedelta(hours=24)


def test_defaults_hold_unless_a_job_says_otherwise_and_mappings_add_up() -> None:
    jobs = load(
        "defaults: {timezone: UTC, grace: 5m, env: {A: 1, B: 2}, secrets: {S: {env: X}}, limits: {nice: 1, tasks: 2}}\n"
        "jobs:\n  a: {command: x}\n"
        "  b: {command: x, grace: 6m, env: {B: 3, C: 4}, secrets: {T: {env: Y}}, limits: {nice: 2}}\n"
    ).jobs
    assert (jobs["a"].watch.grace, jobs["b"].watch.grace) == (timedelta(minutes=5), timedelta(minutes=6))
    assert jobs["a"].child.env == {"A": "1", "B": "2"}
    assert jobs["b"].child.env == {"A": "1", "B": "3", "C": "4"}
    assert set(jobs["b"].child.secrets) == {"S", "T"}
    assert jobs["b"].child.limits == Limits(tasks=2, nice=2)


def test_after() -> None:
    text = "jobs:\n  a: {command: x}\n  b: {after: a, command: x}\n  c: {after: {job: a, on: failed}, command: x}"
    jobs = load(text).jobs
    assert [(job.after.job, job.after.on) for job in jobs.values() if job.after is not None] == [
        ("a", Status.COMPLETED),
        ("a", Status.FAILED),
    ]


def test_a_schedule_may_be_a_list() -> None:
    job = one("schedule: [0 9 * * 1-5, 0 17 * * 1-5], timezone: UTC, command: x")
    assert job.schedule is not None
    assert job.schedule.expressions == ("0 9 * * 1-5", "0 17 * * 1-5")


def test_h_hashes_the_name_of_the_job() -> None:
    text = "defaults: {timezone: UTC}\njobs:\n" + "".join(
        f"  j{n}: {{schedule: H H * * *, command: x}}\n" for n in range(9)
    )
    now = datetime(2026, 1, 1, tzinfo=UTC)
    instants = {job.schedule.after(now) for job in load(text).jobs.values() if job.schedule is not None}
    assert len(instants) > 5


def test_blackouts_are_in_the_zone_of_the_job() -> None:
    job = one(
        "schedule: 0 8 * * *, timezone: Asia/Tokyo, command: x, blackouts: ["
        "{from: 2026-12-24, to: 2026-12-27T12:30, reason: freeze}, {from: '2026-01-01T00:00Z', to: 2026-01-02},"
        "{schedule: 0 0 * * 6, for: 2d}]"
    )
    first, second, third = job.blackouts
    assert (first.start, first.end, first.reason) == (
        datetime(2026, 12, 23, 15, tzinfo=UTC),
        datetime(2026, 12, 27, 3, 30, tzinfo=UTC),
        "freeze",
    )
    assert second.start == datetime(2026, 1, 1, tzinfo=UTC)
    assert third.schedule is not None
    assert (third.schedule.zone, third.length) == ("Asia/Tokyo", timedelta(days=2))


def test_blackouts_need_a_zone_only_for_wall_clock_times() -> None:
    assert one("command: x, blackouts: [{from: '2026-01-01T00:00+01:00', to: '2026-01-02T00:00Z'}]").blackouts
    (found,) = problems(
        "jobs:\n  a:\n    command: x\n    blackouts:\n      - {from: 2026-01-01, to: '2026-01-02T00:00Z'}\n"
    )
    assert "without a time zone" in found.reason


def test_queues() -> None:
    queues = load("queues: {llm: {concurrency: 4, rate: 120/m, burst: 3}, open: }\njobs: {}").queues
    assert queues == {
        "default": Queue("default", 64),
        "scans": Queue("scans", 4),
        "llm": Queue("llm", 4, 2.0, 3),
        "open": Queue("open"),
    }
    assert load("queues: {default: {concurrency: 2}}\njobs: {}").queues["default"].concurrency == 2


def test_names() -> None:
    for name in ("a", "A.b_c-d", "9", "x" * 100):
        assert name in load(f"jobs: {{'{name}': {{command: x}}}}").jobs


def test_the_order_of_the_file_is_kept() -> None:
    assert list(load("jobs: {z: {command: x}, a: {command: x}, m: {command: x}}").jobs) == ["z", "a", "m"]


def test_no_jobs_must_be_said() -> None:
    assert load("jobs: {}").jobs == {}


def test_the_garbage_collector_is_left_as_it_was() -> None:
    import gc

    load("jobs: {}")
    assert gc.isenabled()
    problems("jobs: [")
    assert gc.isenabled()


def test_a_pipe_is_refused_and_waits_for_nobody(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "jobs.yaml")
    with pytest.raises(ConfigError, match="pipe"):
        load_file(tmp_path / "jobs.yaml")
