"""What attempts came to is written down once, whatever breaks meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from types import SimpleNamespace

import pytest

from scheduler.core.execution import Launch
from scheduler.core.model import Cause, Status
from scheduler.core.outcome import GivenBack, Outcome, Span, Succeeded
from scheduler.core.requests import Claimed, Report
from scheduler.engine import settler
from scheduler.engine.held import Live
from scheduler.store.store import SqlStore
from tests.engine.rig import Rig, canceled, failed, jobs

MINUTELY = {"schedule": "* * * * *"}


def test_an_outcome_outlives_a_database_that_is_away(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": MINUTELY}))
    rig.tick(minutes=1)
    rig.executor.finish_all(Succeeded(result={"n": 1}))
    rig.store.away = True
    for _ in range(3):
        with pytest.raises(Exception, match="away"):
            rig.worker.tick(rig.clock.turn(seconds=1))
    rig.store.away = False
    rig.store.broken_commits = 2
    for _ in range(2):
        with pytest.raises(Exception, match="before the commit"):
            rig.worker.tick(rig.clock.turn(seconds=1))
    assert rig.statuses("a") == ["RUNNING"]
    rig.tick()
    assert (rig.runs("a")[0].status, rig.runs("a")[0].result) == (Status.COMPLETED, {"n": 1})
    assert rig.attempts.forgotten == [(rig.runs("a")[0].id, 1)]


def test_an_answer_that_is_lost_after_the_commit_of_an_end_changes_nothing(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {**MINUTELY, "retries": ["0s"]}}))
    rig.tick(minutes=1)
    rig.executor.finish_all(failed())
    rig.store.lost_answers = 1
    rig.worker.accepting = False
    with pytest.raises(Exception, match="after the commit"):
        rig.worker.tick(rig.store.now())
    rig.worker.accepting = True
    claim = rig.worker.claim()
    assert claim is not None
    with rig.store.begin() as tx:
        tx.runs.promote(rig.store.now())
        again = tx.runs.claim(claim, rig.store.now())
    rig.worker.take(claim, again)
    assert [run.attempt for run in again.runs] == [2]
    rig.tick()
    rig.finish()
    (run,) = rig.runs("a")
    assert (run.status, run.attempt, run.failures) == (Status.COMPLETED, 2, 1)


@pytest.mark.parametrize("loop", ["planner", "worker"])
def test_a_claim_whose_answer_is_lost_is_given_back(store: SqlStore, loop: str) -> None:
    """The database holds the runs as claimed by this node, and this node has never heard of them."""
    rig = Rig(store, jobs({"a": MINUTELY}))
    rig.turn(minutes=1)
    if loop == "planner":
        rig.store.lost_answers = 1
        with pytest.raises(Exception, match="after the commit"):
            rig.plan()
    else:
        rig.worker.accepting = False
        rig.plan()
        rig.worker.accepting = True
        rig.store.lost_answers = 1
        with pytest.raises(Exception, match="after the commit"):
            rig.worker.tick(rig.store.now())
    assert rig.statuses("a") == ["RUNNING"]
    assert rig.executor.started == []
    rig.tick(seconds=1)
    assert [launch.attempt for launch in rig.executor.started] == [1]
    rig.finish()
    assert rig.statuses("a") == ["COMPLETED"]
    assert rig.run(rig.runs("a")[0].id).failures == 0


def test_two_claims_at_once_take_no_more_than_there_are_slots(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": {}}), slots=4)
    first = rig.worker.claim()
    assert first is not None
    assert first.limit == 4
    assert rig.worker.claim() is None
    rig.worker.take(first, Claimed())
    assert rig.woken == 1, "whoever found no slot looks again"
    assert rig.worker.claim() is not None


def test_a_run_that_is_claimed_again_while_its_end_is_written_is_not_forgotten(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": {**MINUTELY, "retries": ["0s"]}}))
    rig.tick(minutes=1)
    rig.executor.finish_all(failed())
    drop = rig.worker._held.drop

    def claim_first(lives: object) -> None:
        rig.worker._held.drop = drop  # type: ignore[method-assign]
        rig.worker.accepting = True
        claim = rig.worker.claim()
        assert claim is not None
        with rig.store.begin() as tx:
            tx.runs.promote(rig.store.now())
            runs = tx.runs.claim(claim, rig.store.now())
        rig.worker.take(claim, runs)
        drop(lives)  # type: ignore[arg-type]

    rig.worker._held.drop = claim_first  # type: ignore[method-assign]
    rig.worker.accepting = False
    rig.worker.tick(rig.store.now())
    assert len(rig.executor.live) == 1
    rig.finish()
    assert rig.statuses("a") == ["COMPLETED"]


def test_output_is_stored_with_the_end_and_then_forgotten(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": MINUTELY}))
    rig.tick(minutes=1)
    rig.finish()
    (run,) = rig.runs("a")
    with rig.store.queries() as queries:
        output = queries.output(run.id)
    assert output is not None
    assert (output.head, output.attempt) == (b"printed\n", 1)
    assert rig.attempts.forgotten == [(run.id, 1)]


@pytest.mark.parametrize("what", ["output", "result"])
def test_what_cannot_be_written_of_one_attempt_does_not_hold_up_the_others(store: SqlStore, what: str) -> None:
    rig = Rig(store, jobs({"a": MINUTELY, "b": MINUTELY}))
    rig.tick(minutes=1)
    (bad,), (good,) = rig.executor.of("a"), rig.executor.of("b")
    if what == "output":
        rig.attempts.unreadable.add(bad)
    rig.executor.finish(bad, Succeeded(result=object() if what == "result" else None))
    rig.executor.finish(good, Succeeded(result={"n": 1}))
    rig.tick()
    assert rig.statuses() == ["COMPLETED"] * 2
    assert rig.run(good).result == {"n": 1}
    assert rig.worker.idle


def test_more_ends_than_one_batch(sqlite: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settler, "BATCH", 3)
    rig = Rig(sqlite, jobs({"a": {"overlap": "allow"}}))
    for number in range(10):
        rig.desk.run_now("a", author="me", payload=number, has_payload=True)
    rig.tick()
    rig.store.broken_commits = 1
    rig.executor.finish_all()
    with pytest.raises(Exception, match="before the commit"):
        rig.worker.tick(rig.store.now())
    rig.tick()
    assert rig.statuses() == ["COMPLETED"] * 10
    assert len(rig.named("run.settled")) == 10


def test_in_a_crowd_one_transaction_waits_for_those_that_are_about_to_end(
    sqlite: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of its own would cost as much as thirty together; half of them is enough: none is idle."""
    rig = Rig(sqlite, jobs(dict.fromkeys("abcdefghij", MINUTELY)))
    rig.tick(minutes=1)
    a, b, c, d, e, f, g, h, _i, _j = list(rig.executor.live)
    ending, waited, batches = rig.worker._settler, [], []
    get, write = ending._over.get, ending._write
    about_to_end = [[d], [e], [f], [g], [h]]

    def patient(timeout: float | None = None) -> Live:
        waited.append(timeout)
        for run in about_to_end.pop(0) if about_to_end else ():
            rig.executor.finish(run)
        return get(timeout=timeout)

    def counted(ended: Sequence[Live], *rest: object, **more: object) -> None:
        batches.append(len(ended))
        write(ended, *rest, **more)

    patched = SimpleNamespace(get=patient, get_nowait=ending._over.get_nowait, put=ending._over.put)
    monkeypatch.setattr(ending, "_over", patched)
    monkeypatch.setattr(ending, "_write", counted)
    rig.executor.finish(a)
    rig.worker.tick(rig.store.now())
    assert (batches, waited) == ([1], []), "what ends alone waits for nobody"
    rig.executor.finish(b)
    rig.executor.finish(c)
    rig.worker.tick(rig.store.now())
    assert batches == [1, 2, 4, 1], "in a crowd, the next is waited for"
    assert set(waited) == {settler.LULL}
    waited.clear()
    rig.executor.finish_all()
    rig.worker.tick(rig.store.now())
    assert batches == [1, 2, 4, 1, 2]
    assert not waited, "nobody else was about to end"


