from __future__ import annotations

from scheduler.core.model import Status
from scheduler.store.store import SqlStore
from tests.store.world import T0, add, claim, get, new_run, set_up, settle, settlement


def test_a_run_is_claimed_once_with_a_fence_and_an_attempt(store: SqlStore) -> None:
    set_up(store)
    run = new_run("job", payload={"n": 1})
    assert add(store, run) == {run.id}
    (mine,) = claim(store)
    assert (mine.id, mine.status, mine.node, mine.attempt, mine.payload) == (run.id, Status.RUNNING, "n1", 1, {"n": 1})
    assert mine.fence >= int(T0.timestamp() * 1000)
    assert claim(store) == []
    (done,) = settle(store, settlement(mine))
    assert done.status is Status.COMPLETED
    assert get(store, run.id).status is Status.COMPLETED
