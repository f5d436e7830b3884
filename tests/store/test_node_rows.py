"""A node's row: what may go on while transactions of that node hold it, and what waits for them."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from scheduler.core.requests import Claim
from scheduler.store.store import SqlStore
from tests.databases import Place
from tests.store.world import T0, add, new_run, set_up
from tests.until import until
from tests.waiting import waiting


@pytest.fixture
def postgres(postgres_place: Place) -> Iterator[SqlStore]:
    with closing(postgres_place.open()) as opened:
        set_up(opened, ["job"], nodes=("n1",))
        yield opened


@pytest.fixture
def other(postgres_place: Place) -> Iterator[SqlStore]:
    """The same database through connections of its own."""
    with closing(postgres_place.open()) as opened:
        yield opened


def test_a_beat_passes_transactions_of_its_node(postgres: SqlStore, other: SqlStore) -> None:
    """Also those that it left behind when its connection broke: the server keeps them for two seconds."""
    with postgres.begin() as held:
        assert held.nodes.hold("n1")
        with other.begin() as tx:
            assert tx.nodes.renew("n1", T0, generation=1)
    with postgres.begin() as tx:
        assert tx.nodes.renew("n1", T0, generation=1)
        with other.begin() as holding:
            assert holding.nodes.hold("n1"), "and they pass the beat"


@pytest.mark.parametrize("taken", ["dead", "stopped"])
def test_its_right_is_taken_only_when_no_transaction_of_it_is_left(
    postgres: SqlStore, other: SqlStore, postgres_place: Place, taken: str
) -> None:
    def take() -> bool:
        with other.begin() as tx:
            if taken == "dead":
                return tx.nodes.declare_dead("n1", beat, T0)
            return tx.nodes.mark("n1", taken, T0)

    with postgres.read() as tx:
        (beat,) = (node.beat for node in tx.nodes.all())
    with ThreadPoolExecutor(1) as thread:
        with postgres.begin() as held:
            assert held.nodes.hold("n1")
            taking = thread.submit(take)
            until(lambda: waiting(postgres_place) == 1)
            assert not taking.done()
        assert taking.result(20)
    with postgres.begin() as tx:
        assert not tx.nodes.hold("n1")
        assert not tx.nodes.renew("n1", T0, generation=1) or taken != "dead"


def test_whoever_must_see_all_that_a_node_did_waits_for_its_transactions_and_stops_no_beat(
    postgres: SqlStore, other: SqlStore, postgres_place: Place
) -> None:
    def look() -> list[str]:
        with other.begin() as tx:
            tx.nodes.hold_alone("n1")
            return [run.id for run in tx.runs.running("n1")]

    run = new_run("job")
    add(postgres, run)
    with ThreadPoolExecutor(1) as thread:
        with postgres.begin() as tx:
            assert tx.runs.claim(Claim("n1", 1, 10), T0).runs
            looking = thread.submit(look)
            until(lambda: waiting(postgres_place) == 1)
            with closing(postgres_place.open()) as third, third.begin() as beat:
                assert beat.nodes.renew("n1", T0, generation=1)
            assert not looking.done()
        assert looking.result(20) == [run.id]
