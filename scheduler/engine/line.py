"""A line of equal requests: those that arrive while one is being served share the next."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Line(Generic[T]):
    """Serves one request at a time; requests of one kind that wait meanwhile are served together."""

    def __init__(self) -> None:
        self._guard = threading.Condition()
        self._asked = 0
        self._served: dict[object, tuple[int, T | BaseException]] = {}
        self._busy = False

    def share(self, kind: object, work: Callable[[], T]) -> T:
        """The result (or error) of a `work()` that began after this call did."""
        with self._guard:
            self._asked += 1
            ticket = self._asked
            while self._busy:
                self._guard.wait()
                done = self._served.get(kind)
                if done is not None and done[0] >= ticket:
                    return _result(done[1])
            self._busy = True
            begun = self._asked
        outcome: T | BaseException
        try:
            outcome = work()
        except BaseException as error:
            outcome = error
        with self._guard:
            self._served[kind] = (begun, outcome)
            self._busy = False
            self._guard.notify_all()
        return _result(outcome)


def _result(outcome: T | BaseException) -> T:
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome
