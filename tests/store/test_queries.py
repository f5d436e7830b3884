"""The read models for people."""

from __future__ import annotations

import gc
import weakref
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from scheduler.core.errors import InvalidInput
from scheduler.core.job import Queue
from scheduler.core.model import Cause, Output, Pause, Run, SkipReason, Status
from scheduler.core.queries import Page, RunFilter, Waiting
from scheduler.store.schema import HEAD
from scheduler.store.store import SqlStore
from tests.databases import Place
from tests.store.world import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    T0,
    add,
    claim,
    get,
    new_run,
    occurrence,
    set_up,
    settle,
    settlement,
    skipped,
    state,
)


def shown(page: Page) -> list[str]:
    return [entry.run.id if entry.run is not None else entry.skip.reason for entry in page.entries]  # type: ignore[union-attr]


def history(store: SqlStore, limit: int = 50, **which: object) -> list[str]:
    with store.queries() as queries:
        return shown(queries.history(RunFilter(**which), limit))  # type: ignore[arg-type]


def test_a_job_at_a_glance(store: SqlStore) -> None:
    set_up(store, ["job", "idle", state("gone", removed_at=T0)])
    pause, upcoming = Pause("job", T0 + HOUR, None, "why", "me"), Pause("idle", T0 + DAY, None, "", "")
    first, second, third = (new_run("job", payload=number) for number in range(3))
    add(store, first, second, third, new_run("job", not_before=T0 + DAY))
    runs = claim(store, limit=2)
    settle(store, settlement(runs[0], Status.FAILED, reason="exit", exit_code=3))
    with store.begin() as tx:
        tx.runs.skip([skipped("job", T0), skipped("job", T0 + MINUTE)])
        tx.jobs.pause([pause, upcoming])
    with store.queries() as queries:
        idle, job = queries.jobs(T0 + 2 * HOUR)
        assert [view.state.name for view in queries.jobs(T0, q="JO")] == ["job"]
        assert queries.jobs(T0, q="%") == []
        assert [view.state.name for view in queries.jobs(T0, ["gone", "nothing"])] == ["gone"]
        assert queries.jobs(T0, ["nothing"]) == []
    assert [run.id for run in job.running] == [second.id]
    assert (job.waiting, job.pause, job.upcoming, job.definition) == (2, pause, None, {"of": "test"})
    assert job.last is not None
    assert job.last.id in (first.id, second.id)
    assert job.last_skip is not None
    assert (job.last_skip.count, job.last_skip.last) == (2, T0 + MINUTE)
    assert job.state.consecutive_failures == 1
    assert (idle.running, idle.waiting, idle.last, idle.pause, idle.upcoming) == ((), 0, None, None, upcoming)


def test_the_last_run_is_the_one_that_started_last(store: SqlStore) -> None:
    set_up(store)
    old, new = new_run("job"), new_run("job", priority=1)
    add(store, old, new)
    claim(store, T0, limit=1)
    claim(store, T0 + MINUTE, limit=1)
    add(store, new_run("job", not_before=T0 + DAY))
    with store.queries() as queries:
        (job,) = queries.jobs(T0)
    assert job.last is not None
    assert job.last.id == old.id


def test_history_merges_runs_and_skips(store: SqlStore) -> None:
    set_up(store)
    one, two = occurrence("job", T0, lock=None), occurrence("job", T0 + 10 * MINUTE, lock=None)
    add(store, one)
    with store.begin() as tx:
        tx.runs.skip([skipped("job", T0 + MINUTE), skipped("job", T0 + 2 * MINUTE, SkipReason.PAUSED)])
    add(store, two)
    assert history(store) == [two.id, "paused", "missed", one.id]
    assert history(store, skips=False) == [two.id, one.id]


