"""A provider in memory, with everything that lists do to those who read them, and a rig that scans it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

from scheduler.config.load import load_texts
from scheduler.core.compensator import Coverage, Cursor, ListedEvent, Page, Undecodable, Window
from scheduler.core.event import NewEvent, Via
from scheduler.core.execution import Launch
from scheduler.core.job import Configuration
from scheduler.core.model import Run
from scheduler.core.outcome import Outcome
from scheduler.core.scan import Hole, ScanReport, ScanState
from scheduler.engine.scans import MOST_PAGES, Scanner
from scheduler.store.store import SqlStore
from tests.engine.doubles import TurnedClock
from tests.engine.rig import Rig
from tests.engine.senders import event, kept, subscribed, told

PLUGINS = Path(__file__).parent / "plugins"
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


@dataclass
class Provider:
    """Implements Compensator. `skew`: its clock minus ours. `tells`: coverage says what its clock is. `silent`: no page
    does. `visible_after`: how long an event is there before it is listed. `fails`: what is raised instead of a page, by
    the number of the call (1, 2, …). `before_page` is called with that number before each page."""

    clock: TurnedClock
    size: int = 2
    newest_first: bool = False
    skew: timedelta = timedelta(0)
    tells: bool = True
    silent: bool = False
    keeps: timedelta | None = None
    trusted: str = ""
    whole_seconds: bool = False
    visible_after: timedelta = timedelta(0)
    fails: dict[int, Exception] = field(default_factory=dict)
    before_page: Callable[[int], None] = lambda number: None
    events: dict[str, ListedEvent | Undecodable] = field(default_factory=dict)
    windows: list[Window] = field(default_factory=list)
    cursors: list[Cursor | None] = field(default_factory=list)
    calls: int = 0
    kind: ClassVar[str] = "scripted"
    secret_options: ClassVar[Iterable[str]] = ()

    @property
    def now(self) -> datetime:
        return self.clock.now() + self.skew

    def happens(self, name: str, ago: timedelta = timedelta(0), **how: Any) -> ListedEvent:
        """An event of `ago` before the provider's present."""
        at = self.now - ago
        data = {"type": "payment.failed", **how}
        body = {"id": name, "at": at.isoformat(), **data}
        made = ListedEvent(name, at, body, str(data["type"]), str(data.get("about", "")))
        self.events[name] = made
        return made

    def poison(self, raw: str, ago: timedelta) -> None:
        self.events[raw] = Undecodable(raw, "no id", self.now - ago)

    # ------------------------------------------------------------ as a compensator

    def coverage(self) -> Coverage:
        told = self.now if self.tells else None
        return Coverage(self.keeps, not self.trusted, self.trusted, told)

    def pages(self, window: Window, cursor: Cursor | None) -> Iterator[Page]:
        self.windows.append(window)
        self.cursors.append(cursor)
        after = None if cursor is None else (datetime.fromisoformat(cursor["at"]), cursor["id"])
        while True:
            self.calls += 1
            self.before_page(self.calls)
            if self.calls in self.fails:
                raise self.fails[self.calls]
            rest = self._rest(window, after)
            items, told = rest[: self.size], None if self.silent else self.now
            if len(rest) <= self.size:
                yield Page(tuple(one for _, one in items), None, told)
                return
            after = items[-1][0]
            following = {"at": after[0].isoformat(), "id": after[1]}
            yield Page(tuple(one for _, one in items), following, told)

    def _rest(
        self, window: Window, after: tuple[datetime, str] | None
    ) -> list[tuple[tuple[datetime, str], ListedEvent | Undecodable]]:
        """Sorted by (time, id): a list whose cursor is its key."""
        found = []
        for name, one in self.events.items():
            assert one.occurred_at is not None
            at = one.occurred_at
            gone = self.keeps is not None and at < self.now - self.keeps
            hidden = at > self.now - self.visible_after
            seen = at.replace(microsecond=0) if self.whole_seconds else at
            if not gone and not hidden and window.start <= seen <= window.end:
                found.append(((at, name), one))
        found.sort(key=lambda one: one[0], reverse=self.newest_first)
        if after is None:
            return found
        return [one for one in found if (one[0] < after if self.newest_first else one[0] > after)]


