"""What is asked for, or follows, while another node replaces the configuration in force."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import timedelta
from typing import Any

import pytest

from scheduler.core.commands import Accepted, IfBusy, RunRequest
from scheduler.core.errors import NotFound, Refused, SchedulerError, Unavailable
from scheduler.core.lifecycle import settle
from scheduler.core.model import Cause, Run, Status
from scheduler.core.outcome import Succeeded
from scheduler.core.ports import Transaction
from scheduler.core.requests import Claim
from scheduler.core.sign import Sign, Word
from scheduler.engine.aftermath import settle_all
from scheduler.engine.swap import swap
from scheduler.store.store import SqlStore
from tests.databases import Place
from tests.engine.rig import Rig, failed, jobs
from tests.until import until
from tests.waiting import waiting

ALLOW, QUEUE = {"overlap": "allow"}, {"overlap": "queue"}
MINUTELY = {"schedule": "* * * * *"}


@pytest.fixture
def other(postgres_place: Place) -> Iterator[SqlStore]:
    """The same database through connections of its own."""
    with closing(postgres_place.open()) as opened:
        yield opened


@contextmanager
def replacing(rig: Rig, other: SqlStore, text: str) -> Iterator[Transaction]:
    """In this block another node replaces what is in force, and has not committed yet."""
    old, rig.text = rig.in_force.current.configuration, text
    with other.begin() as tx:
        newest = tx.generations.newest(lock=True)
        swap(tx, newest, old, rig.load(), rig.store.now(), "another", drop_pending=True)
        yield tx


def _ask(rig: Rig, other: SqlStore, place: Place, text: str, ask: Callable[[], Any]) -> Any:
    """The answer to who asks before the commit of that text."""
    with ThreadPoolExecutor(1) as thread:
        with replacing(rig, other, text):
            answer = thread.submit(ask)
            until(lambda: waiting(place) == 1)
        return answer.result(20)


REQUESTS: Mapping[str, Mapping[str, Any]] = {
    "payload": {"payload": 1, "has_payload": True},
    "alone": {"if_busy": IfBusy.REFUSE},
    "replace": {"if_busy": IfBusy.REPLACE},
}


@pytest.mark.parametrize("how", REQUESTS)
def test_a_request_for_a_job_that_is_being_removed_is_refused(
    postgres: SqlStore, other: SqlStore, postgres_place: Place, how: str
) -> None:
    rig = Rig(postgres, jobs({"a": QUEUE, "b": {}}))
    requests = [RunRequest("a", "me", **REQUESTS[how]), RunRequest("b", "me")]
    gone, taken = _ask(rig, other, postgres_place, jobs({"b": {}}), lambda: rig.desk.ask(requests))
    assert isinstance(gone, NotFound)
    assert isinstance(taken, Accepted)
    assert [run.job for run in rig.runs()] == ["b"]


@pytest.mark.parametrize("how", REQUESTS)
def test_a_request_for_a_job_that_is_being_changed_is_served_by_its_new_definition(
    postgres: SqlStore, other: SqlStore, postgres_place: Place, how: str
) -> None:
    rig = Rig(postgres, jobs({"a": ALLOW}))
    request = RunRequest("a", "me", **REQUESTS[how])
    after = jobs({"a": {**QUEUE, "priority": 7}})
    (answer,) = _ask(rig, other, postgres_place, after, lambda: rig.desk.ask([request]))
    assert isinstance(answer, Accepted)
    assert [(run.lock, run.priority) for run in rig.runs()] == [("job:a", 7)]


def test_a_request_for_another_job_does_not_wait_for_a_reload(postgres: SqlStore, other: SqlStore) -> None:
    rig = Rig(postgres, jobs({"a": {}, "b": ALLOW}))
    with replacing(rig, other, jobs({"b": ALLOW})):
        (answer,) = rig.desk.ask([RunRequest("b", "me")])
        assert isinstance(answer, Accepted)


def test_requests_that_must_be_alone_do_not_meet_a_reload(
    postgres: SqlStore, other: SqlStore, postgres_place: Place
) -> None:
    """Whoever locks several jobs locks them in one order."""
    rig = Rig(postgres, jobs({"a": QUEUE, "b": QUEUE}))
    requests = [RunRequest("b", "me", payload=1, has_payload=True), RunRequest("a", "me")]
    with ThreadPoolExecutor(1) as thread:
        with other.begin() as tx:
            tx.jobs.states(["a"], lock=True)
            answers = thread.submit(rig.desk.ask, requests)
            until(lambda: waiting(postgres_place) == 1)
            tx.jobs.states(["b"], lock=True)
        assert all(isinstance(one, Accepted) for one in answers.result(20))


@pytest.mark.parametrize("verb", ["resume", "ack"])
def test_what_is_expected_of_a_job_is_judged_by_its_new_definition(
    postgres: SqlStore, other: SqlStore, postgres_place: Place, verb: str
) -> None:
    rig = Rig(postgres, jobs({"a": {"schedule": "0 8 * * *", "grace": "10m"}}))
    rig.tick(hours=20)
    rig.executor.finish_all(failed())
    rig.tick(hours=30)
    asked: Mapping[str, Callable[[], Any]] = {
        "resume": lambda: rig.desk.resume(["a"], author="me"),
        "ack": lambda: rig.desk.ack("a", reason="", author="me"),
    }
    after = jobs({"a": {"schedule": "0 8 * * *", "grace": "3h"}})
    _ask(rig, other, postgres_place, after, asked[verb])
    with postgres.read() as tx:
        deadline = tx.jobs.states(["a"])["a"].deadline_at
    assert deadline is not None
    assert deadline.hour == 11


def test_what_wakes_up_does_not_meet_a_reload(postgres: SqlStore, other: SqlStore, postgres_place: Place) -> None:
    """A reload holds the queues, then wants the runs of what it removes; the worker holds the runs that it woke."""
    rig = Rig(postgres, jobs({"a": {"retries": ["5m"]}}))
    run, _ = rig.desk.run_now("a", author="me")
    rig.tick()
    rig.executor.finish(run.id, failed())
    rig.tick(seconds=1)
    rig.clock.turn(minutes=6)
    with ThreadPoolExecutor(1) as thread:
        with other._inside(other._database.writing) as session:
            session.connection.exec_driver_sql("SELECT 1 FROM queues FOR UPDATE")
            turn = thread.submit(rig.worker.tick, rig.store.now())
            until(lambda: waiting(postgres_place) == 1)
            session.connection.exec_driver_sql("UPDATE runs SET priority = 3")
        turn.result(20)
    assert rig.run(run.id).priority == 3
    rig.tick(seconds=1)
    assert rig.run(run.id).attempt == 2


def _dead_letter(rig: Rig) -> Run:
    run, _ = rig.desk.run_now("a", author="me", payload=1, has_payload=True)
    rig.tick()
    rig.finish(failed())
    return rig.run(run.id)


def _retry(rig: Rig, run: str) -> Run | SchedulerError:
    try:
        return rig.desk.retry(run, author="me")
    except SchedulerError as error:
        return error


def _retry_all(rig: Rig, run: str) -> Run | SchedulerError:
    ((_, answer),) = rig.desk.retry_all([run], author="me")
    return answer


@pytest.mark.parametrize("retry", [_retry, _retry_all])
def test_a_dead_letter_of_a_job_that_is_being_removed_stays_one(
    postgres: SqlStore, other: SqlStore, postgres_place: Place, retry: Callable[[Rig, str], Run | SchedulerError]
) -> None:
    rig = Rig(postgres, jobs({"a": {**ALLOW, "retries": 0}, "b": {}}))
    letter = _dead_letter(rig)
    answer = _ask(rig, other, postgres_place, jobs({"b": {}}), lambda: retry(rig, letter.id))
    assert isinstance(answer, NotFound)
    assert rig.run(letter.id).discarded_at is None
    assert rig.statuses() == ["FAILED"]


@pytest.mark.parametrize("retry", [_retry, _retry_all])
def test_a_retry_for_a_job_that_is_being_changed_is_made_by_its_new_definition(
    postgres: SqlStore, other: SqlStore, postgres_place: Place, retry: Callable[[Rig, str], Run | SchedulerError]
) -> None:
    rig = Rig(postgres, jobs({"a": {**ALLOW, "retries": 0}}))
    letter = _dead_letter(rig)
    answer = _ask(rig, other, postgres_place, jobs({"a": QUEUE}), lambda: retry(rig, letter.id))
    assert isinstance(answer, Run)
    assert (answer.lock, answer.status) == ("job:a", Status.PENDING)


def test_a_backfill_of_a_job_that_is_being_changed_is_made_by_its_new_definition(
    postgres: SqlStore, other: SqlStore, postgres_place: Place
) -> None:
    rig = Rig(postgres, jobs({"a": {**MINUTELY, **ALLOW}}))
    first = rig.store.now()
    rig.turn(minutes=3)
    rig.planner.tick(rig.store.now())
    last = rig.store.now() - timedelta(minutes=1)
    _ask(
        rig,
        other,
        postgres_place,
        jobs({"a": {**MINUTELY, "lock": "db"}}),
        lambda: rig.desk.backfill("a", first, last, most=9, dry_run=False, reason="", author="me"),
    )
    made = {run.lock for run in rig.runs("a") if run.cause is Cause.BACKFILL}
    assert made == {"lock:db"}


CHAIN: Mapping[str, Mapping[str, Any]] = {"a": {}, "b": {**ALLOW, "after": "a"}}


@pytest.mark.parametrize(
    ("after", "locks"),
    [
        ({"a": {}}, []),
        ({"a": {}, "b": {**QUEUE, "after": "a"}}, ["job:b"]),
        ({**CHAIN, "c": {**ALLOW, "after": "a"}}, [None, None]),
    ],
)
def test_who_follows_a_run_is_decided_by_what_is_in_force_when_that_is_written(
    postgres: SqlStore, other: SqlStore, after: Mapping[str, Any], locks: list[str | None]
) -> None:
    rig = Rig(postgres, jobs(CHAIN))
    run, _ = rig.desk.run_now("a", author="me")
    rig.tick()
    rig.executor.finish_all()
    with replacing(rig, other, jobs(after)), pytest.raises(Unavailable):
        rig.worker.tick(rig.store.now())
    assert rig.run(run.id).status is Status.RUNNING
    rig.worker.tick(rig.store.now())
    assert rig.run(run.id).status is Status.COMPLETED
    assert [one.lock for one in rig.runs() if one.job != "a"] == locks


def test_what_nobody_follows_does_not_wait_for_a_reload(postgres: SqlStore, other: SqlStore) -> None:
    rig = Rig(postgres, jobs({**CHAIN, "c": {}}))
    rig.desk.run_now("c", author="me")
    rig.tick()
    rig.executor.finish_all()
    with replacing(rig, other, jobs({"a": {}, "c": {}})):
        rig.worker.tick(rig.store.now())
    assert rig.statuses("c") == ["COMPLETED"]


def test_a_reload_finds_the_runs_that_were_being_made(
    postgres: SqlStore, other: SqlStore, postgres_place: Place
) -> None:
    """Of a follower that it removes none is left behind."""
    rig = Rig(postgres, jobs(CHAIN))
    run, _ = rig.desk.run_now("a", author="me")
    rig.tick()
    live = rig.run(run.id)
    with ThreadPoolExecutor(1) as thread:
        with other.begin() as tx:
            ended = settle(live, Succeeded(exit_code=0), rig.in_force.job("a"), rig.store.now(), 0.0)
            settle_all(tx, rig.in_force, [ended], rig.store.now())
            reload = thread.submit(rig.reload, jobs({"a": {}}), drop_pending=True)
            until(lambda: waiting(postgres_place) == 1)
        assert reload.result(20).removed == ("b",)
    assert rig.statuses("b") == ["FAILED"]


def test_a_sign_of_a_job_that_runs_here_by_then_is_refused(
    postgres: SqlStore, other: SqlStore, postgres_place: Place
) -> None:
    rig = Rig(postgres, jobs({"a": {**MINUTELY, "external": True}}))
    with pytest.raises(Refused):
        _ask(rig, other, postgres_place, jobs({"a": MINUTELY}), lambda: rig.signs.take(Sign("a", Word.START)))
    assert rig.runs() == []


def test_a_run_that_is_being_claimed_while_its_lock_changes_is_waited_for(
    postgres: SqlStore, other: SqlStore, postgres_place: Place
) -> None:
    rig = Rig(postgres, jobs({"a": QUEUE}))
    first, second = [rig.desk.run_now("a", author="me", if_busy=IfBusy.QUEUE)[0].id for _ in range(2)]
    with ThreadPoolExecutor(1) as thread:
        with other.begin() as tx:
            claimed = tx.runs.claim(Claim(rig.node, 1, 10), rig.store.now()).runs
            reload = thread.submit(rig.reload, jobs({"a": {**QUEUE, "lock": "db"}}))
            until(lambda: waiting(postgres_place) == 1)
        reload.result(20)
    assert [run.id for run in claimed] == [first]
    rig.tick(seconds=1)
    assert rig.run(second).status is Status.PENDING