def test_while_others_wait_to_be_started_what_ended_is_written_down_together(
    sqlite: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writing down can wait, being late cannot; but it does not wait for ever."""
    rig = Rig(sqlite, jobs(dict.fromkeys("abc", MINUTELY)))
    begin: list[Callable[[], None]] = []
    monkeypatch.setattr(rig.worker, "_aside", begin.append)
    rig.tick(minutes=1)
    ending, batches = rig.worker._settler, []
    start, get, write = rig.executor.start, ending._over.get, ending._write

    def counted(ended: Sequence[Live], *rest: object, **more: object) -> None:
        batches.append(len(ended))
        write(ended, *rest, **more)

    def another_ends(timeout: float) -> Live:
        rig.executor.finish_all()
        return get(timeout=timeout)

    def start_and_see_one_end(launch: Launch, done: Callable[[Outcome], None]) -> None:
        start(launch, done)
        if len(rig.executor.started) == 2:
            rig.executor.finish(rig.executor.started[0].run.id)
            rig.worker.tick(rig.store.now())

    patched = SimpleNamespace(get=another_ends, get_nowait=ending._over.get_nowait, put=ending._over.put)
    monkeypatch.setattr(ending, "_over", patched)
    monkeypatch.setattr(ending, "_write", counted)
    monkeypatch.setattr(rig.executor, "start", start_and_see_one_end)
    monkeypatch.setattr(settler, "PATIENCE", 0.1)
    begin[0]()
    assert batches == [2], "the second was waited for, and the third, which has not begun, for a while only"


def test_an_end_that_is_heard_late_is_written_down_as_it_was(store: SqlStore) -> None:
    """The daemon was stopped for a minute; whoever owns the child saw it end after four seconds. The wall clock was set
    back besides."""
    rig = Rig(store, jobs({"a": MINUTELY}))
    rig.tick(minutes=1)
    began = rig.clock.boottime()
    rig.turn(seconds=60)
    rig.clock.step(hours=-1)
    rig.executor.finish_all(Succeeded(exit_code=0, span=Span(began + 4, began)))
    rig.tick()
    (run,) = rig.runs("a")
    assert run.finished_at == rig.clock.now() - timedelta(seconds=56)
    assert (run.took, rig.state("a").last_success_at) == (4.0, run.finished_at)
    (attempt,) = rig.detail(run.id).attempts
    assert (attempt.finished_at, attempt.took) == (run.finished_at, 4.0)


def test_an_end_that_comes_while_others_are_settled_is_not_dated_back(store: SqlStore) -> None:
    """A tick reads the clock once, at its beginning."""
    rig = Rig(store, jobs({"a": MINUTELY, "b": MINUTELY}))
    rig.tick(minutes=1)
    (slow,), (quick,) = rig.executor.of("a"), rig.executor.of("b")

    def meanwhile() -> None:
        rig.store.begun = lambda: None
        rig.clock.turn(seconds=3)
        rig.executor.finish(slow)

    rig.executor.finish(quick)
    rig.store.begun = meanwhile
    rig.worker.tick(rig.store.now())
    run = rig.run(slow)
    assert (run.status, run.took) == (Status.COMPLETED, 3.0)
    assert run.finished_at == rig.clock.now()
    assert rig.run(quick).took == 0.0


def test_what_is_taken_begins_after_what_made_room_for_it(store: SqlStore) -> None:
    """Whoever looks in the ledger for runs that overlap must not find any that did not."""
    rig = Rig(store, jobs({"a": {"overlap": "queue"}, "b": MINUTELY}))
    rig.tick(minutes=1)
    first, second = (rig.desk.run_now("a", author="me", payload=n, has_payload=True)[0].id for n in (1, 2))
    rig.tick()

    def meanwhile() -> None:
        rig.store.begun = lambda: None
        rig.clock.turn(seconds=3)
        rig.executor.finish(first)

    (quick,) = rig.executor.of("b")
    rig.executor.finish(quick)
    rig.store.begun = meanwhile
    rig.worker.tick(rig.store.now())
    assert (rig.run(first).status, rig.run(second).status) == (Status.COMPLETED, Status.RUNNING)
    ended, begun = rig.run(first).finished_at, rig.run(second).started_at
    assert ended is not None
    assert begun is not None
    assert ended <= begun


def test_what_lies_between_attempts_is_no_work(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {"retries": ["10m"]}}))
    rig.desk.run_now("a", author="me")
    rig.tick()
    rig.turn(seconds=5)
    rig.finish(failed())
    rig.tick(minutes=12)
    rig.turn(seconds=7)
    rig.finish()
    (run,) = rig.runs("a")
    assert run.took == 12.0
    assert [one.took for one in rig.detail(run.id).attempts] == [5.0, 7.0]


def test_reports_reach_the_database_within_two_seconds_also_after_an_outage(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": MINUTELY}))
    rig.tick(minutes=1)
    (run,) = rig.runs("a")
    rig.attempts.pending = [Report(run.id, run.fence, progress=10.0, message="ten", checkpoint={"page": 1})]
    rig.turn(seconds=2)
    rig.store.broken_commits = 1
    with pytest.raises(Exception, match="before the commit"):
        rig.keeper._ship_reports()
    rig.attempts.pending = [Report(run.id, run.fence, progress=20.0)]
    rig.tick(seconds=2)
    found = rig.run(run.id)
    assert (found.progress, found.message, found.checkpoint) == (20.0, "ten", {"page": 1})


@pytest.mark.parametrize(("on", "outcome"), [("completed", None), ("failed", failed())])
def test_after_chains(store: SqlStore, on: str, outcome: object) -> None:
    rig = Rig(store, jobs({"a": MINUTELY, "b": {"after": {"job": "a", "on": on}}, "c": {"after": "b"}}))
    rig.tick(minutes=1)
    rig.finish(outcome or Succeeded(result={"rows": 3}))
    (first,) = rig.runs("a")
    (follow_up,) = rig.runs("b")
    assert (follow_up.cause, follow_up.key, follow_up.status) == (Cause.AFTER, f"after:{first.id}", Status.RUNNING)
    launch = rig.executor.started[-1]
    assert launch.run.payload == {
        "schema": 1,
        "run": first.id,
        "job": "a",
        "status": on.upper(),
        "result": {"rows": 3} if on == "completed" else None,
    }
    rig.finish(canceled())
    assert rig.runs("c") == []


def test_a_retried_attempt_starts_no_chain_before_its_run_is_over(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": {**MINUTELY, "retries": ["1s"]}, "b": {"after": {"job": "a", "on": "failed"}}}))
    rig.tick(minutes=1)
    rig.finish(failed())
    assert rig.runs("b") == []
    rig.tick(seconds=2)
    rig.finish(failed())
    assert len(rig.runs("b")) == 1


def test_given_back_untouched_the_run_is_as_before_its_claim(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": MINUTELY}))
    rig.tick(minutes=1)
    rig.worker.accepting = False
    rig.finish(GivenBack(started=False))
    (run,) = rig.runs("a")
    assert (run.status, run.attempt, run.lost, run.started_at) == (Status.PENDING, 0, 0, None)
    assert rig.detail(run.id).attempts == ()


def test_a_checkpoint_of_the_last_moment_reaches_the_next_attempt(store: SqlStore) -> None:
    """Nobody looks at reports between the last line of an attempt and its end."""
    rig = Rig(store, jobs({"a": {"retries": ["5s"]}}))
    run, _ = rig.desk.run_now("a", author="me")
    rig.tick()
    held = rig.run(run.id)
    rig.attempts.words[run.id] = [Report(run.id, held.fence, checkpoint={"page": 7})]
    rig.executor.finish(run.id, failed())
    rig.seconds(7)

    assert rig.executor.started[-1].run.checkpoint == {"page": 7}
