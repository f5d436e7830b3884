"""What really happened at a provider: the truth that every list and every webhook is made of."""

from __future__ import annotations

import threading
from bisect import insort
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from scheduler.testing.faults import Faults, Luck


@dataclass(frozen=True, slots=True, order=True)
class Fact:
    """One event. `at` is the provider's time, `listed_at` when its list begins to show it."""

    at: datetime
    number: int
    listed_at: datetime
    subject: str

    @property
    def id(self) -> str:
        return f"evt_{self.number:08d}"

    @property
    def type(self) -> str:
        return ("payment.created", "payment.failed", "refund.created")[self.number % 3]


class Facts:
    """The book of them, in the order of time. Any thread may write and read."""

    def __init__(self, faults: Faults, luck: Luck, clock: Callable[[], datetime]) -> None:
        self._faults = faults
        self._luck = luck
        self._clock = clock
        self._lock = threading.Lock()
        self._facts: list[Fact] = []
        self._by_number: list[Fact] = []

    def now(self) -> datetime:
        """The provider's clock."""
        return self._clock() + self._faults.clock

    def add(self, at: datetime, *, subject: str = "") -> Fact:
        """Something happened; `at` is of the provider's clock."""
        with self._lock:
            number = len(self._by_number)
            lag = self._faults.lag * self._luck.number("lag", number)
            fact = Fact(at, number, at + lag, subject or f"order-{number % 97}")
            self._by_number.append(fact)
            insort(self._facts, fact)
            return fact

    def spread(self, count: int, start: datetime, end: datetime) -> list[Fact]:
        """So many over this time, in whole seconds; as many of them as `ties` says share one with their neighbour."""
        span = int((end - start).total_seconds())
        made: list[Fact] = []
        for index in range(count):
            tied = bool(made) and self._luck.strikes(self._faults.ties, "tie", index)
            at = made[-1].at if tied else start + timedelta(seconds=span * index // max(1, count - 1))
            made.append(self.add(at))
        return made

    def all(self) -> list[Fact]:
        """Every event, the oldest first."""
        with self._lock:
            return list(self._facts)

    def visible(self) -> Iterator[Fact]:
        """What a list shows now, the oldest first."""
        now = self.now()
        first = None if self._faults.keeps is None else now - self._faults.keeps
        return (one for one in self.all() if one.listed_at <= now and (first is None or one.at >= first))

    def numbered(self, number: int) -> Fact | None:
        return self._by_number[number] if 0 <= number < len(self._by_number) else None

    def known(self, id: str) -> Fact | None:  # noqa: A002  # as the field is called everywhere
        """The event of this id."""
        digits = id.removeprefix("evt_")
        return self.numbered(int(digits)) if digits.isascii() and digits.isdigit() else None
