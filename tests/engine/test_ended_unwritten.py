"""What has ended here is in nobody's way, although the ledger does not say so yet."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from scheduler.core.errors import Unavailable
from scheduler.core.model import SkipReason, Status
from scheduler.engine import planner
from scheduler.store.store import SqlStore
from tests.databases import Place
from tests.engine.doubles import START
from tests.engine.rig import Rig, at, failed, instants, jobs

SECONDLY = {"schedule": "* * * * * *"}
MINUTELY = {"schedule": "* * * * *"}


def plan(rig: Rig) -> None:
    """The planner comes before the worker has written anything down."""
    rig.plan()


def test_an_occurrence_is_not_skipped_for_a_run_that_has_ended(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": MINUTELY}))
    rig.tick(minutes=1)
    rig.executor.finish_all()
    rig.turn(minutes=1)
    plan(rig)
    assert rig.statuses("a") == ["RUNNING", "PENDING"], "it waits until the other's end is written down"
    rig.worker.tick(rig.store.now())
    assert rig.statuses("a") == ["COMPLETED", "RUNNING"]
    assert instants(rig.runs("a")) == [at(8, 1), at(8, 2)]
    assert rig.skips("a") == []


def test_an_end_that_is_heard_of_a_moment_later_counts(store: SqlStore) -> None:
    """What starts does not wait for that moment."""
    rig = Rig(store, jobs({"a": MINUTELY, "b": {**MINUTELY, "overlap": "allow"}, "c": MINUTELY}))
    rig.tick(minutes=1)
    (heard,), (runs,) = rig.executor.of("a"), rig.executor.of("c")
    rig.turn(minutes=1)
    seen = []

    def listen() -> None:
        seen.append([len(rig.runs(name)) for name in "abc"])
        rig.executor.finish(heard)

    rig.listen = listen
    plan(rig)
    assert seen == [[1, 2, 1]]
    assert rig.skips("a") == []
    assert rig.statuses("a") == ["RUNNING", "PENDING"]
    assert [skip.blocked_by for skip in rig.skips("c")] == [runs]
    plan(rig)
    assert len(seen) == 1


def test_a_turn_that_comes_early_listens_on(sqlite: SqlStore) -> None:
    """Whoever pokes the planner does not cut that moment short."""
    rig = Rig(sqlite, jobs({"a": MINUTELY}))
    rig.tick(minutes=1)
    rig.turn(minutes=1)
    now = rig.store.now()
    for early in (timedelta(0), timedelta(milliseconds=50), timedelta(milliseconds=199)):
        rig.planner.tick(now + early)
        assert rig.skips("a") == []
    rig.planner.tick(now + planner.HEARING)
    assert [skip.first for skip in rig.skips("a")] == [at(8, 2)]


def test_a_clock_that_is_set_back_does_not_listen_for_ever(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": MINUTELY}))
    rig.tick(minutes=1)
    rig.turn(minutes=1)
    now = rig.store.now()
    rig.planner.tick(now + timedelta(seconds=30))
    rig.planner.tick(now)
    assert [skip.first for skip in rig.skips("a")] == [at(8, 2)]


def test_any_number_in_doubt_hides_no_other(sqlite: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner, "BATCH", 2)
    names = [f"j{number}" for number in range(7)]
    rig = Rig(sqlite, jobs({**dict.fromkeys(names, MINUTELY), "z": {**MINUTELY, "overlap": "allow"}}))
    rig.tick(minutes=1)
    listened = []
    rig.listen = lambda: listened.append(len(rig.runs("z")))
    rig.turn(minutes=1)
    plan(rig)
    assert listened == [2]
    assert [len(rig.skips(name)) for name in names] == [1] * 7
    assert rig.state("z").next_due_at == at(8, 3)


def test_a_node_that_leaves_while_it_listens_skips_nothing(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": MINUTELY}))
    rig.tick(minutes=1)
    rig.turn(minutes=1)
    rig.listen = rig.drain.begin
    plan(rig)
    assert rig.skips("a") == []
    assert rig.state("a").next_due_at == at(8, 2)


def test_what_was_asked_for_after_the_instant_was_not_in_its_way(store: SqlStore) -> None:
    """The planner comes late, and somebody has started the job meanwhile."""
    rig = Rig(store, jobs({"a": MINUTELY}))
    rig.turn(minutes=1, seconds=2)
    rig.desk.run_now("a", author="me")
    rig.worker.tick(rig.store.now())
    plan(rig)
    assert rig.statuses("a") == ["RUNNING", "PENDING"]
    rig.finish()
    assert instants(rig.runs("a")) == [at(8, 1)]
    rig.tick(minutes=1)
    assert rig.skipped("a") == [("overlap", at(8, 2), at(8, 2), 1)]


def test_one_that_is_tried_again_is_in_the_way(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {**MINUTELY, "retries": ["5m"]}}))
    rig.tick(minutes=1)
    rig.executor.finish_all(failed())
    rig.turn(minutes=1)
    plan(rig)
    assert rig.skipped("a") == [("overlap", at(8, 2), at(8, 2), 1)]


def test_one_that_has_ended_is_not_replaced(store: SqlStore) -> None:
    """To ask it to end would turn what it came to into `canceled`."""
    rig = Rig(store, jobs({"a": {**MINUTELY, "overlap": "replace"}}))
    rig.tick(minutes=1)
    rig.executor.finish_all(failed())
    rig.turn(minutes=1)
    plan(rig)
    rig.worker.tick(rig.store.now())
    assert rig.statuses("a") == ["FAILED", "RUNNING"]


def test_a_reload_judges_what_is_owed_by_what_has_ended(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": MINUTELY}))
    rig.tick(minutes=1)
    rig.executor.finish_all()
    rig.turn(minutes=1)
    rig.reload(jobs({"a": {**MINUTELY, "priority": 1}}))
    assert rig.skips("a") == []
    rig.tick()
    assert rig.statuses("a") == ["COMPLETED", "RUNNING"]
    assert instants(rig.runs("a")) == [at(8, 1), at(8, 2)]


@pytest.mark.parametrize("finished", [True, False])
def test_a_start_judges_what_is_owed_by_what_the_former_supervisor_wrote_down(store: SqlStore, finished: bool) -> None:
    """Before anything of that is settled."""
    rig = Rig(store, jobs({"a": MINUTELY}))
    rig.tick(minutes=1)
    (run,) = rig.executor.live
    rig.turn(minutes=1)
    following = Rig(store, jobs({"a": {**MINUTELY, "priority": 1}}), rig.clock, start=False)
    following.reloader.start(
        following.load(), author="start", node=following.node, gone=[rig.node], finished={(run, 1)} if finished else ()
    )
    assert [skip.blocked_by for skip in rig.skips("a")] == ([] if finished else [run])
    assert instants(rig.runs("a")) == ([at(8, 1), at(8, 2)] if finished else [at(8, 1)])


def test_an_end_that_can_never_be_written_does_not_stop_planning(
    sqlite: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = Rig(sqlite, jobs({"a": MINUTELY, "b": MINUTELY}))
    rig.tick(minutes=1)
    (stuck,) = rig.executor.of("a")
    write = rig.worker._settler._write

    def refuse(ended: list[object], *rest: object, **more: object) -> int:
        if any(one.run.id == stuck for one in ended):  # type: ignore[attr-defined]
            raise ValueError("cannot be written")
        return write(ended, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(rig.worker._settler, "_write", refuse)
    for _ in range(4):
        rig.executor.finish_all()
        rig.tick(minutes=1)
    assert instants(rig.runs("b")) == [at(8, minute) for minute in range(1, 6)]
    first, second = rig.runs("a")
    assert (first.status, second.status) == (Status.RUNNING, Status.PENDING)
    (skip,) = rig.skips("a")
    assert (skip.reason, skip.first, skip.last) == (SkipReason.OVERLAP, at(8, 3), at(8, 5))
    assert skip.blocked_by == second.id, "which waits for the lock, as the ledger has it"
    monkeypatch.undo()
    rig.tick()
    assert rig.statuses("a") == ["COMPLETED", "RUNNING"]


@contextmanager
def written_by_another(database: Path) -> Iterator[None]:
    """Somebody else holds the database's one place for a writer."""
    other = sqlite3.connect(database, isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")
    finally:
        other.close()


def skips_by_what_was_over(rig: Rig, job: str) -> list[tuple[datetime, datetime]]:
    """Overlap skips, with the end of the run that they name, where that had ended before."""
    runs = {run.id: run for run in rig.runs(job)}
    found = []
    for skip in rig.skips(job):
        if skip.reason == SkipReason.OVERLAP:
            assert skip.blocked_by is not None
            ended = runs[skip.blocked_by].finished_at
            if ended is not None and ended <= skip.first:
                found.append((skip.first, ended))
    return found


@pytest.mark.parametrize("first", ["planner", "worker"])
def test_a_database_that_another_writer_locks_for_ten_seconds(
    sqlite: SqlStore, sqlite_place: Place, first: str
) -> None:
    """Runs of 0.2 s end while nothing can be written. None of them is in the way of what falls due after it."""
    names = [f"j{number}" for number in range(4)]
    rig = Rig(sqlite, jobs(dict.fromkeys(names, SECONDLY)))
    loops = [rig.planner.tick, rig.worker.tick]
    refused: list[datetime] = []

    def turn(now: datetime) -> None:
        for tick in loops if first == "planner" else reversed(loops):
            try:
                tick(now)
            except Unavailable:
                refused.append(now)

    for second in range(20):
        now = rig.turn(seconds=0.8)
        if second == 5:
            with written_by_another(sqlite_place.state_dir / "scheduler.db"):
                turn(now)
        elif not 5 < second < 15:
            turn(now)
        rig.turn(seconds=0.2)
        rig.executor.finish_all()
    rig.tick(seconds=0.8)
    assert len(refused) == 2
    for name in names:
        assert skips_by_what_was_over(rig, name) == []
        assert rig.statuses(name).count("COMPLETED") == 9
    rig.tick(minutes=2)
    assert rig.audit(START).clean


def test_a_row_that_another_node_holds_is_judged_as_soon_as_it_is_free(
    fresh_postgres_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That moment does not begin anew: nodes that meet again and again would leave the job for as long."""
    store, other = fresh_postgres_place.open(), fresh_postgres_place.open()
    rig = Rig(store, jobs({"a": MINUTELY}))
    rig.tick(minutes=1)
    rig.turn(minutes=1)
    asked = []
    monkeypatch.setattr(rig.planner, "_again", lambda: asked.append(1))
    now = rig.store.now()
    rig.planner.tick(now)
    with other.begin() as tx:
        tx.jobs.states(["a"], lock=True)
        rig.planner.tick(now + planner.HEARING)
    assert (len(asked), rig.skips("a")) == (2, [])
    rig.planner.tick(now + planner.HEARING + timedelta(milliseconds=10))
    assert [skip.first for skip in rig.skips("a")] == [at(8, 2)]
    assert len(asked) == 2
    store.close()
    other.close()
