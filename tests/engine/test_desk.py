"""What people and programs ask for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from scheduler.core.commands import IfBusy
from scheduler.core.errors import NotFound, Refused, SchedulerError
from scheduler.core.ids import short
from scheduler.core.model import Cause, Run, Status
from scheduler.store.store import SqlStore
from tests.engine.rig import Rig, at, failed, jobs

DAILY = {"schedule": "0 9 * * *"}


def test_run_now_is_refused_while_a_run_is_unfinished(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {"retries": ["1h"], "overlap": "queue"}}))
    first, new = rig.desk.run_now("a", author="me", reason="why not")
    assert new
    assert (first.cause, first.author, first.note) == (Cause.MANUAL, "me", "why not")
    for state in ("PENDING", "RUNNING", "PENDING"):
        with pytest.raises(Refused, match=rf"a has an unfinished run: {short(first.id)} \({state}\)"):
            rig.desk.run_now("a", author="me")
        if state == "PENDING":
            rig.tick()
        else:
            rig.finish(failed())
    rig.desk.cancel(first.id, author="me")
    assert rig.desk.run_now("a", author="me")[1]


def test_twenty_people_at_once_start_one_run(store: SqlStore) -> None:
    """D08, D19: all are served, one after the other."""
    rig = Rig(store, jobs({"a": {"overlap": "queue"}}))
    answers: list[Run | SchedulerError] = []
    gate = threading.Barrier(20)

    def ask() -> None:
        gate.wait(20)
        try:
            answers.append(rig.desk.run_now("a", author="me")[0])
        except SchedulerError as error:
            answers.append(error)

    together(20, ask)
    started = [one for one in answers if isinstance(one, Run)]
    refused = [one for one in answers if isinstance(one, Refused)]
    assert (len(started), len(refused)) == (1, 19)
    assert all(short(started[0].id) in one.reason for one in refused)


def test_twenty_cancels_at_once(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {}}))
    run, _ = rig.desk.run_now("a", author="me")
    rig.tick()
    errors: list[BaseException] = []

    def ask() -> None:
        try:
            rig.desk.cancel(run.id, author="me")
        except BaseException as error:
            errors.append(error)

    together(20, ask)
    assert errors == []


def together(count: int, work: Callable[[], None]) -> None:
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)


def test_queue_and_replace(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {**DAILY}}))
    first, _ = rig.desk.run_now("a", author="me")
    rig.tick()
    queued, _ = rig.desk.run_now("a", author="me", if_busy=IfBusy.QUEUE)
    newest, _ = rig.desk.run_now("a", author="me", if_busy=IfBusy.REPLACE)
    assert rig.run(queued.id).status is Status.CANCELED
    assert rig.run(queued.id).cancel == "replaced by me"
    # Other nodes hold some of them, and are told by this.
    assert {fields["run"] for fields in rig.named("run.cancel_asked")} == {first.id, queued.id}
    rig.tick()
    rig.tick()
    assert rig.run(first.id).status is Status.CANCELED
    assert rig.run(newest.id).status is Status.RUNNING


def test_replace_is_rid_of_everything_that_stands_in_the_way(store: SqlStore) -> None:
    """All that was asked for by hand, and every occurrence; not what programs and events handed in."""
    rig = Rig(store, jobs({"a": {"schedule": "* * * * *", "overlap": "queue", "retries": ["1h"]}, "b": {}}))
    rig.tick(minutes=1)
    rig.tick(minutes=1)
    for number in range(3):
        rig.desk.run_now("a", author="me", if_busy=IfBusy.QUEUE)
        rig.desk.run_now("a", author="me", payload=number, has_payload=True)
    kept, _ = rig.desk.run_now("a", author="me", cause=Cause.API, payload=1, has_payload=True)
    other, _ = rig.desk.run_now("b", author="me")
    before = [run.id for run in rig.runs("a") if run.id != kept.id]
    assert len(before) == 8
    newest, _ = rig.desk.run_now("a", author="me", if_busy=IfBusy.REPLACE)
    assert {rig.run(run).cancel for run in before} == {"replaced by me"}
    assert (rig.run(kept.id).cancel, rig.run(other.id).cancel) == (None, None)
    rig.tick()
    rig.tick()
    assert [rig.run(run).status for run in before] == [Status.CANCELED] * 8
    rig.finish()
    assert [rig.run(run.id).status for run in (kept, newest)] == [Status.COMPLETED, Status.RUNNING]


@pytest.mark.parametrize("payload", [{"n": 1}, [], "", 0, None])
def test_an_idempotency_key_names_one_request(store: SqlStore, payload: object) -> None:
    """A payload of null is a payload, too."""
    rig = Rig(store, jobs({"a": {}, "b": {}}))
    first, new = rig.desk.run_now("a", author="me", cause=Cause.API, payload=payload, has_payload=True, key="k")
    again, newer = rig.desk.run_now("a", author="me", cause=Cause.API, payload=payload, has_payload=True, key="k")
    assert (new, newer, again.id, first.cause) == (True, False, first.id, Cause.API)
    assert first.has_payload
    for other in ({"payload": {"n": 2}, "has_payload": True}, {}):
        with pytest.raises(Refused, match="belongs to run"):
            rig.desk.run_now("a", author="me", key="k", **other)  # type: ignore[arg-type]
    assert rig.desk.run_now("b", author="me", cause=Cause.API, payload=payload, has_payload=True, key="k")[1]
    rig.tick()
    rig.finish()
    repeated = rig.desk.run_now("a", author="me", cause=Cause.API, payload=payload, has_payload=True, key="k")
    assert repeated == (rig.run(first.id), False)


def test_unknown_jobs_and_runs_are_named_with_what_is_close(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"report": {}}))
    for ask in (
        lambda: rig.desk.run_now("reprot", author="me"),
        lambda: rig.desk.pause(["reprot"], until=None, reason="", author="me"),
        lambda: rig.desk.resume(["reprot"], author="me"),
        lambda: rig.desk.audit(job="reprot"),
    ):
        with pytest.raises(NotFound, match="did you mean report"):
            ask()
    for ask in (
        lambda: rig.desk.cancel("no-such-run", author="me"),
        lambda: rig.desk.retry("no-such-run", author="me"),
        lambda: rig.desk.find_run("no-such-run"),
        lambda: rig.desk.find_run("report"),
    ):
        with pytest.raises(NotFound):
            ask()


def test_a_finished_run_cannot_be_cancelled(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": {}}))
    run, _ = rig.desk.run_now("a", author="me")
    rig.tick()
    rig.finish()
    with pytest.raises(Refused, match="is over: COMPLETED"):
        rig.desk.cancel(run.id, author="me")


def test_retry_of_a_dead_letter(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {"retries": 0}}))
    dead, _ = rig.desk.run_now("a", author="me", payload={"n": 1}, has_payload=True)
    rig.tick()
    rig.finish(failed())
    assert letters(rig) == [dead.id]
    with pytest.raises(Refused, match="is over"):
        rig.desk.cancel(dead.id, author="me")
    again = rig.desk.retry(dead.id, author="you", reason="fixed")
    assert (again.cause, again.retry_of, again.payload, again.note) == (Cause.RETRY, dead.id, {"n": 1}, "fixed")
    assert letters(rig) == []
    with pytest.raises(Refused, match="is not over: PENDING"):
        rig.desk.retry(again.id, author="you")
    rig.tick()
    rig.finish()
    assert rig.run(again.id).status is Status.COMPLETED
    assert rig.run(dead.id).status is Status.FAILED
    assert rig.detail(dead.id).retried_by == (again.id,)


def letters(rig: Rig) -> list[str]:
    with rig.store.queries() as queries:
        return [entry.run.id for entry in queries.dead_letters().entries if entry.run is not None]


def test_retry_hastens_a_run_that_waits_for_its_next_attempt(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {"retries": ["10h"]}}))
    run, _ = rig.desk.run_now("a", author="me")
    rig.tick()
    rig.finish(failed())
    assert rig.desk.retry(run.id, author="me").id == run.id
    rig.tick()
    assert (rig.run(run.id).attempt, rig.run(run.id).note) == (2, "retried at once by me")


def test_who_hastened_a_run_and_why_stays_with_it(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {"retries": ["10h", "10h"]}}))
    run, _ = rig.desk.run_now("a", author="me", reason="month end")
    rig.tick()
    rig.finish(failed())
    assert rig.desk.retry(run.id, author="ana", reason="provider is back").note == (
        "month end; retried at once by ana: provider is back"
    )
    rig.tick()
    rig.finish(failed())
    rig.desk.retry(run.id, author="bob")
    rig.tick()
    rig.finish()
    assert rig.run(run.id).note == "month end; retried at once by ana: provider is back; retried at once by bob"


@pytest.mark.parametrize("waiting", ["lock", "pause"])
def test_who_asked_for_a_retry_that_waits_for_more_than_its_time_stays_with_it(store: SqlStore, waiting: str) -> None:
    rig = Rig(store, jobs({"a": {"retries": ["1m"], "overlap": "queue"}}))
    run, _ = rig.desk.run_now("a", author="me", reason="month end", cause=Cause.API)
    rig.tick()
    rig.finish(failed())
    if waiting == "lock":
        rig.desk.run_now("a", author="me", if_busy=IfBusy.QUEUE)
        rig.tick()
    else:
        rig.desk.pause(["a"], until=None, reason="", author="me")
    rig.tick(minutes=2)
    before = rig.run(run.id)
    assert before.waits_for == waiting
    after = rig.desk.retry(run.id, author="ana", reason="provider is back")
    assert after == replace(before, note="month end; retry asked for by ana: provider is back")
    assert rig.run(run.id) == after


def test_a_retry_takes_the_lock_and_waits_its_turn(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": DAILY}))
    run, _ = rig.desk.run_now("a", author="me")
    rig.tick()
    rig.finish()
    busy, _ = rig.desk.run_now("a", author="me")
    rig.tick()
    again = rig.desk.retry(run.id, author="me")
    rig.tick()
    assert rig.run(again.id).status is Status.PENDING
    rig.executor.finish(busy.id)
    rig.tick()
    assert rig.run(again.id).status is Status.RUNNING


def test_find_run(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {"overlap": "queue"}}))
    first, _ = rig.desk.run_now("a", author="me")
    rig.tick()
    rig.finish()
    assert rig.desk.find_run("a") == first.id
    second, _ = rig.desk.run_now("a", author="me")
    third, _ = rig.desk.run_now("a", author="me", if_busy=IfBusy.QUEUE)
    assert rig.desk.find_run(first.id) == first.id
    assert rig.desk.find_run(short(second.id)) == second.id
    assert rig.desk.find_run("a") in (second.id, third.id)
    assert rig.run(rig.desk.find_run("a")).status is Status.PENDING


def test_a_job_names_the_run_that_is_under_way_before_those_that_wait(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {"overlap": "queue"}}))
    running, _ = rig.desk.run_now("a", author="me")
    rig.tick()
    for _ in range(25):
        rig.desk.run_now("a", author="me", if_busy=IfBusy.QUEUE)
    assert rig.run(running.id).status is Status.RUNNING
    assert rig.desk.find_run("a") == running.id


def test_a_job_that_is_gone_still_names_its_run(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {}, "b": {}}))
    run, _ = rig.desk.run_now("a", author="me")
    rig.tick()
    rig.reload(jobs({"b": {}}))
    assert rig.desk.find_run("a") == run.id
    rig.finish()
    assert rig.desk.find_run("a") == run.id
    with pytest.raises(NotFound, match="no run and no job"):
        rig.desk.find_run("c")


def test_an_ambiguous_end_of_an_id_is_refused(sqlite: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    from scheduler.engine import new_run

    ids = iter(["01900000-0000-7000-8000-00000000abcd", "01900000-0000-7000-8000-11110000abcd"])
    monkeypatch.setattr(new_run, "new_id", lambda: next(ids))
    rig = Rig(sqlite, jobs({"a": {}, "b": {}}))
    rig.desk.run_now("a", author="me")
    rig.desk.run_now("b", author="me")
    with pytest.raises(Refused, match="fits several runs"):
        rig.desk.find_run("0000abcd")
    assert rig.desk.find_run("11110000abcd").startswith("01900000-0000-7000-8000-1111")


def test_pause_and_resume_are_told(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": DAILY}))
    (pause,) = rig.desk.pause(["a"], until=at(12), reason="holiday", author="me")
    assert (pause.start, pause.until, pause.reason, pause.author) == (at(8), at(12), "holiday", "me")
    assert rig.desk.resume(["a"], author="you") == ["a"]
    assert rig.desk.resume(["a"], author="you") == []
    assert [notice["author"] for notice in rig.named("job.resumed")] == ["you"]


def test_a_refused_request_changes_nothing(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {}}))
    rig.store.broken_commits = 1
    with pytest.raises(SchedulerError):
        rig.desk.run_now("a", author="me")
    assert rig.runs() == []
    assert rig.named("run.planned") == []
    assert rig.desk.run_now("a", author="me")[1]
