"""Scanners as many are written. Each is the heart of one that is in use; what it loses is in test_naive."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from scheduler.core.sender_time import sender_instant
from tests.compensators.history import BEGIN, History


def instant(value: object) -> datetime:
    found = sender_instant(value)
    assert found is not None
    return found


def stripe_pages(world: History, **asked: object) -> Iterator[dict[str, object]]:
    """All pages of Stripe's list, newest first."""
    after = None
    while True:
        page = world.get("/v1/events", limit=50, starting_after=after, **asked)
        yield from page["data"]
        if not page["has_more"]:
            return
        after = page["data"][-1]["id"]


class OwnClock:
    """GitHub's script for redeliveries: everything `delivered_at > last`, where `last` is when it ran last by the clock
    of the machine that it ran on; it looks at the last item of each page without asking whether there is one."""

    def __init__(self, world: History) -> None:
        self.world = world
        self.last = BEGIN

    def __call__(self) -> list[str]:
        found, started = [], self.world.now
        page = self.world.get("/repos/example/repository/hooks/1/deliveries", per_page=250)
        oldest = page[len(page) - 1]
        assert oldest
        found += [one["guid"] for one in page if instant(one["delivered_at"]) > self.last]
        self.last = started
        return found


class LastDay:
    """A daily job that lists the last 24 hours."""

    def __init__(self, world: History) -> None:
        self.world = world

    def __call__(self) -> list[str]:
        since = int((self.world.now - timedelta(hours=24)).timestamp())
        return [str(one["id"]) for one in stripe_pages(self.world, **{"created[gte]": since})]


class Everything:
    """Everything that the provider still has, each time."""

    def __init__(self, world: History) -> None:
        self.world = world

    def __call__(self) -> list[str]:
        return [str(one["id"]) for one in stripe_pages(self.world)]


class Quarter:
    """Every fifteen minutes the last fifteen minutes."""

    def __init__(self, world: History) -> None:
        self.world = world

    def __call__(self) -> list[str]:
        since = int((self.world.now - timedelta(minutes=15)).timestamp())
        return [str(one["id"]) for one in stripe_pages(self.world, **{"created[gte]": since})]


class SinceId:
    """Everything after the last id that it has seen."""

    def __init__(self, world: History) -> None:
        self.world = world
        self.last: str | None = None

    def __call__(self) -> list[str]:
        if self.last is not None:
            self.world.get("/v1/events", limit=1, starting_after=self.last)
        found: list[str] = []
        for one in stripe_pages(self.world):
            if one["id"] == self.last:
                break
            found.append(str(one["id"]))
        self.last = found[0] if found else self.last
        return found


class Capped:
    """The first so many of the period, and no word about the others."""

    def __init__(self, world: History, most: int) -> None:
        self.world = world
        self.most = most
        self.last = BEGIN

    def __call__(self) -> list[str]:
        found = []
        for one in stripe_pages(self.world, **{"created[gte]": int(self.last.timestamp())}):
            found.append(str(one["id"]))
            if len(found) == self.most:
                break
        self.last = self.world.now
        return found


class Newest:
    """Everything later than the latest time that it has seen, and not a moment earlier."""

    def __init__(self, world: History) -> None:
        self.world = world
        self.latest = BEGIN

    def __call__(self) -> list[str]:
        first = int(self.latest.timestamp()) + 1
        found = list(stripe_pages(self.world, **{"created[gte]": first}))
        self.latest = max([self.latest, *(instant(one["created"]) for one in found)])
        return [str(one["id"]) for one in found]


class ByNumber:
    """Page by page, by the number of the page."""

    def __init__(self, world: History) -> None:
        self.world = world

    def __call__(self) -> list[str]:
        found: list[str] = []
        for page in range(1, 1000):
            rows = self.world.get("/events", page=page, limit=5)["data"]
            found += [one["event_id"] for one in rows]
            if not rows:
                break
        return found
