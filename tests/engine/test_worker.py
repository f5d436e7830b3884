"""The worker, tick by tick: starting, ending, settling."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scheduler.core.commands import IfBusy
from scheduler.core.ids import new_id
from scheduler.core.model import Cause, FailReason, NewRun, Status
from scheduler.core.outcome import Failed, Snoozed
from scheduler.store.store import SqlStore
from tests.engine.rig import Rig, at, failed, jobs

MINUTELY = {"schedule": "* * * * *"}


def test_retries_wait_and_then_fail(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {"schedule": "0 9 * * *", "retries": ["1m", "10m"]}}))
    rig.tick(hours=1)
    rig.finish(failed())
    (run,) = rig.runs("a")
    assert (run.status, run.failures, run.attempt) == (Status.PENDING, 1, 1)
    assert run.not_before is not None
    assert at(9, 1) <= run.not_before <= at(9, 1, 6)
    (told,) = rig.named("run.settled")
    assert (told["status"], told["next_attempt_at"]) == ("PENDING", run.not_before)
    rig.tick(seconds=59)
    assert rig.executor.live == {}
    rig.tick(seconds=8)
    assert rig.run(run.id).attempt == 2
    rig.finish(failed())
    rig.tick(minutes=11, seconds=1)
    rig.finish(failed())
    run = rig.run(run.id)
    assert (run.status, run.reason, run.failures, run.attempt) == (Status.FAILED, "exit", 3, 3)
    assert [one.outcome for one in rig.detail(run.id).attempts] == ["exit"] * 3
    assert rig.state("a").consecutive_failures == 1
    assert rig.named("run.settled")[-1]["next_attempt_at"] is None


def test_a_failure_that_cannot_be_mended_is_not_retried(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": {**MINUTELY, "retries": 3}}))
    rig.tick(minutes=1)
    rig.finish(Failed(FailReason.HTTP, "404", retryable=False))
    assert rig.statuses("a") == ["FAILED"]


def test_a_floor_for_the_wait_is_honoured(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": {**MINUTELY, "retries": ["1s"]}}))
    rig.tick(minutes=1)
    rig.finish(failed(not_sooner=timedelta(minutes=7)))
    (run,) = rig.runs("a")
    assert run.not_before is not None
    assert at(8, 8) <= run.not_before <= at(8, 8, 42)


def test_a_waiting_retry_holds_no_lock(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {"schedule": "0 9 * * *", "retries": ["1h"]}}))
    rig.tick(hours=1)
    rig.finish(failed())
    run, _ = rig.desk.run_now("a", author="me", if_busy=IfBusy.QUEUE)
    rig.tick()
    assert rig.run(run.id).status is Status.RUNNING


def test_timeouts_run_on_the_monotonic_clock(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {"schedule": "0 9 * * *", "timeout": "10m"}}))
    rig.tick(hours=1)
    rig.clock.step(hours=5)
    rig.tick()
    rig.clock.step(hours=-10)
    rig.tick()
    assert rig.executor.ended == []
    rig.tick(minutes=10)
    assert [why for _, why in rig.executor.ended] == ["timeout"]
    run = rig.runs("a")[0]
    assert (run.status, run.reason) == (Status.FAILED, "timeout")


def test_timeouts_do_not_need_the_database(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": {"schedule": "0 9 * * *", "timeout": "10m"}, "b": {"schedule": "0 9 * * *"}}))
    rig.tick(hours=1)
    rig.executor.finish(*rig.executor.of("b"))
    rig.store.away = True
    rig.turn(minutes=10)
    with pytest.raises(Exception, match="away"):
        rig.worker.tick(rig.store.now())
    assert [why for _, why in rig.executor.ended] == ["timeout"]


def test_cancel_of_a_waiting_run_takes_place_at_once(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {"schedule": "* * * * *", "overlap": "queue"}}))
    rig.tick(minutes=1)
    rig.tick(minutes=1)
    waiting = rig.runs("a")[1]
    assert rig.desk.cancel(waiting.id, author="me", reason="no").status is Status.CANCELED
    rig.finish()
    assert rig.statuses("a") == ["COMPLETED", "CANCELED"]


def test_cancel_of_a_running_run_takes_place_when_it_is_over(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {**MINUTELY, "retries": 5}}))
    rig.executor.obedient = False
    rig.tick(minutes=1)
    (run,) = rig.executor.live
    assert rig.desk.cancel(run, author="me").status is Status.RUNNING
    rig.tick()
    rig.tick()
    assert rig.executor.ended == [(run, "cancel")]
    rig.finish(failed())
    assert (rig.run(run).status, rig.run(run).reason) == (Status.CANCELED, "canceled by me")


def test_a_cancel_that_comes_too_late_does_not_hide_a_success(store: SqlStore) -> None:
    """What is done is done; what failed after the cancel is canceled."""
    rig = Rig(store, jobs({"a": MINUTELY}))
    rig.tick(minutes=1)
    (run,) = rig.executor.live
    rig.executor.finish(run)
    rig.desk.cancel(run, author="me")
    rig.tick()
    assert rig.run(run).status is Status.COMPLETED
    assert rig.executor.ended == []


def test_priority_then_age(store: SqlStore) -> None:
    rig = Rig(store, jobs({"low": {"priority": -1}, "mid": {}, "high": {"priority": 5}}), slots=1)
    order = [rig.desk.run_now(name, author="me")[0].id for name in ("low", "mid", "high")]
    order.append(rig.desk.run_now("mid", author="me", payload=1, has_payload=True)[0].id)
    for _ in order:
        rig.tick()
        rig.finish()
    assert [launch.run.id for launch in rig.executor.started] == [order[2], order[1], order[3], order[0]]


def test_concurrency_of_a_queue_holds_over_two_nodes(store: SqlStore) -> None:
    text = jobs({"a": {"queue": "q"}}, queues={"q": {"concurrency": 3}})
    one = Rig(store, text)
    two = Rig(store, text, one.clock, start=False)
    two.reloader.start(two.load(), author="start", node=two.node)
    two.register()
    for number in range(20):
        one.desk.run_now("a", author="me", payload=number, has_payload=True)
    for _ in range(10):
        one.tick()
        two.tick()
        assert len(one.executor.live) + len(two.executor.live) <= 3
        one.finish()
        two.finish()
    assert one.statuses() == ["COMPLETED"] * 20


def test_rate_of_a_queue(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {"queue": "q"}}, queues={"q": {"rate": "60/m", "burst": 2}}))
    for number in range(6):
        rig.desk.run_now("a", author="me", payload=number, has_payload=True)
    rig.tick()
    assert len(rig.executor.started) == 2
    rig.tick(seconds=0.5)
    assert len(rig.executor.started) == 2
    rig.tick(seconds=0.5)
    assert len(rig.executor.started) == 3
    rig.tick(seconds=60)
    assert len(rig.executor.started) == 5


def test_a_thousand_payload_runs_in_one_second_all_complete(store: SqlStore) -> None:
    thousand(store, "none")


@pytest.mark.parametrize("hindrance", ["pause", "reload"])
def test_a_thousand_payload_runs_all_complete_whatever_happens_meanwhile(sqlite: SqlStore, hindrance: str) -> None:
    thousand(sqlite, hindrance)


def thousand(store: SqlStore, hindrance: str) -> None:
    """G4: no policy skips, replaces or drops them."""
    entry = {"queue": "q", "overlap": "allow"}
    queues = {"q": {"concurrency": 50}}
    rig = Rig(store, jobs({"a": entry}, queues=queues))
    if hindrance == "pause":
        rig.desk.pause(["a"], until=rig.clock.now() + timedelta(seconds=10), reason="busy", author="me")
    with rig.store.begin() as tx:
        tx.runs.insert([payload_run(rig, "a", number) for number in range(1000)])
    for turn in range(45):
        rig.tick(seconds=0.5)
        assert len(rig.executor.live) <= 50
        if hindrance == "pause" and turn < 19:
            assert rig.executor.started == []
        if hindrance == "reload" and turn == 5:
            rig.reload(jobs({"a": {**entry, "description": "new"}}, queues=queues))
        rig.executor.finish_all()
    rig.tick()
    assert rig.statuses("a") == ["COMPLETED"] * 1000
    assert rig.skips("a") == []
    assert len({launch.run.id for launch in rig.executor.started}) == len(rig.executor.started) == 1000


def payload_run(rig: Rig, job: str, number: int) -> NewRun:
    definition = rig.in_force.current.configuration.jobs[job]
    return NewRun(
        id=new_id(),
        job=job,
        key=f"api:{number}",
        cause=Cause.API,
        created_at=rig.store.now(),
        queue=definition.queue,
        lock=definition.lock,
        payload=number,
        has_payload=True,
    )


def test_snoozed_costs_no_retry(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": MINUTELY}))
    rig.tick(minutes=1)
    rig.finish(Snoozed(timedelta(seconds=20), "not yet"))
    (run,) = rig.runs("a")
    assert (run.status, run.failures, run.not_before) == (Status.PENDING, 0, at(8, 1, 20))
    rig.tick(seconds=20)
    rig.finish()
    assert rig.statuses("a") == ["COMPLETED"]
    assert [one.outcome for one in rig.detail(run.id).attempts] == ["snoozed", "completed"]


def test_an_executor_that_raises_is_a_failed_attempt(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": {**MINUTELY, "retries": ["1s"]}}))
    rig.executor.refuses = RuntimeError("no")
    rig.tick(minutes=1)
    rig.executor.refuses = None
    rig.tick(seconds=3)
    rig.finish()
    (run,) = rig.runs("a")
    first, second = rig.detail(run.id).attempts
    assert (first.outcome, first.error) == ("error", "could not be started: RuntimeError: no")
    assert (run.status, second.outcome) == (Status.COMPLETED, "completed")


def test_an_action_that_this_release_cannot_carry_out_fails_with_its_name(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": {**MINUTELY, "http": {"url": "http://localhost/"}, "retries": 3}}))
    rig.tick(minutes=1)
    rig.tick()
    (run,) = rig.runs("a")
    assert (run.status, run.error) == (Status.FAILED, "this release has no executor for 'http'")


def test_a_job_that_is_removed_between_claim_and_start(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": MINUTELY, "b": {}}))
    claimed = []
    rig.planner._hand_over = lambda claim, runs: claimed.append((claim, runs))
    rig.turn(minutes=1)
    rig.plan()
    rig.reload(jobs({"b": {}}))
    rig.worker.take(*claimed[0])
    rig.tick()
    (run,) = rig.runs("a")
    assert (run.status, run.error) == (Status.FAILED, "its job was removed")
    assert rig.executor.started == []


def test_while_nobody_vouches_for_what_it_starts_nothing_is_claimed(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {}}))
    run, _ = rig.desk.run_now("a", author="me")
    rig.vouched = False
    rig.tick()
    assert (rig.run(run.id).status, rig.worker.takes_all) == (Status.PENDING, False)
    rig.vouched = True
    rig.tick()
    assert rig.run(run.id).status is Status.RUNNING
