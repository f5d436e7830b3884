"""What ends gives its place to what waits, in the transaction that writes its end down."""

from __future__ import annotations

import pytest

from scheduler.core.outcome import Succeeded
from scheduler.engine import settler, worker
from scheduler.store.store import SqlStore
from tests.engine.rig import Rig, jobs


def _asked(rig: Rig, count: int) -> list[str]:
    return [rig.desk.run_now("a", author="me", payload=n, has_payload=True)[0].id for n in range(count)]


def test_one_transaction_ends_one_run_and_begins_the_next(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {"overlap": "queue"}}), slots=1)
    first, second, _ = _asked(rig, 3)
    rig.tick()
    assert list(rig.executor.live) == [first]
    begun = 0

    def count() -> None:
        nonlocal begun
        begun += 1

    rig.store.begun = count
    rig.executor.finish(first, Succeeded(exit_code=0))
    rig.worker.tick(rig.store.now())
    assert list(rig.executor.live) == [second]
    assert begun <= 2, "one that turns over, one that looks whether more can be had"
    assert rig.statuses() == ["COMPLETED", "RUNNING", "PENDING"]


def test_while_nothing_is_accepted_an_end_brings_nothing(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {"overlap": "queue"}}))
    first, _ = _asked(rig, 2)
    rig.tick()
    rig.worker.accepting = False
    rig.executor.finish(first, Succeeded(exit_code=0))
    rig.worker.tick(rig.store.now())
    assert rig.statuses() == ["COMPLETED", "PENDING"]
    assert list(rig.executor.live) == []


@pytest.mark.parametrize("when", ["before", "after"])
def test_what_was_taken_with_ends_that_could_not_be_written_is_taken_again(store: SqlStore, when: str) -> None:
    """A result that no database takes fails the transaction, and with it the claim; an answer that never came leaves in
    doubt what was claimed. Either way it is started once."""
    rig = Rig(store, jobs({"a": {"overlap": "allow"}}), slots=2)
    first, second, third, fourth = _asked(rig, 4)
    rig.tick()
    rig.executor.finish(first, Succeeded(result=object() if when == "before" else None))
    rig.executor.finish(second, Succeeded(exit_code=0))
    if when == "after":
        rig.store.lost_answers = 1
        with pytest.raises(Exception, match="after the commit"):
            rig.worker.tick(rig.store.now())
    rig.tick()
    rig.tick()
    assert sorted(rig.executor.live) == sorted([third, fourth])
    rig.finish()
    assert rig.statuses() == ["COMPLETED"] * 4
    assert [launch.run.id for launch in rig.executor.started].count(third) == 1


def test_a_round_ends_although_more_goes_on_ending(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was cancelled must be ended, and what waits for a time started, also under load."""
    monkeypatch.setattr(worker, "LONGEST_ROUND", 0.0)
    monkeypatch.setattr(settler, "BATCH", 1)
    rig = Rig(store, jobs({"a": {"overlap": "allow"}}))
    _asked(rig, 3)
    rig.tick()
    rig.executor.finish_all(Succeeded(exit_code=0))
    woken = rig.woken
    rig.worker.tick(rig.store.now())
    assert sorted(rig.statuses()) == ["COMPLETED", "RUNNING", "RUNNING"]
    assert rig.woken > woken, "the rest is done at once"
