"""What jobs are kept as: compare-and-set, in order, found by index."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from datetime import datetime

import pytest

from scheduler.core.model import JobState
from scheduler.core.state import Flip, State, Why
from scheduler.store.store import SqlStore
from tests.databases import Place
from tests.store.plans import plan_of, statements_on
from tests.store.world import DAY, HOUR, MINUTE, SECOND, T0, add, claim, job_state, new_run, set_up, settle, settlement
from tests.store.world import state as job


def due(name: str, deadline: datetime | None, kept: str = "up") -> JobState:
    return job(name, deadline_at=deadline, state=kept)


def missed(name: str = "job", deadline: datetime = T0) -> Flip:
    return Flip(name, State.UP, State.MISSED, deadline, Why.DEADLINE, deadline=deadline)


def recovered(name: str = "job", at: datetime = T0 + HOUR) -> Flip:
    return Flip(name, State.MISSED, State.UP, at, Why.SUCCESS, "run")


def store_all(store: SqlStore, *flips: Flip, now: datetime = T0 + HOUR) -> list[Flip]:
    with store.begin() as tx:
        return tx.jobs.flip(flips, now)


def test_a_flip_changes_its_job_and_is_remembered(store: SqlStore) -> None:
    set_up(store, [due("job", T0)])
    (stored,) = store_all(store, missed())
    assert stored == replace(missed(), deadline=None, seen_at=T0 + HOUR, id=stored.id)
    assert stored.id > 0
    after = job_state(store)
    assert (after.state, after.state_since) == ("missed", T0)
    (again,) = store_all(store, recovered(), now=T0 + 2 * HOUR)
    assert again.was_since == T0
    with store.queries() as queries:
        assert queries.flips("job") == [again, stored]
        assert queries.flips("job", 1) == [again]
        assert queries.flips("nobody") == []


@pytest.mark.parametrize(
    "flip",
    [
        replace(missed(), old=State.FAILING),
        replace(missed(), deadline=T0 + SECOND),
        replace(missed(), job="nobody"),
    ],
    ids=["another state", "another deadline", "no such job"],
)
def test_what_is_no_longer_true_is_not_stored(store: SqlStore, flip: Flip) -> None:
    set_up(store, [due("job", T0)])
    assert store_all(store, flip) == []
    assert job_state(store).state == "up"


def test_several_flips_of_a_job_are_stored_in_their_order(store: SqlStore) -> None:
    set_up(store, [due("job", T0), due("other", T0)])
    stored = store_all(store, missed(), missed("other"), recovered(), missed())
    assert [(one.job, str(one.new)) for one in stored] == [
        ("job", "missed"),
        ("other", "missed"),
        ("job", "up"),
        ("job", "missed"),
    ]
    assert [one.was_since for one in stored] == [None, None, T0, T0 + HOUR]
    assert job_state(store).state == "missed"


def test_flips_of_one_moment_are_told_from_those_before(store: SqlStore) -> None:
    set_up(store, [due("job", T0)])
    (first,) = store_all(store, missed())
    (second,) = store_all(store, recovered())
    assert first.id < second.id


def test_which_deadlines_have_passed(store: SqlStore) -> None:
    set_up(
        store,
        [
            due("late", T0),
            due("later", T0 + MINUTE),
            due("told", T0, "missed"),
            due("never", None),
            due("fails", T0 - HOUR, "failing"),
        ],
    )
    with store.read() as tx:
        assert [one.name for one in tx.jobs.passed(T0)] == ["fails", "late"]
        assert [one.name for one in tx.jobs.passed(T0 - SECOND)] == ["fails"]
        assert tx.jobs.next_deadline(T0) == T0 + MINUTE
        assert tx.jobs.next_deadline(T0 + MINUTE) is None


def test_settling_tells_how_the_jobs_stand(store: SqlStore) -> None:
    set_up(store, [due("job", T0 + HOUR), due("other", None)])
    add(store, new_run("job"), new_run("job"), new_run("other"))
    runs = claim(store)
    with store.begin() as tx:
        settled = tx.runs.settle([settlement(runs[0])], T0 + SECOND)
    assert settled.jobs == {"job": job_state(store)}
    assert settled.jobs["job"].last_success_at == T0 + SECOND
    assert settled.jobs["job"].deadline_at == T0 + HOUR
    settle(store, *[settlement(run) for run in runs[1:]])


def test_old_flips_are_forgotten_a_few_at_a_time(store: SqlStore) -> None:
    set_up(store, [due("job", T0)])
    for number in range(3):
        store_all(store, missed(), recovered(), now=T0 + number * DAY)
    with store.begin() as tx:
        assert tx.jobs.prune_flips(T0 + DAY + SECOND, 3) == 3
        assert tx.jobs.prune_flips(T0 + DAY + SECOND, 3) == 1
        assert tx.jobs.prune_flips(T0 + DAY + SECOND, 3) == 0
    with store.queries() as queries:
        assert [one.seen_at for one in queries.flips("job")] == [T0 + 2 * DAY] * 2


def test_the_next_deadline_is_found_by_index(fresh_place: Place) -> None:
    """Once a second for ever, on tables that were never analyzed."""
    with closing(fresh_place.open()) as store:
        _look_at_plans(store)


def _look_at_plans(store: SqlStore) -> None:
    set_up(store, [due(f"job-{number:04}", T0 + number * MINUTE) for number in range(2_000)])
    with statements_on(store, ("jobs", "flips")) as statements, store.begin() as tx:
        tx.jobs.next_deadline(T0)
        tx.jobs.prune_flips(T0, 10)
    with store.queries() as queries, statements_on(store, ("flips",)) as more:
        queries.flips("job-0001")
    assert len(statements) == 2
    plans = [plan_of(store, *one) for one in (*statements, *more)]
    for plan, index in zip(plans, ("jobs_deadline", "flips_seen", "flips_job"), strict=True):
        assert index in plan, plan
        assert "Seq Scan" not in plan
