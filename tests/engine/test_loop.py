"""One loop: never entered twice, never deaf, never dead."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime

from scheduler.core.errors import Unavailable
from scheduler.engine.loop import Loop
from scheduler.engine.outages import QUIET, Outages
from tests.engine.doubles import START

PATIENCE = 20.0


def loop(tick: Callable[[datetime], int], **how: Callable[[], object]) -> Loop:
    return Loop("test", tick, lambda: START, **how)


def test_it_is_never_entered_twice_and_a_request_meanwhile_is_honoured() -> None:
    inside, entered, ticks = threading.Semaphore(0), threading.Event(), []
    at_once, most = 0, 0
    guard = threading.Lock()

    def tick(now: datetime) -> int:
        nonlocal at_once, most
        with guard:
            at_once += 1
            most = max(most, at_once)
            ticks.append(now)
        entered.set()
        assert inside.acquire(timeout=PATIENCE)
        with guard:
            at_once -= 1
        return 0

    turned = loop(tick)
    first = threading.Thread(target=turned.run)
    first.start()
    assert entered.wait(PATIENCE)
    others = [threading.Thread(target=turned.run) for _ in range(8)]
    for thread in others:
        thread.start()
    for thread in others:
        thread.join(PATIENCE)
    assert len(ticks) == 1, "who finds it busy goes away"
    for _ in range(9):
        inside.release()
    first.join(PATIENCE)
    assert (len(ticks), most) == (2, 1), "eight requests during a tick are one"


def test_a_storm_of_requests_loses_none() -> None:
    """After each request a tick begins that has not begun before it."""
    seen = 0
    asked = 0
    guard = threading.Lock()
    errors: list[str] = []

    def tick(now: datetime) -> int:
        nonlocal seen
        with guard:
            seen = asked
        return 0

    turned = loop(tick)

    def ask() -> None:
        nonlocal asked
        for _ in range(300):
            with guard:
                asked += 1
            turned.run()

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert errors == []
    assert seen == asked == 1200


def test_requests_before_a_tick_begins_are_one() -> None:
    ticks = []
    turned = loop(lambda now: ticks.append(now) or 0)
    assert turned.request()
    assert not turned.request()
    turned.run()
    assert len(ticks) == 1
    assert turned.request()


def test_an_exception_ends_the_tick_not_the_loop() -> None:
    faults: list[Exception | None] = [ValueError("no"), Unavailable("away"), Unavailable("away"), None]

    def tick(now: datetime) -> int:
        fault = faults.pop(0)
        if fault is not None:
            raise fault
        return 1

    turned = loop(tick)
    turned.run()
    assert (turned.errors, turned.ailing) == (1, None)
    before = turned.turned_at
    turned.run()
    turned.run()
    assert (turned.errors, turned.ailing, turned.turned_at) == (3, "away", before)
    turned.run()
    assert (turned.errors, turned.ailing) == (3, None)
    assert turned.turned_at > before


def test_an_outage_is_said_once(logs: list[dict[str, object]]) -> None:
    def tick(now: datetime) -> int:
        raise Unavailable("away")

    turned = loop(tick)
    for _ in range(5):
        turned.run()
    assert [entry["event"] for entry in logs] == ["loop_waits"]


def test_an_outage_is_said_once_by_all_loops_however_often_some_turn_well(logs: list[dict[str, object]]) -> None:
    """Loops that need what is away only now and then turn well in between."""
    clock, away = [0.0], [True]
    outages = Outages(lambda: clock[0])

    def seldom(now: datetime) -> int:
        if away[0] and clock[0] % 10 == 0:
            raise Unavailable("away")
        return 0

    def often(now: datetime) -> int:
        if away[0]:
            raise Unavailable("away" if clock[0] < 20 else "refused")
        return 0

    loops = [Loop(name, tick, lambda: START, outages=outages) for name, tick in (("a", seldom), ("b", often))]
    for second in range(100):
        clock[0], away[0] = second, second < 60
        for one in loops:
            one.run()
    assert [(entry["event"], entry.get("reason")) for entry in logs] == [
        ("loop_waits", "away"),
        ("loop_waits", "refused"),
        ("loop_recovered", None),
    ]
    away[0], clock[0] = True, 100 + QUIET
    loops[1].run()
    assert logs[-1]["event"] == "loop_waits", "another outage is news"


def test_what_comes_first_needs_no_database() -> None:
    done = []

    def now() -> datetime:
        raise Unavailable("away")

    turned = Loop("test", lambda _: 0, now, first=lambda: done.append(1))
    turned.run()
    assert done == [1]
    assert turned.ailing == "away"
