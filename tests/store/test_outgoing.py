"""The outbox of pings: who may send what, in which order, and that of two who want the same one gets it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scheduler.core.model import Node
from scheduler.core.ping import NewPing, Ping
from scheduler.store.store import SqlStore
from tests.store.world import T0

MINUTE = timedelta(minutes=1)


@pytest.fixture
def living(store: SqlStore) -> SqlStore:
    """With two nodes that live."""
    with store.begin() as tx:
        for name in ("mine", "other"):
            tx.nodes.register(Node(name, "host", 1, "0", T0, None, 1), T0)
    return store


def put(store: SqlStore, *runs: str, job: str = "a", node: str = "mine") -> None:
    with store.begin() as tx:
        tx.outgoing.put([NewPing(job, run, 1, "success", node, T0) for run in runs])


def due(store: SqlStore, after: timedelta = timedelta(0), node: str = "mine", limit: int = 10) -> list[Ping]:
    with store.read() as tx:
        return tx.outgoing.due(node, T0 + after, limit)


def runs(found: list[Ping]) -> list[str]:
    return [one.run for one in found]


def test_of_each_job_the_first(living: SqlStore) -> None:
    put(living, "a1", "a2")
    put(living, "b1", job="b")
    assert runs(due(living)) == ["a1", "b1"]
    assert runs(due(living, limit=1)) == ["a1"]
    with living.begin() as tx:
        tx.outgoing.remove([due(living)[0].seq])
    assert runs(due(living)) == ["a2", "b1"]


def test_one_that_waits_for_its_next_try_holds_up_those_behind_it(living: SqlStore) -> None:
    put(living, "a1", "a2")
    with living.begin() as tx:
        tx.outgoing.postpone({due(living)[0].seq: T0 + MINUTE})
    assert due(living) == []
    assert runs(due(living, MINUTE)) == ["a1"]


def test_of_two_who_take_it_one_gets_it(living: SqlStore) -> None:
    put(living, "a1")
    (mine,), (same,) = due(living), due(living)
    with living.begin() as tx:
        assert tx.outgoing.take(mine, T0 + MINUTE)
    with living.begin() as tx:
        assert not tx.outgoing.take(same, T0 + MINUTE)
    assert due(living) == []
    (again,) = due(living, MINUTE)
    assert (again.run, again.tries) == ("a1", 1)


def test_others_wait_for_the_node_whose_run_it_was_while_it_lives(living: SqlStore) -> None:
    put(living, "a1", node="other")
    assert due(living) == []
    assert runs(due(living, node="other")) == ["a1"]
    assert due(living, MINUTE - timedelta(seconds=1)) == []
    assert runs(due(living, MINUTE)) == ["a1"]
    with living.begin() as tx:
        tx.nodes.mark("other", "stopped", T0)
    assert runs(due(living)) == ["a1"]


def test_of_which_jobs_any_waits(living: SqlStore) -> None:
    put(living, "a1", "a2")
    put(living, "b1", job="b", node="other")
    with living.begin() as tx:
        tx.outgoing.postpone({due(living)[0].seq: T0 + MINUTE})
    with living.read() as tx:
        assert tx.outgoing.waiting({"a", "b", "c"}) == {"a", "b"}
        assert tx.outgoing.waiting({"c"}) == set()


def test_what_is_old_or_lies_behind_many_is_forgotten(living: SqlStore) -> None:
    put(living, "a1", "a2", "a3")
    put(living, "b1", job="b")
    with living.begin() as tx:
        assert tx.outgoing.prune(T0, 2) == {"a": 1}
    assert runs(due(living)) == ["a2", "b1"]
    with living.begin() as tx:
        assert tx.outgoing.prune(T0 + MINUTE, 2) == {"a": 2, "b": 1}
    assert due(living) == []
