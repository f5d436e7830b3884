"""Some days at a provider, with webhooks that come or not and a scanner that runs now and then; nothing waits."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from scheduler.testing.facts import Fact, Facts
from scheduler.testing.faults import Faults, Luck
from scheduler.testing.lists import Lists
from scheduler.testing.sender import plan

BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
SETTLE = timedelta(minutes=10)


@dataclass
class History:
    """`now` is our clock; the provider's is `faults.clock` beside it. `inbox` holds ids."""

    faults: Faults
    now: datetime = BEGIN
    inbox: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.luck = Luck(7)
        self.facts = Facts(self.faults, self.luck, lambda: self.now)
        self.lists = Lists(self.facts, self.faults, self.luck, "key")

    def happen(self, count: int, length: timedelta) -> None:
        """By the provider's clock, from the beginning on."""
        self.facts.spread(count, BEGIN + self.faults.clock, BEGIN + self.faults.clock + length)

    def get(self, path: str, **query: object) -> Any:
        """What a list answers; an error for anything but 200."""
        texts = {name.replace("__", "."): str(value) for name, value in query.items() if value is not None}
        reply = self.lists.answer(path, texts, {"authorization": "Bearer key"})
        if reply.status != 200:
            raise LookupError(f"{reply.status}: {reply.document}")
        return reply.document

    def run(self, scan: Callable[[], Iterable[str]], at: Iterable[timedelta]) -> None:
        """The scanner at these instants of our clock, webhooks as they are due between them."""
        planned = plan(self.facts.all(), self.faults, self.luck)
        for instant in at:
            self.now = BEGIN + instant
            self.inbox |= {one.fact.id for one in planned if one.due - self.faults.clock <= self.now}
            self.inbox |= set(scan())

    def lost(self) -> list[Fact]:
        """What is old enough to have been found, and was not."""
        old = self.facts.now() - SETTLE
        return [one for one in self.facts.all() if one.at <= old and one.id not in self.inbox]


def every(period: timedelta, length: timedelta, *, without: Iterable[int] = ()) -> list[timedelta]:
    """The instants, but for some that were missed."""
    return [period * index for index in range(1, length // period + 1) if index not in set(without)]
