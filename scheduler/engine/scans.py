"""Compensation scans carried out: each page of a provider's list becomes one transaction.

What a page holds, where its list goes on and what it came to are written together, through the door that webhooks take,
and only as long as the run is this node's: a scan that is cut short anywhere goes on from its last page.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from scheduler.core.compensator import (
    Compensator,
    CursorExpired,
    ListedEvent,
    ListingFailed,
    Page,
    Throttled,
    answering,
)
from scheduler.core.errors import Refused, SchedulerError, Unavailable
from scheduler.core.execution import Bus
from scheduler.core.job import Job
from scheduler.core.lifecycle import is_look
from scheduler.core.model import FailReason, Run
from scheduler.core.outcome import Failed, Outcome, Snoozed, Succeeded
from scheduler.core.ports import Store, Transaction
from scheduler.core.scan import NOTHING_OLD, Counts, ScanReport
from scheduler.core.scan_json import report_json
from scheduler.core.source import Source
from scheduler.engine.arrivals import Arrived, announce_doubts, announce_runs, hold_newest
from scheduler.engine.fan_out import LoadFirst
from scheduler.engine.in_force import InForce, Loaded
from scheduler.engine.scan_steps import Pass, begin, break_off, check, complete, list_anew, source_of, take

T = TypeVar("T")

MOST_PAGES = 1_000
"""Pages of one attempt: then other scans have their turn, and this one goes on after BREATHER."""
BREATHER = timedelta(seconds=5)
THROTTLED_WAIT = timedelta(seconds=60)
"""For a provider that wants to be asked later and does not say when."""
AWAY_WAIT = timedelta(seconds=10)
"""After the database went away in the middle; costs no retry."""
JITTER = 0.1
"""A wait grows by up to this share and never shrinks: a provider that says when means not before."""
EXPIRIES = 3
"""So often a window is listed from its start again in one attempt."""


class Scanner:
    """Implements core.execution.Scanning. `follow` loads the newest generation if it can, `wake` asks the worker to
    look soon."""

    def __init__(
        self,
        store: Store,
        in_force: InForce,
        bus: Bus,
        follow: Callable[[datetime], None],
        wake: Callable[[], None],
        most_pages: int = MOST_PAGES,
    ) -> None:
        self._store = store
        self._in_force = in_force
        self._bus = bus
        self._follow = follow
        self._wake = wake
        self._most_pages = most_pages

    def source(self, name: str) -> Source:
        return source_of(self._in_force.current, name)

    def scan(self, run: Run, job: Job, compensator: Compensator) -> Outcome:
        assert job.compensate is not None
        one = Pass(run, job, job.compensate, is_look(run, job))
        try:
            return self._scan(one, compensator)
        except Unavailable as away:
            return Snoozed(AWAY_WAIT, str(away))
        except SchedulerError as refused:
            return Failed(FailReason.ERROR, str(refused), retryable=False)

    # ------------------------------------------------------------ the list

    def _scan(self, one: Pass, compensator: Compensator) -> Outcome:
        try:
            one.coverage = compensator.coverage()
            now = self._store.now()
            one.skew = timedelta(0) if one.coverage.provider_now is None else one.coverage.provider_now - now
            one.state = self._write(one, lambda tx, loaded, now: begin(tx, one, now))
            if one.state is None:
                return Succeeded({"listed": 0, "why": NOTHING_OLD})
            return self._list(one, compensator)
        except Throttled as error:
            words = f"the provider wants to be asked later: {error}"
            self._break_off(one, words, failed=False)
            return Snoozed(_wait(error.retry_after), words)
        except ListingFailed as error:
            words = f"the list cannot be read: {error}"
            self._break_off(one, words, failed=True)
            return Failed(FailReason.HTTP, words, retryable=not error.final)

    def _list(self, one: Pass, compensator: Compensator) -> Outcome:
        for _ in range(EXPIRIES):
            state = one.under_way
            assert state.window is not None
            try:
                with answering(partial(self._known, one)):
                    for page in compensator.pages(state.window, state.cursor):
                        self._take(one, page)
                        if one.pages >= self._most_pages and page.next is not None:
                            words = f"{one.under_way.counts.pages} pages are read, the window goes on"
                            self._break_off(one, words, failed=False)
                            return Snoozed(BREATHER, words)
                return self._complete(one)
            except CursorExpired:
                one.state = self._write(one, lambda tx, loaded, now: list_anew(tx, one))
                one.forget()
        raise ListingFailed(f"its cursors expired {EXPIRIES} times before their pages were read")

    def _known(self, one: Pass, ids: Collection[str]) -> Collection[str]:
        with self._store.read() as tx:
            found = tx.events.known(one.spec.source, ids, one.job.name)
        one.vouched.update(found)
        return found

    def _take(self, one: Pass, page: Page) -> None:
        before = one.under_way.counts
        after, arrived = self._write(one, lambda tx, loaded, now: take(tx, loaded, one, page, now))
        one.took(page, after)
        if not one.dry:
            self._tell(one, page, arrived, before, after.counts)

    def _complete(self, one: Pass) -> Outcome:
        report = self._write(one, lambda tx, loaded, now: complete(tx, one, now))
        self._announce(report)
        return Succeeded(report_json(report)) if report.complete else Failed(FailReason.ERROR, report.why)

    def _break_off(self, one: Pass, why: str, *, failed: bool) -> None:
        if one.state is None or one.state.window is None:
            return
        report = self._write(one, lambda tx, loaded, now: break_off(tx, one, why, now, failed=failed))
        if report is not None:
            self._announce(report)

    # ------------------------------------------------------------ the transaction

    def _write(self, one: Pass, work: Callable[[Transaction, Loaded, datetime], T]) -> T:
        """`work` by the newest configuration and only while the run is this attempt's. Raises Refused, Unavailable."""
        now = self._store.now()
        attempt = partial(self._try, one, work, now)
        try:
            return attempt()
        except LoadFirst:
            self._follow(now)
            return attempt()

    def _try(self, one: Pass, work: Callable[[Transaction, Loaded, datetime], T], now: datetime) -> T:
        with self._store.begin() as tx:
            # One that is leaving waits for what it holds; scans go on to their end there.
            node = one.run.node or ""
            if not tx.nodes.hold(node) and not _leaving(tx, node):
                raise Refused("this node was declared dead", hint="what it did goes on elsewhere")
            loaded = hold_newest(tx, self._in_force)
            check(tx, one)
            return work(tx, loaded, now)

    # ------------------------------------------------------------ telling

    def _tell(self, one: Pass, page: Page, arrived: Arrived, before: Counts, after: Counts) -> None:
        name, source = one.job.name, one.spec.source
        types = {item.id: item.type for item in page.items if isinstance(item, ListedEvent)}
        for stored in arrived.stored:
            about = {"source": source, "event": stored.id, "type": types.get(stored.id, "")}
            self._bus.publish("event.received", **about, via="scan", new=stored.new)
            announce_runs(self._bus, stored)
        announce_doubts(self._bus, arrived)
        self._bus.publish(
            "scan.read",
            job=name,
            source=source,
            injected=after.injected - before.injected,
            known=after.known - before.known,
            too_young=after.too_young - before.too_young,
            undecodable=after.undecodable - before.undecodable,
        )
        if any(stored.runs for stored in arrived.stored):
            self._wake()

    def _announce(self, report: ScanReport) -> None:
        if report.dry_run:
            return
        about = {"job": report.job, "source": report.source}
        for hole in report.holes:
            self._bus.publish("scan.hole", **about, start=hole.start, end=hole.end, why=hole.why)
        if report.unlisted:
            self._bus.publish("scan.unlisted", **about, count=report.unlisted)
        counts = report.counts
        told = {"complete": report.complete, "why": report.why, "listed": counts.listed, "injected": counts.injected}
        self._bus.publish("scan.finished", **about, run=report.run, **told)


def _leaving(tx: Transaction, node: str) -> bool:
    return any(view.id == node and view.state == "stopping" for view in tx.nodes.all())


def _wait(retry_after: float | None) -> timedelta:
    wait = THROTTLED_WAIT if retry_after is None else timedelta(seconds=max(0.0, retry_after))
    spread = random.random()  # noqa: S311 -- spreads requests, is no secret
    return wait * (1 + JITTER * spread)