class Compensating:
    """An executor that scans at once, in the caller's thread."""

    kind: ClassVar[str] = "compensate"

    def __init__(self, scanner: Scanner, providers: Mapping[str, Provider]) -> None:
        self.scanner = scanner
        self.providers = providers
        self.outcomes: list[Outcome] = []

    def start(self, launch: Launch, done: Callable[[Outcome], None]) -> None:
        outcome = self.scanner.scan(launch.run, launch.job, self.providers[launch.job.name])
        self.outcomes.append(outcome)
        done(outcome)

    def end(self, run: str, why: str) -> None:
        """A scan of these tests is over before anybody could end it."""


class ScanRig(Rig):
    """A node with scan jobs (`scans`: what their `compensate` has beyond the usual) over providers of their own, and a
    job `ticket` that gets the events of `payments`."""

    def __init__(
        self,
        store: SqlStore,
        scans: Mapping[str, Mapping[str, Any]] | None = None,
        *,
        most_pages: int = MOST_PAGES,
        subscribers: Mapping[str, Mapping[str, Any]] | None = None,
        sources: Mapping[str, Mapping[str, Any]] | None = None,
        **how: Any,
    ) -> None:
        scans = scans or {"scan": {}}
        text = json.loads(subscribed(subscribers or {"ticket": {}}, **(sources or {})))
        for name, keys in scans.items():
            usual = {"source": "payments", "compensator": "scripted", "settle": "5m", "margin": "1h"}
            text["jobs"][name] = {"compensate": {**usual, **keys}}
        super().__init__(store, json.dumps(text), **how)
        self.providers = {name: Provider(self.clock) for name in scans}
        self.compensating = attach(self, self.providers, most_pages)
        self.scanner = self.compensating.scanner

    @property
    def provider(self) -> Provider:
        return self.providers["scan"]

    def load(self) -> Configuration:
        environ = {"SCHEDULER_PLUGINS": str(PLUGINS)}
        return load_texts({"jobs.yaml": self.text}, "jobs.yaml", environ=environ)

    # ------------------------------------------------------------ doing

    def scan(self, job: str = "scan", **payload: Any) -> Run:
        """A run of the scan job, to the end of this attempt."""
        run, _ = self.desk.run_now(job, author="test", payload=payload or None, has_payload=bool(payload))
        self.worker.tick(self.store.now())
        self.worker.tick(self.store.now())
        return self.run(run.id)

    def webhook(self, name: str, ago: timedelta = timedelta(0), **how: Any) -> None:
        at = self.clock.now() - ago
        told(self, event(name, occurred_at=at, received_at=self.clock.now(), **how))

    def undated(self, *names: str, **how: Any) -> None:
        """Webhooks that come now and do not say when their events occurred."""
        told(self, *(event(name, received_at=self.clock.now(), **how) for name in names))

    # ------------------------------------------------------------ looking

    def reports(self, job: str | None = "scan") -> list[ScanReport]:
        """The newest first."""
        with self.store.read() as tx:
            found: list[ScanReport] = tx.scans.reports(job, 100)
        return found

    @property
    def report(self) -> ScanReport:
        return self.reports()[0]

    def stands(self, job: str = "scan") -> ScanState:
        with self.store.read() as tx:
            found: ScanState | None = tx.scans.state(job)
        assert found is not None
        return found

    def holes(self) -> list[Hole]:
        with self.store.read() as tx:
            found: list[Hole] = tx.scans.holes()
        return found

    def handled(self) -> list[str]:
        """The events that got a run of `ticket`, in the order in which they got it."""
        return [run.payload["event"]["id"] for run in self.payloads()]

    def payloads(self) -> list[Run]:
        with self.store.read() as tx:
            return [tx.runs.get(run.id) for run in self.runs("ticket")]


def attach(rig: Rig, providers: Mapping[str, Provider], most_pages: int = MOST_PAGES) -> Compensating:
    """Lets a node scan these providers, by the name of the scan job."""
    scanner = Scanner(rig.store, rig.in_force, rig.bus, rig.reloader.follow, rig._wake, most_pages)
    executor = Compensating(scanner, providers)
    known = rig.worker._executors
    rig.worker._executors = {**known, "compensate": executor}
    return executor


def via(rig: ScanRig, name: str) -> Via:
    found = kept(rig, name)
    assert found is not None
    return found.via


def listed_as_webhook(item: ListedEvent, now: datetime) -> NewEvent:
    """The webhook of a listed event."""
    body = json.dumps(item.body).encode()
    return NewEvent("payments", item.id, Via.WEBHOOK, now, body, item.type, item.subject, item.occurred_at)
