"""Skips, what the audit reads, and what retention leaves."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import pytest

from scheduler.core.model import Cause, NewRun, Output, Skip, SkipReason, Status
from scheduler.store.store import SqlStore
from tests.store.world import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    T0,
    add,
    claim,
    get,
    job_state,
    new_run,
    occurrence,
    set_up,
    settle,
    settlement,
    skipped,
)

FAR = T0 + 1000 * DAY


def record(store: SqlStore, *skips: Skip) -> None:
    with store.begin() as tx:
        tx.runs.skip(skips)


def entries(
    store: SqlStore, first: datetime = T0 - 1000 * DAY, last: datetime = FAR
) -> tuple[list[datetime], list[Skip]]:
    with store.read() as tx:
        return tx.ledger.entries("job", first, last)


def ranges(store: SqlStore) -> list[tuple[int, int, int]]:
    """(first, last, count) in minutes after T0."""
    return [((one.first - T0) // MINUTE, (one.last - T0) // MINUTE, one.count) for one in entries(store)[1]]


def minute(number: int, reason: SkipReason = SkipReason.MISSED, **changes: object) -> Skip:
    return skipped("job", T0 + number * MINUTE, reason, **changes)


def test_skips_that_follow_one_another_are_one_row(store: SqlStore) -> None:
    set_up(store)
    record(store, minute(1), minute(2))
    record(store, minute(3))
    record(store, Skip("job", SkipReason.MISSED, T0 + 4 * MINUTE, T0 + 9 * MINUTE, 6, detail="down"))
    assert ranges(store) == [(1, 9, 9)]
    assert entries(store)[1][0].detail == "down"


def test_another_reason_or_blocker_begins_another_row(store: SqlStore) -> None:
    set_up(store)
    record(
        store, minute(1), minute(2, SkipReason.OVERLAP, blocked_by="a"), minute(3, SkipReason.OVERLAP, blocked_by="b")
    )
    record(store, minute(4, SkipReason.OVERLAP, blocked_by="b"), minute(5))
    assert ranges(store) == [(1, 1, 1), (2, 2, 1), (3, 4, 2), (5, 5, 1)]


def test_a_run_in_between_begins_another_row(store: SqlStore) -> None:
    set_up(store)
    record(store, minute(1))
    add(store, occurrence("job", T0 + 2 * MINUTE))
    record(store, minute(3))
    add(store, new_run("job", cause=Cause.MANUAL))
    record(store, minute(4))
    assert ranges(store) == [(1, 1, 1), (3, 4, 2)]


def test_an_older_instant_is_a_row_of_its_own_and_disturbs_nothing(store: SqlStore) -> None:
    set_up(store)
    record(store, minute(5))
    record(store, minute(2))
    record(store, minute(3), minute(6))
    assert ranges(store) == [(2, 2, 1), (3, 3, 1), (5, 6, 2)]


def test_jobs_do_not_mix(store: SqlStore) -> None:
    set_up(store, ["job", "other"])
    record(store, minute(1), skipped("other", T0 + MINUTE), minute(2), skipped("other", T0 + 3 * MINUTE))
    record(store, skipped("other", T0 + 4 * MINUTE))
    assert ranges(store) == [(1, 2, 2)]
    with store.read() as tx:
        assert tx.ledger.totals(T0, FAR) == {"job": (0, {"missed": 2}), "other": (0, {"missed": 3})}


def test_entries(store: SqlStore) -> None:
    set_up(store)
    runs = [occurrence("job", T0 + number * MINUTE, lock=None) for number in range(5)]
    add(store, *runs)
    backfill = occurrence("job", T0 + MINUTE, key=f"backfill:{T0}", cause=Cause.BACKFILL, lock=None)
    add(store, backfill, new_run("job"))
    record(store, minute(7), minute(8))
    with store.begin() as tx:
        tx.runs.request_cancel([runs[0].id], "", T0)
        tx.runs.skip_waiting([runs[1].id, runs[2].id], "lock", T0)
    instants, skips = entries(store)
    assert instants == [T0 + number * MINUTE for number in (0, 3, 4)], "what was backfilled had been skipped"
    assert [(one.reason, one.first, one.last, one.count) for one in skips] == [
        (SkipReason.LOCK, T0 + MINUTE, T0 + MINUTE, 1),
        (SkipReason.LOCK, T0 + 2 * MINUTE, T0 + 2 * MINUTE, 1),
        (SkipReason.MISSED, T0 + 7 * MINUTE, T0 + 8 * MINUTE, 2),
    ]
    assert entries(store, T0 + 3 * MINUTE, T0 + 7 * MINUTE) == (
        [T0 + 3 * MINUTE, T0 + 4 * MINUTE],
        [Skip("job", SkipReason.MISSED, T0 + 7 * MINUTE, T0 + 8 * MINUTE, 2)],
    )
    assert entries(store, T0 + 9 * MINUTE, FAR) == ([], [])
    with store.read() as tx:
        assert tx.ledger.totals(T0, T0 + 8 * MINUTE) == {"job": (3, {"lock": 2, "missed": 2})}
        assert tx.ledger.totals(T0 + 3 * MINUTE, T0 + 6 * MINUTE) == {"job": (2, {})}


def _finish(store: SqlStore, run: str, at: datetime, status: Status = Status.COMPLETED) -> None:
    (mine,) = [one for one in claim(store, at - SECOND) if one.id == run]
    settle(store, settlement(mine, status), now=at)


def _six_runs(store: SqlStore, *ends: Status) -> list[NewRun]:
    """One an hour, which ended in these ways in turn."""
    set_up(store)
    runs = [new_run("job") for _ in range(6)]
    for index, run in enumerate(runs):
        add(store, run)
        _finish(store, run.id, T0 + index * HOUR + SECOND, ends[index % len(ends)])
    return runs


def _prune(
    store: SqlStore, keep: timedelta | int = 90 * DAY, now: datetime = FAR, limit: int = 1000, **more: timedelta
) -> int:
    with store.begin() as tx:
        return tx.runs.prune("job", keep, more.get("keep_output", 9999 * DAY), now, limit)


def _ids(store: SqlStore) -> set[str]:
    with store._database.reading() as connection:
        return set(connection.exec_driver_sql("SELECT id FROM runs").scalars())


def test_what_is_never_deleted(store: SqlStore) -> None:
    set_up(store)
    kept = {
        "last success": (new_run("job"), Status.COMPLETED),
        "last failure": (new_run("job"), Status.FAILED),
        "dead letter": (new_run("job", payload=1), Status.FAILED),
        "key of a request": (new_run("job", key="api:1", created_at=FAR - 47 * HOUR), Status.COMPLETED),
        "key of an event": (new_run("job", key="event:s:1", created_at=FAR - 47 * HOUR), Status.COMPLETED),
    }
    gone = {
        "older success": (new_run("job"), Status.COMPLETED),
        "older failure": (new_run("job"), Status.FAILED),
        "canceled": (new_run("job"), Status.CANCELED),
        "payload that was handled": (new_run("job", payload=1), Status.COMPLETED),
        "request of long ago": (new_run("job", key="api:2", created_at=FAR - 49 * HOUR), Status.COMPLETED),
    }
    add(store, *(run for run, _ in [*gone.values(), *kept.values()]))
    fate = {run.id: status for run, status in [*gone.values(), *kept.values()]}
    old_runs = claim(store, T0)
    settle(store, *[settlement(run, fate[run.id]) for run in old_runs if run.id != kept["last success"][0].id])
    settle(store, settlement(get(store, kept["last failure"][0].id), Status.FAILED))
    settle(store, settlement(get(store, kept["last success"][0].id)), now=T0 + MINUTE)
    running, waiting = new_run("job"), new_run("job", not_before=FAR)
    add(store, running, waiting)
    claim(store)
    # the last failure is the one that was settled last
    with store._database.writing() as connection:
        connection.exec_driver_sql(
            f"UPDATE jobs SET last_failure_seq = (SELECT seq FROM runs WHERE id = '{kept['last failure'][0].id}')"
        )
    removed = _prune(store, timedelta(0))
    assert removed == len(gone)
    assert _ids(store) == {run.id for run, _ in kept.values()} | {running.id, waiting.id}
    assert _prune(store, timedelta(0)) == 0


def test_the_last_success_and_failure_are_those_that_ended_last(store: SqlStore) -> None:
    runs = _six_runs(store, Status.COMPLETED, Status.FAILED)
    assert _prune(store) == 4
    assert _ids(store) == {runs[4].id, runs[5].id}


def test_by_count(store: SqlStore) -> None:
    runs = _six_runs(store, Status.COMPLETED)
    record(store, minute(-5))
    add(store, occurrence("job", T0, not_before=FAR))
    assert _prune(store, 10) == 0
    assert _prune(store, 2) == 5
    assert runs[4].id in _ids(store)
    assert runs[3].id not in _ids(store)
    assert ranges(store) == []


def test_small_batches_from_the_oldest_on(store: SqlStore) -> None:
    runs = _six_runs(store, Status.COMPLETED)
    assert _prune(store, limit=2) == 2
    assert _ids(store) == {run.id for run in runs[2:]}
    assert [_prune(store, limit=2) for _ in range(3)] == [2, 1, 0]


def test_a_summary_stays_per_day(store: SqlStore) -> None:
    set_up(store)
    for number, status in enumerate((Status.COMPLETED, Status.COMPLETED, Status.FAILED, Status.CANCELED)):
        run = occurrence("job", T0 + number * MINUTE)
        add(store, run)
        _finish(store, run.id, T0 + number * MINUTE + 11 * SECOND, status)
    waited = occurrence("job", T0 + 4 * MINUTE)
    add(store, waited)
    with store.begin() as tx:
        tx.runs.skip_waiting([waited.id], "lock", T0 + HOUR)
    record(store, minute(5), minute(6), minute(7, SkipReason.PAUSED), minute(60 * 13))
    last = occurrence("job", T0 + 20 * DAY)
    add(store, last)
    _finish(store, last.id, T0 + 20 * DAY + SECOND)
    assert _prune(store, 10 * DAY, T0 + 25 * DAY, limit=2) == 2
    _prune(store, 10 * DAY, T0 + 25 * DAY)
    with store._database.reading() as connection:
        rows = connection.exec_driver_sql(
            "SELECT completed, failed, canceled, skipped, seconds FROM summaries ORDER BY day"
        ).all()
    # the last failure is still there
    assert [(row.completed, row.failed, row.canceled) for row in rows] == [(2, 0, 1), (0, 0, 0)]
    assert '"lock":1' in rows[0].skipped
    assert '"missed":2' in rows[0].skipped
    assert '"paused":1' in rows[0].skipped
    assert rows[1].skipped == '{"missed":1}'
    assert rows[0].seconds == pytest.approx(3.0)
    assert date(2026, 3, 1) == T0.date()


def test_nothing_is_inserted_before_what_was_pruned(store: SqlStore) -> None:
    set_up(store)
    for number in range(3):
        run = occurrence("job", T0 + number * MINUTE)
        add(store, run)
        _finish(store, run.id, T0 + number * MINUTE + SECOND)
    assert _prune(store) == 2
    edge = job_state(store).pruned_before
    assert edge is not None
    assert T0 + MINUTE < edge <= T0 + 2 * MINUTE
    assert add(store, occurrence("job", T0), occurrence("job", T0 + MINUTE)) == set()
    record(store, minute(1), minute(0))
    assert entries(store) == ([T0 + 2 * MINUTE], [])
    late = occurrence("job", T0 + 2 * MINUTE, key="backfill:x")
    assert add(store, late, new_run("job")) >= {late.id}


def test_the_range_that_may_still_grow_stays(store: SqlStore) -> None:
    set_up(store)
    record(store, minute(1))
    assert _prune(store) == 0
    record(store, minute(2))
    assert ranges(store) == [(1, 2, 2)]


def test_outputs_go_earlier_than_runs(store: SqlStore) -> None:
    set_up(store)
    run, running = new_run("job"), new_run("job")
    add(store, run)
    claim(store)
    add(store, running)
    claim(store)
    outputs = [
        Output(run.id, 1, b"\x00head\xff", b"tail", 12, True),
        Output(run.id, 2, b"second", b"", 0, False),
        Output(running.id, 1, b"", b"", 0, False),
        Output("nothing", 1, b"", b"", 0, False),
    ]
    with store.begin() as tx:
        tx.runs.put_output(outputs)
        tx.runs.put_output([Output(run.id, 2, b"second, longer", b"", 0, True)])
    settle(store, settlement(get(store, run.id)), now=T0 + HOUR)
    with store.queries() as queries:
        assert queries.output(run.id, 1) == outputs[0]
        assert queries.output(run.id) == Output(run.id, 2, b"second, longer", b"", 0, True)
        assert queries.output("nothing") is None
    assert _prune(store, now=T0 + 2 * HOUR, keep_output=HOUR) == 0
    assert _prune(store, now=T0 + 3 * HOUR, keep_output=HOUR) == 2
    with store.queries() as queries:
        assert queries.output(run.id) is None
        assert queries.output(running.id) is not None
    assert run.id in _ids(store)


def test_what_belongs_to_a_run_goes_with_it(store: SqlStore) -> None:
    set_up(store)
    run, last = new_run("job", payload=1), new_run("job")
    for one in (run, last):
        add(store, one)
        claim(store)
        with store.begin() as tx:
            tx.runs.put_output([Output(one.id, 1, b"", b"", 0, True)])
        settle(store, settlement(get(store, one.id)))
    assert _prune(store) == 1
    with store._database.reading() as connection:
        for table in ("payloads", "attempts", "outputs"):
            owners = set(connection.exec_driver_sql(f"SELECT run FROM {table}").scalars())
            assert owners <= {last.id}, table