def test_filters(store: SqlStore) -> None:
    set_up(store, ["a", "b"])
    due, event, waiting = occurrence("a", T0), new_run("b", cause=Cause.EVENT), new_run("b", not_before=T0 + DAY)
    add(store, due, event, waiting)
    runs = {run.id: run for run in claim(store)}
    settle(store, settlement(runs[event.id], Status.FAILED))
    with store.begin() as tx:
        tx.runs.skip([skipped("a", T0 - HOUR), skipped("b", T0 + HOUR)])
    assert history(store, jobs=("a",)) == [due.id, "missed"]
    assert len(history(store, jobs=("a", "b"))) == 5
    assert history(store, jobs=("nothing",)) == []
    assert history(store, statuses=(Status.FAILED,)) == [event.id]
    assert history(store, statuses=(Status.RUNNING,)) == [due.id]
    assert history(store, statuses=(Status.PENDING,)) == [waiting.id]
    assert history(store, statuses=(Status.PENDING, Status.RUNNING)) == [waiting.id, due.id]
    assert history(store, statuses=(Status.SKIPPED,)) == ["missed", "missed"]
    assert history(store, causes=("event",)) == [event.id]
    assert history(store, causes=("schedule",)) == ["missed", due.id, "missed"]
    assert history(store, since=T0 + MINUTE) == ["missed"]
    assert history(store, until=T0) == ["missed"]


def test_paging_shows_everything_once_also_while_new_entries_come(store: SqlStore) -> None:
    set_up(store)
    expected = 0
    for number in range(12):
        at = T0 + number * MINUTE
        if number % 3 == 0:
            with store.begin() as tx:
                tx.runs.skip([skipped("job", at)])
        else:
            add(store, occurrence("job", at))
        expected += 1
    pages: list[Page] = []
    cursor = None
    while not pages or cursor is not None:
        with store.queries() as queries:
            pages.append(queries.history(RunFilter(), 5, cursor))
        cursor = pages[-1].cursor
        add(store, occurrence("job", T0 + DAY + len(pages) * MINUTE))
    entries = [entry for page in pages for entry in page.entries]
    assert [len(page.entries) for page in pages] == [5, 5, 2]
    assert len(entries) == len(set(entries)) == expected
    assert all(one.at >= other.at for one, other in pairwise(entries))


def test_a_range_that_grows_stays_in_its_place(store: SqlStore) -> None:
    """So that pages are pieces of one list, by when things were recorded, however many are on a page."""
    set_up(store, ["long", "short", "job"])
    with store.begin() as tx:
        tx.runs.skip([skipped("long", T0)])
        tx.runs.skip([skipped("short", T0 + 2 * MINUTE)])
    runs = [new_run("job", created_at=T0 + minutes * MINUTE) for minutes in (1, 3, 5)]
    add(store, *runs)
    with store.begin() as tx:
        tx.runs.skip([skipped("long", T0 + 4 * MINUTE)])
    with store.queries() as queries:
        whole = queries.history(RunFilter())
        single: list[Page] = []
        while not single or single[-1].cursor is not None:
            single.append(queries.history(RunFilter(), 1, single[-1].cursor if single else None))
    assert [entry.at for entry in whole.entries] == [T0 + minutes * MINUTE for minutes in (5, 3, 2, 1, 0)]
    assert [entry for page in single for entry in page.entries] == list(whole.entries)
    assert whole.entries[-1].skip is not None
    assert whole.entries[-1].skip.last == T0 + 4 * MINUTE


@pytest.mark.parametrize("cursor", ["", "1", "r1", "r-1s2", "r1s2 ", "r１s２", "r" + "9" * 30 + "s1"])
def test_a_cursor_of_somebody_else_is_refused(store: SqlStore, cursor: str) -> None:
    with store.queries() as queries, pytest.raises(InvalidInput, match="cursor"):
        queries.history(RunFilter(), 5, cursor)


def test_a_run_in_detail(store: SqlStore) -> None:
    set_up(store)
    run = new_run("job", payload={"a": 1})
    add(store, run)
    for _ in range(2):
        (mine,) = claim(store)
        settle(store, settlement(mine, Status.PENDING, not_before=T0), now=T0)
    retry = new_run("job", retry_of=run.id, cause=Cause.RETRY)
    add(store, retry)
    with store.queries() as queries:
        detail = queries.run(run.id)
        assert queries.run("nothing") is None
    assert detail is not None
    assert detail.run == get(store, run.id)
    assert [(one.number, one.outcome) for one in detail.attempts] == [(1, "exit"), (2, "exit")]
    assert detail.retried_by == (retry.id,)
    assert detail.waiting == Waiting("queue", queue="default", ahead=0)


