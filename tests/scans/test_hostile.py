"""Everything that can go wrong, at once: what comes out is accounted for, event by event."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import pytest

from scheduler.core.compensator import CursorExpired, ListedEvent, ListingFailed, Throttled, Window
from scheduler.core.errors import DatabaseAway
from scheduler.engine.inbox import EventInbox
from scheduler.store.store import SqlStore
from tests.scans.provider import HOUR, ScanRig, listed_as_webhook

EVENTS = 200
FAULTS: tuple[Any, ...] = (
    ListingFailed("502 Bad Gateway"),
    CursorExpired("410 Gone"),
    Throttled("429 Too Many Requests", 30.0),
)


class World:
    """A provider that makes events all the time and loses, doubles and delays their webhooks; its clock is off, its
    list late, full of ties, and it fails now and then. Between two pages the database may go away, or another daemon
    take over."""

    def __init__(self, store: SqlStore, seed: int) -> None:
        self.dice = random.Random(seed)
        settings = {"settle": "5m", "margin": "0s", "first_window": "24h"}
        self.rig = ScanRig(store, {"scan": settings}, most_pages=5)
        self.provider = self.rig.provider
        self.provider.size = 7
        self.provider.newest_first = self.dice.random() < 0.5
        self.provider.skew = timedelta(seconds=self.dice.choice([-4000, -7, 0, 300]))
        self.provider.visible_after = timedelta(seconds=self.dice.choice([0, 8, 200]))
        self.provider.whole_seconds = self.dice.random() < 0.5
        self.provider.before_page = self.disturb
        self.late: list[tuple[datetime, ListedEvent]] = []
        self.sent = 0

    def disturb(self, number: int) -> None:
        if self.dice.random() < 0.08:
            self.provider.fails[number] = self.dice.choice(FAULTS)
        if self.dice.random() < 0.05:
            self.rig.store.broken_commits = 1
        if self.dice.random() < 0.05:
            self.rig.store.lost_answers = 1
        if self.dice.random() < 0.3:
            self.rig.turn(seconds=self.dice.random() * 20)

    def happen(self) -> None:
        """Half a minute of business, ties included."""
        for _ in range(self.dice.choice([0, 1, 1, 2, 6])):
            if self.sent < EVENTS:
                made = self.provider.happens(f"e{self.sent}", about=f"o{self.sent % 9}")
                self.sent += 1
                fate = self.dice.random()
                if fate < 0.5:
                    self.come(made)
                elif fate < 0.6:
                    self.come(made, made)
                elif fate < 0.7:
                    self.late.append((self.rig.clock.now() + self.dice.random() * 2 * HOUR, made))

    def come(self, *items: ListedEvent) -> None:
        inbox: EventInbox = self.rig.inbox
        events = [listed_as_webhook(item, self.rig.clock.now()) for item in items]
        inbox.submit(events, None, lambda served: None)

    def live(self) -> None:
        for minute in range(2 * 60):
            self.happen()
            self.rig.turn(seconds=30)
            self.happen()
            self.tick(30)
            due = [item for at, item in self.late if at <= self.rig.clock.now()]
            self.late = [(at, item) for at, item in self.late if at > self.rig.clock.now()]
            self.come(*due)
            if minute % 17 == 0:
                self.scan()
            if self.dice.random() < 0.05 and not self.rig.worker.live():
                self.rig.succeed()

    def scan(self) -> None:
        if all(run.status.final for run in self.rig.runs("scan")):
            with suppress(DatabaseAway):
                self.rig.desk.run_now("scan", author="test")
        self.tick(0)
        self.tick(1)

    def tick(self, seconds: float) -> None:
        """A loop that meets a database which is away turns again a second later."""
        with suppress(DatabaseAway):
            self.rig.tick(seconds=seconds)
        self.rig.executor.finish_all()

    def calm(self) -> None:
        """Nothing goes wrong any more, until a last scan has read everything."""
        self.provider.before_page = lambda number: None
        self.provider.fails.clear()
        self.rig.store.broken_commits = self.rig.store.lost_answers = 0
        self.rig.turn(hours=1)
        for _ in range(400):
            self.tick(60)
            if all(run.status.final for run in self.rig.runs("scan")):
                break
        self.scan()
        for _ in range(400):
            self.tick(6)
            if all(run.status.final for run in self.rig.runs("scan")):
                return
        raise AssertionError("the last scan does not end")


@pytest.mark.parametrize("seed", range(3))
def test_every_event_is_handled_once(sqlite: SqlStore, seed: int) -> None:
    world = World(sqlite, seed)
    world.live()
    world.calm()
    rig = world.rig
    assert world.sent == EVENTS
    handled = Counter(rig.handled())
    lost = [name for name in world.provider.events if name not in handled]
    assert lost == []
    assert [name for name, count in handled.items() if count > 1] == []
    assert rig.holes() == []
    for report in rig.reports():
        counts = report.counts
        assert counts.listed == counts.known + counts.injected + counts.too_young + counts.undecodable
    with rig.store.read() as tx:
        everything = Window(rig.clock.now() - 40 * HOUR, rig.clock.now())
        total, ids = tx.events.unlisted("payments", everything, everything, "scan", 10)
    assert (total, ids) == (0, [])
