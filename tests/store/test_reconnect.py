"""A server that is away is asked for seldom, by one at a time, and everybody is told what that one met."""

from __future__ import annotations

import threading
from itertools import pairwise

import psycopg
import pytest

from scheduler.store.reconnect import FIRST, LONGEST, Reconnect


class Server:
    def __init__(self) -> None:
        self.away = True
        self.asked = 0

    def connect(self) -> str:
        self.asked += 1
        if self.away:
            raise psycopg.errors.CannotConnectNow("it is starting up")
        return "connection"


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def server() -> Server:
    return Server()


def refused(reconnect: Reconnect[str], server: Server) -> psycopg.Error:
    with pytest.raises(psycopg.OperationalError, match="it is starting up") as caught:
        reconnect.connected(server.connect)
    return caught.value


def test_attempts_get_rarer_and_never_too_rare(clock: Clock, server: Server) -> None:
    reconnect: Reconnect[str] = Reconnect(clock)
    attempts: list[float] = []
    for _ in range(1000):
        before = server.asked
        refused(reconnect, server)
        if server.asked > before:
            attempts.append(clock.now)
        clock.now += 0.01
    gaps = [later - earlier for earlier, later in pairwise(attempts)]
    assert 0.75 * FIRST <= gaps[0] <= FIRST + 0.02
    assert all(0.75 * LONGEST <= gap <= LONGEST + 0.02 for gap in gaps[3:])


def test_who_does_not_try_is_told_the_same(clock: Clock, server: Server) -> None:
    reconnect: Reconnect[str] = Reconnect(clock)
    first, second = refused(reconnect, server), refused(reconnect, server)
    assert server.asked == 1
    assert second is not first
    assert (type(second), second.sqlstate) == (type(first), first.sqlstate)


def test_one_success_lets_everybody_in(clock: Clock, server: Server) -> None:
    reconnect: Reconnect[str] = Reconnect(clock)
    for _ in range(20):
        clock.now += 1
        refused(reconnect, server)
    server.away = False
    clock.now += LONGEST
    assert [reconnect.connected(server.connect) for _ in range(3)] == ["connection"] * 3
    server.away = True
    refused(reconnect, server)
    clock.now += FIRST
    asked = server.asked
    refused(reconnect, server)
    assert server.asked == asked + 1, "waits begin small again"


def test_nobody_waits_for_the_one_who_tries(clock: Clock, server: Server) -> None:
    reconnect: Reconnect[str] = Reconnect(clock)
    refused(reconnect, server)
    clock.now += LONGEST
    trying, answer = threading.Event(), threading.Event()

    def hang() -> str:
        trying.set()
        assert answer.wait(20)
        return "connection"

    thread = threading.Thread(target=lambda: reconnect.connected(hang))
    thread.start()
    assert trying.wait(20)
    refused(reconnect, server)
    assert server.asked == 1
    answer.set()
    thread.join(20)
    server.away = False
    assert reconnect.connected(server.connect) == "connection"


def test_what_is_no_fault_of_the_server_stops_nobody(clock: Clock, server: Server) -> None:
    reconnect: Reconnect[str] = Reconnect(clock)

    def mistake() -> str:
        raise ValueError

    for _ in range(2):
        with pytest.raises(ValueError):
            reconnect.connected(mistake)
    server.away = False
    assert reconnect.connected(server.connect) == "connection"