def test_why_a_run_waits(store: SqlStore) -> None:
    set_up(store, ["job", "paused"], queues=[Queue("default", concurrency=1)])
    holder, behind = new_run("job", lock="lock:x"), new_run("job", lock="lock:x")
    later, paused = new_run("job", not_before=T0 + HOUR), new_run("paused")
    second, first = new_run("job"), new_run("job", priority=1)
    with store.begin() as tx:
        tx.jobs.pause([Pause("paused", T0, None, "", "")])
    add(store, holder)
    claim(store)
    add(store, behind, later, paused, second, first)
    with store.queries() as queries:
        found = queries.waiting([run.id for run in (holder, behind, later, paused, second, first)])
    assert found == {
        behind.id: Waiting("lock", lock="lock:x", holder_run=holder.id, holder_job="job"),
        later.id: Waiting("time", until=T0 + HOUR),
        paused.id: Waiting("pause"),
        second.id: Waiting("queue", queue="default", ahead=1),
        first.id: Waiting("queue", queue="default", ahead=0),
    }


def test_a_run_is_found_by_the_end_of_its_id(store: SqlStore) -> None:
    set_up(store)
    runs = [new_run("job") for _ in range(3)]
    add(store, *runs)
    with store.queries() as queries:
        assert queries.find_runs(runs[1].id) == [runs[1].id]
        assert queries.find_runs(runs[1].id[-8:]) == [runs[1].id]
        assert queries.find_runs(runs[1].id[-3:]) == []
        assert queries.find_runs("%%%%%%%%") == []
        assert queries.find_runs("ffffffffffff") == []


def test_queues_and_nodes(store: SqlStore) -> None:
    set_up(store, nodes=["n1", "n2"], queues=[Queue("q", rate=1.0, burst=2)])
    add(
        store,
        new_run("job", queue="q"),
        new_run("job", queue="q", created_at=T0 + SECOND, lock="lock:x"),
        new_run("job", queue="q", created_at=T0 + 2 * SECOND),
        new_run("job", queue="q", lock="lock:x"),
        new_run("job", queue="q", not_before=T0 + DAY),
    )
    claim(store, limit=1)
    with store.queries() as queries:
        default, q, _ = queries.queues()
        nodes = queries.nodes()
    assert (q.running, q.ready, q.waiting, q.oldest, q.tokens) == (1, 2, {"lock": 1, "time": 1}, T0 + SECOND, 1.0)
    assert (default.running, default.ready, default.waiting, default.oldest, default.tokens) == (0, 0, {}, None, None)
    assert [(view.node.id, view.running) for view in nodes] == [("n1", 1), ("n2", 0)]


def test_gauges(store: SqlStore) -> None:
    set_up(store, ["job", "idle", state("gone", removed_at=T0)])
    dead, running, waiting = new_run("job", payload=1), new_run("job"), new_run("job", not_before=T0 + DAY)
    add(store, dead, running, waiting, new_run("gone", payload=2))
    runs = {run.id: run for run in claim(store)}
    settle(store, settlement(runs[dead.id], Status.FAILED, exit_code=3), now=T0 + 5 * SECOND)
    with store.begin() as tx:
        tx.jobs.pause([Pause("job", T0 - HOUR, None, "", "")])
        tx.runs.request_cancel([waiting.id], "", T0 + HOUR)
        tx.runs.drop_pending("gone", T0)
        tx.generations.add("h", {}, T0, "")
    with store.queries() as queries:
        found = queries.gauges(T0)
    idle, job = found.jobs
    assert (job.running, job.waiting, job.dead_letters, job.paused_since) == (1, 0, 1, T0 - HOUR)
    assert (job.last_start_at, job.last_end_at, job.last_duration, job.last_exit_code) == (
        T0,
        T0 + 5 * SECOND,
        5.0,
        3,
    )
    assert job.state.consecutive_failures == 1
    assert (job.attempt_since, idle.attempt_since) == (T0, None)
    assert (idle.running, idle.dead_letters, idle.paused_since, idle.last_start_at, idle.last_end_at) == (
        0,
        0,
        None,
        None,
        None,
    )
    assert found.generation == 1
    assert found.dead_letters == {"job": 1, "gone": 1}
    assert [view.queue.name for view in found.queues] == ["default", "scans"]
    assert [view.node.id for view in found.nodes] == ["n1"]


def test_generations_without_their_texts(store: SqlStore) -> None:
    with store.begin() as tx:
        tx.generations.add("h1", {"jobs.yaml": "x"}, T0, "me")
        tx.generations.add("h2", {"jobs.yaml": "y"}, T0, "you")
    with store.queries() as queries:
        assert [(line.id, line.hash, line.author) for line in queries.generations()] == [
            (2, "h2", "you"),
            (1, "h1", "me"),
        ]
        assert [line.id for line in queries.generations(1)] == [2]


