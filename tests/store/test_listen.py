"""Hints between nodes over PostgreSQL: what is said is heard by the others, also after the connection was lost."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import ExitStack

import psycopg
import pytest

from scheduler.core.hints import ALL, CANCEL, LISTENING, POLLING, SETTLED, WORK
from scheduler.store import listen
from scheduler.store.listen import CHANNEL, PostgresEar
from scheduler.store.store import SqlStore
from tests.databases import Place
from tests.until import until


class Node:
    """One that says `words` when it is rung for, and keeps what it heard."""

    def __init__(self, store: SqlStore) -> None:
        self.words: set[str] = set()
        self.asked = 0
        self.heard: list[set[str]] = []
        ear = store.ear(self._said, lambda words: self.heard.append(set(words)))
        assert isinstance(ear, PostgresEar)
        self.ear = ear

    def _said(self) -> Collection[str]:
        self.asked += 1
        return self.words

    def say(self, *words: str) -> None:
        self.words = set(words)
        self.ear.ring()


@pytest.fixture
def nodes(postgres_place: Place) -> Iterator[tuple[Node, Node]]:
    """Two that listen."""
    with ExitStack() as stack:
        made = []
        for _ in range(2):
            store = postgres_place.open()
            stack.callback(store.close)
            node = Node(store)
            stack.callback(node.ear.stop)
            node.ear.start()
            made.append(node)
        until(lambda: all(node.heard == [ALL] for node in made))  # As if all of it had been said before they listened.
        for node in made:
            assert node.ear.hearing.state == LISTENING
            node.heard.clear()
        yield made[0], made[1]


def test_others_hear_what_is_said(nodes: tuple[Node, Node]) -> None:
    speaker, listener = nodes
    speaker.say(WORK, SETTLED)
    until(lambda: listener.heard == [{WORK, SETTLED}])
    listener.say(CANCEL)
    until(lambda: speaker.heard == [{CANCEL}])  # And nothing of its own.


def test_what_is_rung_for_in_a_moment_is_said_once(nodes: tuple[Node, Node], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listen, "PAUSE", 0.5)
    speaker, listener = nodes
    for _ in range(100):
        speaker.say(WORK)
    until(lambda: listener.heard == [{WORK}])
    speaker.say(WORK)
    until(lambda: listener.heard == [{WORK}, {WORK}])
    assert speaker.asked <= 3


def test_nothing_is_sent_when_there_is_nothing_to_say(nodes: tuple[Node, Node]) -> None:
    speaker, listener = nodes
    speaker.say()
    until(lambda: speaker.asked == 1)
    speaker.say(CANCEL)
    until(lambda: listener.heard == [{CANCEL}])


def test_a_lost_connection_is_made_anew(
    nodes: tuple[Node, Node],
    postgres_place: Place,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(listen, "FIRST_WAIT", 0.05)
    speaker, listener = nodes
    with psycopg.connect(postgres_place.url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    until(lambda: speaker.heard == listener.heard == [ALL])
    speaker.say(WORK)
    until(lambda: listener.heard[1:] == [{WORK}])
    assert [one.name for one in caplog.records if one.exc_info] == [], "what is expected needs no traceback"


def test_who_cannot_connect_polls_and_says_why(postgres_place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    store = postgres_place.open()
    monkeypatch.setattr(store._database.engine, "raw_connection", _refuse)
    node = Node(store)
    node.ear.start()
    until(lambda: "no entry" in node.ear.hearing.why)
    assert node.ear.hearing.state == POLLING
    node.ear.stop()
    store.close()


def test_the_last_words_of_a_node_that_leaves_are_heard(
    nodes: tuple[Node, Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    speaker, listener = nodes
    speaker.say(SETTLED)
    until(lambda: listener.heard == [{SETTLED}])
    monkeypatch.setattr(listen, "PAUSE", 60.0)
    speaker.say(SETTLED)
    until(lambda: listener.heard[1:] == [{SETTLED}])
    speaker.say(WORK)  # It would have to wait for a minute.
    speaker.ear.stop()
    until(lambda: listener.heard[2:] == [{WORK}])


def test_strange_words_are_nobodys(nodes: tuple[Node, Node], postgres_place: Place) -> None:
    _, listener = nodes
    with psycopg.connect(postgres_place.url, autocommit=True) as connection:
        for payload in ("", "dance", "work;drop", "proof 1"):
            connection.execute("SELECT pg_notify(%s, %s)", [CHANNEL, payload])
        connection.execute("SELECT pg_notify(%s, %s)", [CHANNEL, f"dance,{WORK}"])
    until(lambda: listener.heard == [{WORK}])


def test_a_node_alone_has_nobody_to_hear(sqlite_place: Place) -> None:
    store = sqlite_place.open()
    assert store.ear(set, lambda words: None) is None
    store.close()


def _refuse() -> None:
    raise OSError("no entry")
