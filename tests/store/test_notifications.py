"""The outbox: told once per channel and key, sent by one node, nothing lost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.core.notification import Fate, Pace, Result, Standing
from scheduler.core.notification_queries import NotificationFilter
from scheduler.core.tiding import Entry, Kind, Tiding
from scheduler.store.store import SqlStore
from tests.store.world import DAY, MINUTE, SECOND, T0, set_up


def entry(number: int, channel: str = "ops") -> Entry:
    return Entry(channel, Tiding(Kind.MISSED, f"job-{number}", T0, f"flip:{number}", None, {"n": [number]}))


def put(store: SqlStore, *entries: Entry) -> int:
    with store.begin() as tx:
        return tx.notifications.put(entries, T0)


def due(store: SqlStore, now: object = T0) -> list[str]:
    with store.read() as tx:
        return tx.notifications.due(now)  # type: ignore[arg-type]


def take(store: SqlStore, node: str, now: object = T0, channel: str = "ops") -> Standing | None:
    with store.begin() as tx:
        return tx.notifications.take(channel, node, now, T0 + 2 * MINUTE)  # type: ignore[arg-type]


def give_back(store: SqlStore, node: str, standing: Standing, *results: Result) -> bool:
    with store.begin() as tx:
        return tx.notifications.give_back("ops", node, standing, results, T0 + SECOND)


def test_a_channel_is_told_of_a_key_once_for_ever(store: SqlStore) -> None:
    set_up(store)
    assert put(store, entry(1), entry(2), entry(1, "mail")) == 3
    assert put(store, entry(1), entry(3)) == 1
    assert due(store) == ["mail", "ops"]
    standing = take(store, "n1")
    assert standing is not None
    with store.read() as tx:
        (first, *_) = tx.notifications.waiting("ops", 1)
    assert first.tiding == entry(1).tiding
    assert give_back(store, "n1", standing, Result(first.id, Fate.SENT, T0))
    assert put(store, entry(1)) == 0


def test_one_node_has_a_channel_until_it_gives_it_back_or_is_gone(store: SqlStore) -> None:
    set_up(store, nodes=("n1", "n2"))
    put(store, entry(1))
    standing = take(store, "n1")
    assert standing == Standing()
    assert take(store, "n2") is None
    assert due(store) == []
    assert not give_back(store, "n2", standing)
    assert give_back(store, "n1", standing)
    assert take(store, "n2") is not None
    # It hangs for longer than anybody may.
    assert take(store, "n1", T0 + 2 * MINUTE) is not None


def test_what_a_stopped_node_held_is_free_at_once(store: SqlStore) -> None:
    set_up(store, nodes=("n1", "n2"))
    put(store, entry(1))
    assert take(store, "n1") is not None
    with store.begin() as tx:
        assert tx.nodes.mark("n1", "stopped", T0)
    assert due(store) == ["ops"]
    assert take(store, "n2") is not None


def test_what_became_of_them_is_written_with_the_channel(store: SqlStore) -> None:
    set_up(store)
    put(store, *(entry(number) for number in range(4)))
    standing = take(store, "n1")
    assert standing is not None
    with store.read() as tx:
        ids = [one.id for one in tx.notifications.waiting("ops", 10)]
    later = T0 + 10 * SECOND
    results = (
        Result(ids[0], Fate.SENT, T0, None, 2),
        Result(ids[1], Fate.WAITING, later, "no"),
        Result(ids[2], Fate.FAILED, T0, "never"),
    )
    stands = replace(standing, pace=Pace(3.5, T0), not_before=later, failing_since=T0, error="no")
    assert give_back(store, "n1", stands, *results)
    with store.queries() as queries:
        found = list(reversed(queries.notifications(NotificationFilter())))
        (view,) = queries.channels()
    assert [(one.fate, one.attempts, one.error, one.together) for one in found] == [
        (Fate.SENT, 1, None, 2),
        (Fate.WAITING, 1, "no", 1),
        (Fate.FAILED, 1, "never", 1),
        (Fate.WAITING, 0, None, 1),
    ]
    assert (found[1].next_at, found[0].next_at, found[0].settled_at) == (later, None, T0 + SECOND)
    assert (view.standing, view.waiting, view.oldest) == (stands, 2, T0)
    assert due(store, T0 + 5 * SECOND) == []
    assert due(store, later) == ["ops"]


def test_a_person_who_has_corrected_a_channel_need_not_wait(store: SqlStore) -> None:
    set_up(store)
    put(store, entry(1), entry(2))
    standing = take(store, "n1")
    assert standing is not None
    with store.read() as tx:
        ids = [one.id for one in tx.notifications.waiting("ops", 10)]
    give_back(
        store,
        "n1",
        replace(standing, not_before=T0 + DAY, failing_since=T0, error="no"),
        *(Result(one, Fate.WAITING, T0 + DAY) for one in ids),
    )
    assert due(store, T0 + MINUTE) == []
    with store.begin() as tx:
        assert tx.notifications.hasten("ops", T0 + MINUTE) == 2
    assert due(store, T0 + MINUTE) == ["ops"]
    with store.queries() as queries:
        (view,) = queries.channels()
    assert view.standing is not None
    assert (view.standing.failing_since, view.standing.error) == (None, None)


def test_what_waits_for_a_channel_that_is_gone_is_given_up_visibly(store: SqlStore) -> None:
    set_up(store)
    put(store, entry(1), entry(1, "gone"), entry(2, "gone"))
    with store.begin() as tx:
        assert tx.notifications.abandon({"ops"}, "no such channel", T0) == ["gone"]
    assert due(store) == ["ops"]
    with store.queries() as queries:
        found = queries.notifications(NotificationFilter(channel="gone", fates=(Fate.FAILED,)))
    assert [one.error for one in found] == ["no such channel"] * 2


def test_only_what_is_settled_is_forgotten_oldest_first(store: SqlStore) -> None:
    set_up(store)
    put(store, *(entry(number) for number in range(3)))
    standing = take(store, "n1")
    assert standing is not None
    with store.read() as tx:
        ids = [one.id for one in tx.notifications.waiting("ops", 10)]
    give_back(store, "n1", standing, Result(ids[0], Fate.SENT, T0), Result(ids[1], Fate.FAILED, T0))
    with store.begin() as tx:
        assert tx.notifications.prune(T0, 10) == 0
        assert tx.notifications.prune(T0 + DAY, 1) == 1
        assert tx.notifications.prune(T0 + DAY, 10) == 1
        assert tx.notifications.prune(T0 + DAY, 10) == 0
    assert due(store) == ["ops"]


def test_a_storm_goes_in_and_out(store: SqlStore) -> None:
    set_up(store)
    assert put(store, *(entry(number) for number in range(6_000))) == 6_000
    assert put(store, *(entry(number) for number in range(6_000))) == 0
    standing = take(store, "n1")
    assert standing is not None
    with store.read() as tx:
        found = tx.notifications.waiting("ops", 10_000)
    assert give_back(store, "n1", standing, *(Result(one.id, Fate.SENT, T0, None, 6_000) for one in found))
    assert due(store, T0 + DAY) == []


@pytest.mark.parametrize("job", ["job-1", "nobody"])
def test_a_list_is_of_one_job(store: SqlStore, job: str) -> None:
    set_up(store)
    put(store, entry(1), entry(2))
    with store.queries() as queries:
        assert len(queries.notifications(NotificationFilter(job=job))) == (job == "job-1")
