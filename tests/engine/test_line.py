"""Requests that arrive while one is being served share the next."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from scheduler.engine.line import Line
from tests.until import until

PATIENCE = 20.0


class Serving:
    """A work that waits until the test lets it go."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.go = threading.Semaphore(0)
        self.entered = threading.Semaphore(0)

    def __call__(self) -> int:
        self.begun.append(len(self.begun))
        mine = self.begun[-1]
        self.entered.release()
        assert self.go.acquire(timeout=PATIENCE)
        return mine


def start(line: Line[int], kind: str, work: Callable[[], int], results: dict[str, int]) -> threading.Thread:
    def ask() -> None:
        results[threading.current_thread().name] = line.share(kind, work)

    thread = threading.Thread(target=ask, name=f"{kind}-{len(results)}-{threading.active_count()}")
    thread.start()
    return thread


def arrived(line: Line[int], count: int) -> None:
    """Waits until so many requests have come."""

    def have_come() -> bool:
        with line._guard:
            return line._asked >= count

    until(have_come, PATIENCE)


def test_those_that_wait_are_served_together() -> None:
    line: Line[int] = Line()
    work = Serving()
    results: dict[str, int] = {}
    threads = [start(line, "k", work, results)]
    assert work.entered.acquire(timeout=PATIENCE)
    threads += [start(line, "k", work, results) for _ in range(10)]
    arrived(line, 11)
    work.go.release()
    assert work.entered.acquire(timeout=PATIENCE)
    work.go.release()
    for thread in threads:
        thread.join(PATIENCE)
    assert work.begun == [0, 1]
    assert sorted(results[thread.name] for thread in threads) == [0, *[1] * 10]


def test_requests_of_another_kind_are_served_by_themselves() -> None:
    line: Line[int] = Line()
    work = Serving()
    results: dict[str, int] = {}
    threads = [start(line, "k", work, results)]
    assert work.entered.acquire(timeout=PATIENCE)
    threads += [start(line, kind, work, results) for kind in ("k", "other")]
    arrived(line, 3)
    for _ in range(3):
        work.go.release()
    for thread in threads:
        thread.join(PATIENCE)
    assert sorted(results.values()) == [0, 1, 2]


def test_an_error_is_everybodys_and_the_line_goes_on() -> None:
    line: Line[int] = Line()

    def broken() -> int:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        line.share("k", broken)
    assert line.share("k", lambda: 7) == 7
