"""What a node writes down while others hold what it needs: nothing is left behind, and nobody is stopped."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta

import pytest

from scheduler.core.errors import Unavailable
from scheduler.core.model import Cause, FailReason, Status
from scheduler.core.outcome import Failed, Outcome, Snoozed, Succeeded
from scheduler.core.requests import Report
from scheduler.engine.new_run import new_run
from scheduler.engine.orphans import close_orphans
from scheduler.engine.recovery import predecessors, recover
from scheduler.store.runs import SqlRuns
from scheduler.store.store import SqlStore
from tests.databases import Place
from tests.engine.rig import Rig, failed, jobs
from tests.until import until
from tests.waiting import waiting

WHY = "canceled by me"


@pytest.fixture
def other(postgres_place: Place) -> Iterator[SqlStore]:
    """The same database through connections of its own."""
    with closing(postgres_place.open()) as opened:
        yield opened


def test_a_claim_whose_commit_takes_longer_than_one_waits_for_it_is_given_back(
    postgres: SqlStore, other: SqlStore
) -> None:
    """The server waits for its disk or for a standby. Of what it has not committed nothing can be seen, and where the
    planner made the run in the same transaction not even that it waits."""
    rig = Rig(postgres, jobs({"a": {"overlap": "queue"}}))
    run = new_run(rig.in_force.current.configuration.jobs["a"], Cause.SCHEDULE, rig.store.now())
    claim = rig.worker.claim()
    assert claim is not None
    with other._inside(other._database.writing) as session:
        session.connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")
        SqlRuns(session).insert([run])
        (held,) = SqlRuns(session).claim(claim, rig.store.now()).runs
        rig.worker.take(claim, None)
        with pytest.raises(Unavailable):
            rig.worker.tick(rig.store.now())
    assert rig.run(run.id) == held
    rig.tick()
    assert list(rig.executor.live) == [run.id]
    assert rig.run(run.id).fence > held.fence
    rig.finish()
    assert rig.statuses() == ["COMPLETED"]


@pytest.mark.parametrize(
    "outcome", [failed(), Snoozed(timedelta(minutes=30), "not yet"), Failed(FailReason.LOST, "its supervisor died")]
)
def test_who_asks_for_the_end_while_an_end_is_written_down_sees_no_further_attempt(
    postgres: SqlStore, other: SqlStore, postgres_place: Place, outcome: Outcome
) -> None:
    rig = Rig(postgres, jobs({"a": {"retries": ["30m"]}}))
    run, _ = rig.desk.run_now("a", author="me")
    rig.tick()
    rig.executor.finish(run.id, outcome)
    with ThreadPoolExecutor(1) as thread:
        with other.begin() as planning:
            planning.jobs.states(["a"], lock=True)
            turn = thread.submit(rig.worker.tick, rig.store.now())
            until(lambda: waiting(postgres_place) == 1)
            with closing(postgres_place.open()) as third, third.begin() as tx:
                assert tx.runs.request_cancel([run.id], WHY, rig.store.now())
        turn.result(20)
    after = rig.run(run.id)
    assert (after.status, after.reason, after.failures, after.lost) == (Status.CANCELED, WHY, 0, 0)
    rig.tick(hours=1)
    assert rig.statuses() == ["CANCELED"]
    assert len(rig.detail(run.id).attempts) == 1


def test_whoever_asks_for_the_end_of_a_run_while_it_holds_the_job_does_not_meet_who_writes_its_end_down(
    postgres: SqlStore, other: SqlStore, postgres_place: Place
) -> None:
    """A planner (`overlap: replace`) or a run-now, and an attempt whose last words nobody had read before it ended."""
    rig = Rig(postgres, jobs({"a": {}}))
    run, _ = rig.desk.run_now("a", author="me")
    rig.tick()
    rig.attempts.words[run.id] = [Report(run.id, rig.run(run.id).fence, checkpoint={"page": 7})]
    rig.executor.finish(run.id, Succeeded(exit_code=0))
    with ThreadPoolExecutor(1) as thread:
        with other.begin() as planning:
            planning.jobs.states(["a"], lock=True)
            turn = thread.submit(rig.worker.tick, rig.store.now())
            until(lambda: waiting(postgres_place) == 1)
            assert planning.runs.request_cancel([run.id], WHY, rig.store.now())
        turn.result(20)
    after = rig.run(run.id)
    assert (after.status, after.cancel, after.checkpoint) == (Status.COMPLETED, WHY, {"page": 7})


def _gone(store: SqlStore) -> tuple[Rig, str, dict[tuple[str, int], Outcome]]:
    """A node that is gone, its run of `a`, which had completed, and what is known of that. Another of `b` had not."""
    rig = Rig(store, jobs({"a": {}, "b": {}}))
    run, _ = rig.desk.run_now("a", author="me")
    rig.desk.run_now("b", author="me")
    rig.tick()
    rig.attempts.left = [(run.id, 1)]
    return rig, run.id, {(run.id, 1): Succeeded(exit_code=0)}


def test_what_had_completed_is_lost_for_nobody_who_looks_while_its_node_is_succeeded(postgres: SqlStore) -> None:
    rig, run, known = _gone(postgres)
    beside = Rig(postgres, rig.text)
    rig.store.begun = lambda: _look(beside)
    recover(rig.store, rig.in_force, rig.bus, rig.attempts, [rig.node], known, rig.store.now(), rig.clock.boottime())
    assert (rig.run(run).status, rig.run(run).lost) == (Status.COMPLETED, 0)
    assert rig.statuses("b") == ["PENDING"]


def _look(rig: Rig) -> None:
    close_orphans(rig.store, rig.in_force, rig.bus, rig.store.now())


@pytest.mark.parametrize("transaction", [1, 2, 3])
def test_who_dies_while_it_succeeds_a_node_leaves_what_is_known_to_the_next(store: SqlStore, transaction: int) -> None:
    """What the former supervisor wrote down is kept until all is settled, and read for nodes that are not dead."""
    rig, run, known = _gone(store)
    left = [transaction]

    def die() -> None:
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt

    rig.store.begun = die
    with pytest.raises(KeyboardInterrupt):
        recover(rig.store, rig.in_force, rig.bus, rig.attempts, [rig.node], known, rig.store.now(), 0.0)
    rig.store.begun = lambda: None
    former = predecessors(rig.store, rig.node)
    held = {(one.id, one.attempt) for own in former.values() for one in own}
    known = {attempt: outcome for attempt, outcome in known.items() if attempt in held}
    recover(rig.store, rig.in_force, rig.bus, rig.attempts, list(former), known, rig.store.now(), 0.0)
    _look(rig)
    assert (rig.run(run).status, rig.statuses("b")) == (Status.COMPLETED, ["PENDING"])