def test_dead_letters_in_pages(store: SqlStore) -> None:
    set_up(store, ["a", "b"])
    runs = [new_run(job, payload={"n": number}) for number, job in enumerate("aabab")]
    add(store, *runs)
    settle(store, *[settlement(run, Status.FAILED) for run in claim(store)])
    with store.queries() as queries:
        page = queries.dead_letters(limit=3)
        rest = queries.dead_letters(limit=3, cursor=page.cursor)
        of_a = queries.dead_letters("a")
    assert shown(page) + shown(rest) == [run.id for run in reversed(runs)]
    assert rest.cursor is None
    assert shown(of_a) == [runs[3].id, runs[1].id, runs[0].id]
    assert [entry.run.payload for entry in of_a.entries if entry.run] == [{"n": 3}, {"n": 1}, {"n": 0}]


def test_the_state_of_the_database(store: SqlStore) -> None:
    set_up(store)
    status = store.db_status()
    assert status.kind == store.kind
    assert status.revision == HEAD
    assert status.oldest_release == "0.1.0"
    assert status.size > 10_000
    assert {"runs", "jobs", "locks"} <= status.rows.keys()
    assert (status.rows["jobs"], status.rows["runs"]) == (1, 0)


class _Name(str):
    """Of which one can tell whether anybody still has it."""


def test_nobody_has_the_names_of_a_large_statement_for_ever(store: SqlStore) -> None:
    set_up(store)
    names = [_Name(f"job-{number}") for number in range(100)]
    with store.read() as tx:
        assert tx.runs.pending_counts(names) == {}
    first = weakref.ref(names[0])
    del names
    store.let_go()
    gc.collect()
    assert first() is None


def test_rows_are_counted(store: SqlStore) -> None:
    set_up(store)
    add(store, *(new_run("a", payload=number) for number in range(5)))
    assert store.db_status().rows["runs"] == 5


def test_the_rows_of_a_large_table_are_estimated_from_below(
    fresh_postgres_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduler.store.dialects.postgresql.COUNTED", 3)
    with closing(fresh_postgres_place.open()) as store:
        set_up(store)
        with store._database.writing() as connection:
            connection.exec_driver_sql("ALTER TABLE runs SET (autovacuum_enabled = false)")
        add(store, *(new_run("a", payload=number) for number in range(5)))
        assert store.db_status().rows["runs"] == 4
        with store._database.writing() as connection:
            connection.exec_driver_sql("ANALYZE runs")
        assert store.db_status().rows["runs"] == 5


def _end(store: SqlStore, run: Run, *printed: bytes, **changes: Any) -> None:
    """Of the attempt that `run` is at."""
    with store.begin() as tx:
        tx.runs.put_output([Output(run.id, run.attempt, one, b"", 0, True) for one in printed], [run])
        tx.runs.settle([settlement(run, **changes)], T0)


def test_what_printed_nothing_needs_no_row_and_hides_what_was_printed_before(store: SqlStore) -> None:
    set_up(store, ["a"])
    add(store, new_run("a"))
    (first,) = claim(store)
    _end(store, first, b"once", status=Status.PENDING, not_before=T0)
    (second,) = claim(store)
    with store.queries() as queries:
        assert queries.output(first.id) == Output(first.id, 1, b"once", b"", 0, True)
    _end(store, second, b"", status=Status.FAILED)
    assert store.db_status().rows["outputs"] == 1
    with store.queries() as queries:
        assert queries.output(first.id) is None
        assert queries.output(first.id, 2) is None
        assert queries.output(first.id, 1) == Output(first.id, 1, b"once", b"", 0, True)


def test_what_tells_while_it_runs_has_an_output_before_its_end(store: SqlStore) -> None:
    set_up(store, ["a"])
    add(store, new_run("a"))
    (run,) = claim(store)
    told = Output(run.id, 1, b"", b"so far", 0, False)
    with store.begin() as tx:
        tx.runs.put_output([told, replace(told, run="gone")])
    with store.queries() as queries:
        assert queries.output(run.id) == told


def test_now_is_the_time_of_the_database(store: SqlStore) -> None:
    from datetime import UTC, datetime, timedelta

    assert abs(store.now() - datetime.now(UTC)) < timedelta(seconds=30)
