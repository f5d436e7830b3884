"""How a node leaves, and what the next one makes of what it left."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from scheduler.core.commands import IfBusy
from scheduler.core.errors import Unavailable
from scheduler.core.ids import short
from scheduler.core.model import FailReason, Status
from scheduler.core.outcome import Failed, GivenBack, Outcome, Span, Succeeded
from scheduler.engine.drain import SETTLING
from scheduler.engine.orphans import close_orphans
from scheduler.engine.recovery import predecessors, recover
from scheduler.store.store import SqlStore
from tests.engine.rig import Rig, at, failed, jobs

MINUTELY = {"schedule": "* * * * *"}


def node_state(rig: Rig) -> str:
    with rig.store.read() as tx:
        return next(node.state for node in tx.nodes.all() if node.id == rig.node)


def test_a_draining_node_plans_and_claims_nothing_and_waits_for_what_it_holds(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": MINUTELY, "b": {}}))
    rig.tick(minutes=1)
    rig.drain.begin()
    assert (rig.drain.begun, rig.drain.over(), node_state(rig)) == (True, False, "stopping")
    rig.desk.run_now("b", author="me")
    rig.tick(minutes=1)
    assert rig.statuses() == ["RUNNING", "PENDING"]
    assert not rig.drain.over()
    rig.finish()
    assert rig.drain.over()
    rig.drain.finish()
    assert node_state(rig) == "stopped"
    assert rig.statuses() == ["COMPLETED", "PENDING"]
    assert rig.named("node.stopped")


def test_a_node_that_cannot_write_what_its_runs_came_to_leaves_soon_and_says_so(
    store: SqlStore, logs: list[dict[str, Any]]
) -> None:
    rig = Rig(store, jobs({"a": MINUTELY, "b": {}}))
    rig.tick(minutes=1)
    rig.store.away = True
    rig.drain.begin()
    rig.turn(minutes=4)
    assert not rig.drain.over(), "what runs is waited for"
    rig.executor.finish_all()
    assert not rig.drain.over()
    rig.turn(seconds=SETTLING - 1)
    assert not rig.drain.over()
    rig.turn(seconds=1)
    assert rig.drain.over()
    rig.drain.finish()
    (told,) = [entry for entry in logs if entry["event"] == "drain_unwritten"]
    assert (told["not_written"], told["reason"]) == ("how 1 run ended and that it left", "the database is away")
    assert len(told["runs"]) == 1
    assert rig.drain.unwritten == told["not_written"]


def test_what_has_ended_is_not_waited_for(store: SqlStore, logs: list[dict[str, Any]]) -> None:
    rig = Rig(store, jobs({"a": MINUTELY, "b": MINUTELY}))
    rig.tick(minutes=1)
    (ended,), (runs,) = rig.executor.of("a"), rig.executor.of("b")
    rig.executor.finish(ended)
    rig.drain.begin()
    (told,) = [entry for entry in logs if entry["event"] == "drain_started"]
    assert (told["waiting_for"], told["unwritten"]) == ([f"b ({short(runs)})"], 1)
    assert rig.drain.words() == (
        "it plans and starts nothing more, and waits for 1 run, at most for another 5m; "
        "how 1 run ended is yet to be written down"
    )
    rig.executor.finish(runs)
    assert rig.drain.words() == "it plans and starts nothing more; how 2 runs ended is yet to be written down"
    rig.store.away = True
    rig.turn(minutes=5)
    rig.drain.over()
    assert [entry for entry in logs if entry["event"] == "drain_ends_runs"] == []
    rig.store.away = False
    rig.worker.tick(rig.store.now())
    assert rig.drain.over()
    assert rig.drain.words() == "it plans and starts nothing more"


def test_a_database_that_comes_back_in_time_has_everything(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": MINUTELY}))
    rig.tick(minutes=1)
    rig.store.away = True
    rig.drain.begin()
    rig.executor.finish_all()
    rig.turn(seconds=SETTLING - 1)
    assert not rig.drain.over()
    rig.store.away = False
    rig.worker.tick(rig.store.now())
    assert rig.drain.over()
    rig.drain.finish()
    assert (rig.drain.unwritten, rig.statuses()) == (None, ["COMPLETED"])


def test_who_writes_on_is_waited_for(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": {"overlap": "allow"}}))
    for _ in range(3):
        rig.desk.run_now("a", author="me", if_busy=IfBusy.QUEUE)
    rig.tick()
    rig.drain.begin()
    held = rig.worker.live()
    rig.executor.finish(held[0].id)
    rig.worker.tick(rig.store.now())
    rig.executor.finish_all()
    assert not rig.drain.over()
    rig.turn(seconds=SETTLING - 1)
    assert not rig.drain.over()
    rig.worker._held.drop([one for one in rig.worker._held.lives() if one.run.id == held[1].id])
    rig.turn(seconds=SETTLING - 1)
    assert not rig.drain.over(), "one was settled meanwhile"


def test_after_the_wait_the_rest_is_ended_and_not_counted_as_lost(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": MINUTELY}), drain=timedelta(minutes=5))
    rig.tick(minutes=1)
    rig.drain.begin()
    rig.clock.turn(minutes=4, seconds=59)
    assert not rig.drain.over()
    assert rig.executor.ended == []
    rig.clock.turn(seconds=1)
    assert not rig.drain.over()
    assert [why for _, why in rig.executor.ended] == ["drain"]
    rig.worker.tick(rig.store.now())
    assert rig.drain.over()
    (run,) = rig.runs("a")
    assert (run.status, run.lost, run.failures) == (Status.PENDING, 0, 0)
    assert [one.outcome for one in rig.detail(run.id).attempts] == ["lost"]
    rig.drain.finish()
    following = Rig(store, rig.text, rig.clock)
    following.tick()
    assert following.run(run.id).attempt == 2


def test_on_lost_fail_counts_for_a_drain_too(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": {**MINUTELY, "on_lost": "fail"}}), drain=timedelta(0))
    rig.tick(minutes=1)
    rig.drain.begin()
    rig.drain.over()
    rig.worker.tick(rig.store.now())
    assert (rig.runs("a")[0].status, rig.runs("a")[0].reason) == (Status.FAILED, "lost")


def test_a_second_signal_ends_the_wait(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": MINUTELY}), drain=timedelta(hours=1))
    rig.tick(minutes=1)
    rig.drain.begin()
    rig.drain.over()
    assert rig.executor.ended == []
    rig.drain.begin()
    rig.drain.over()
    assert [why for _, why in rig.executor.ended] == ["drain"]


def test_what_will_not_end_does_not_keep_the_daemon_for_ever(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": MINUTELY}), drain=timedelta(seconds=1))
    rig.executor.obedient = False
    rig.tick(minutes=1)
    rig.drain.begin()
    rig.clock.turn(seconds=1)
    assert not rig.drain.over()
    rig.clock.turn(minutes=2)
    assert not rig.drain.over()
    rig.clock.turn(seconds=1)
    assert rig.drain.over()
    assert len(rig.executor.ended) == 1


def test_a_run_claimed_while_the_node_begins_to_leave_goes_back(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {}}))
    rig.desk.run_now("a", author="me")
    claim = rig.worker.claim()
    assert claim is not None
    with rig.store.begin() as tx:
        runs = tx.runs.claim(claim, rig.store.now())
    rig.drain.begin()
    assert not rig.drain.over(), "a claim is under way"
    rig.worker.take(claim, runs)
    rig.tick()
    assert rig.executor.started == []
    (run,) = rig.runs("a")
    assert (run.status, run.attempt) == (Status.PENDING, 0)
    assert rig.drain.over()


def test_leaving_needs_no_database(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs())
    rig.store.away = True
    rig.drain.begin()
    assert rig.drain.over()
    rig.drain.finish()


def test_nothing_is_over_before_it_began(sqlite: SqlStore) -> None:
    assert not Rig(sqlite, jobs()).drain.over()


# ------------------------------------------------------------ recovery


@pytest.mark.parametrize(
    ("known", "status"),
    [
        (Succeeded(result={"n": 1}), Status.COMPLETED),
        (failed(), Status.FAILED),
        (GivenBack(started=False), Status.PENDING),
        (None, Status.PENDING),
    ],
)
def test_what_is_known_of_a_former_run_counts_and_only_the_rest_is_lost(
    store: SqlStore, known: Outcome | None, status: Status
) -> None:
    """D01"""
    rig = Rig(store, jobs({"a": {**MINUTELY, "lock": "shared"}}))
    rig.tick(minutes=1)
    (run,) = rig.runs("a")
    former = predecessors(rig.store, rig.node)
    assert {node: [one.id for one in own] for node, own in former.items()} == {rig.node: [run.id]}
    rig.attempts.left = [(run.id, 1)]
    outcomes = {} if known is None else {(run.id, 1): known}
    closed = recover(rig.store, rig.in_force, rig.bus, rig.attempts, list(former), outcomes, rig.store.now(), 0.0)
    assert closed == 1
    after = rig.run(run.id)
    assert (after.status, after.lost) == (status, int(known is None))
    assert len(rig.named("run.lost")) == int(known is None)
    assert rig.attempts.forgotten == [(run.id, 1)]
    with rig.store.queries() as queries:
        output = queries.output(run.id)
    assert output is not None
    assert output.head == b"printed\n"
    assert node_state(rig) == "dead"
    with rig.store.begin() as tx:
        assert tx.jobs.states(["a"])["a"].enabled
    following = Rig(store, rig.text, rig.clock)
    following.desk.run_now("a", author="me", payload=1, has_payload=True)
    following.tick()
    assert len(following.executor.live) == 1, "the lock is free"


def test_what_a_former_supervisor_saw_is_dated_as_it_was(store: SqlStore) -> None:
    """The daemon died at night and was started in the morning."""
    rig = Rig(store, jobs({"a": MINUTELY, "b": MINUTELY}))
    rig.tick(minutes=1)
    ended, lost = rig.runs("a")[0], rig.runs("b")[0]
    began = rig.clock.boottime()
    rig.turn(hours=9)
    known = {(ended.id, 1): Succeeded(exit_code=0, span=Span(began + 30, began))}
    former = list(predecessors(rig.store, rig.node))
    recover(rig.store, rig.in_force, rig.bus, rig.attempts, former, known, rig.store.now(), rig.clock.boottime())
    after = rig.run(ended.id)
    assert (after.status, after.took) == (Status.COMPLETED, 30.0)
    assert after.finished_at == at(8, 1, 30)
    assert rig.run(lost.id).took is None, "nobody saw it end"


def test_on_postgresql_only_the_former_owner_of_the_state_directory_is_succeeded(postgres: SqlStore) -> None:
    one, two = Rig(postgres, jobs()), Rig(postgres, jobs())
    assert list(predecessors(one.store, two.node)) == [two.node]
    assert list(predecessors(one.store, None)) == []


def test_on_sqlite_every_other_node_is_gone(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs())
    assert list(predecessors(rig.store, None)) == [rig.node]


def test_a_thousand_restarts_in_mid_run_end_as_lost_after_three(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": {"schedule": "1 8 * * *"}}))
    rig.tick(minutes=1)
    for _ in range(4):
        rig = Rig(sqlite, rig.text, rig.clock)
        rig.tick()
        rig.tick(seconds=31)
    (run,) = rig.runs("a")
    assert (run.status, run.reason, run.lost, run.attempt) == (Status.FAILED, "lost", 3, 3)


def test_many_orphans_are_closed_in_batches(sqlite: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    from scheduler.engine import orphans

    monkeypatch.setattr(orphans, "BATCH", 3)
    rig = Rig(sqlite, jobs({"a": {}}))
    for number in range(10):
        rig.desk.run_now("a", author="me", payload=number, has_payload=True)
    rig.tick()
    with rig.store.begin() as tx:
        tx.nodes.mark(rig.node, "stopped", rig.store.now())
    assert close_orphans(rig.store, rig.in_force, rig.bus, rig.store.now()) == 10
    assert rig.statuses() == ["PENDING"] * 10
    assert close_orphans(rig.store, rig.in_force, rig.bus, rig.store.now()) == 0


def test_the_chain_goes_on_after_a_lost_job(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {**MINUTELY, "on_lost": "fail"}, "b": {"after": {"job": "a", "on": "failed"}}}))
    rig.tick(minutes=1)
    following = Rig(store, rig.text, rig.clock)
    if store.kind == "postgresql":
        with rig.store.begin() as tx:
            tx.nodes.mark(rig.node, "stopped", rig.store.now())
    following.tick()
    assert following.statuses("a") == ["FAILED"]
    assert len(following.runs("b")) == 1


def test_an_outage_during_recovery_is_tried_again_by_the_keeper(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": MINUTELY}))
    rig.tick(minutes=1)
    with rig.store.begin() as tx:
        tx.nodes.mark(rig.node, "stopped", rig.store.now())
    following = Rig(store, rig.text, rig.clock, start=False)
    following.reloader.start(following.load(), author="start", node=following.node)
    following.register()
    following.store.broken_commits = 1
    with pytest.raises(Unavailable):
        following.keeper.tick(following.store.now())
    assert following.statuses("a") == ["RUNNING"]
    following.tick()
    assert following.statuses("a") == ["RUNNING"]
    assert following.run(following.runs("a")[0].id).node == following.node
    assert FailReason.LOST == "lost"
    assert isinstance(failed(), Failed)
    assert at(8, 1) == following.runs("a")[0].scheduled_for
