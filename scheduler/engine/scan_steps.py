"""The steps of a scan, each the work of one transaction: a window is fixed, a page is taken, the whole is summed up."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from scheduler.core import scan_window, scanning
from scheduler.core.compensator import Coverage, ListingFailed, Page, Undecodable, Window
from scheduler.core.errors import Refused
from scheduler.core.ids import short
from scheduler.core.job import Job
from scheduler.core.listed import ListReader
from scheduler.core.model import Run, Status
from scheduler.core.ports import Transaction
from scheduler.core.scan import Aside, Counts, Hole, ScanReport, ScanState
from scheduler.core.scan_window import Present
from scheduler.core.source import Compensate, Source
from scheduler.engine.arrivals import Arrived, arrive
from scheduler.engine.in_force import Loaded
from scheduler.engine.keeper import SET_BACK
from scheduler.engine.set_back import SetBack

REMEMBERED = 20_000
"""Ids of a list that are known to have been in it, so that a list that shifts while it is read is not counted twice."""
ASIDE = 100
"""Items per scan job that nobody could read, of which the newest are kept."""
SHOWN, BEGINS = 10, 2_000
"""Items that nobody could read, which the report of a dry run has, and how many characters of each."""
NAMED = 100
"""Ids that are told of webhooks which a list lacks."""
BACK = 1_000
"""Reports that are looked through for what was settled before our clock jumped."""


@dataclass(slots=True)
class Pass:
    """One attempt of a scan. `skew`: the provider's clock minus ours. `dry`: nothing is written but a report.
    `unmarked` counts what only a dry run has seen listed, `asides` has what it could not read. `vouched` are the ids
    that the compensator of the page under way was told to be known. `last` is the last page that was taken."""

    run: Run
    job: Job
    spec: Compensate
    dry: bool
    coverage: Coverage = field(default_factory=lambda: Coverage(None))
    skew: timedelta = timedelta(0)
    state: ScanState | None = None
    pages: int = 0
    last: Page = field(default_factory=lambda: Page(()))
    unmarked: int = 0
    asides: list[Aside] = field(default_factory=list)
    vouched: set[str] = field(default_factory=set)
    _order: deque[str] = field(default_factory=deque)
    _seen: set[str] = field(default_factory=set)

    @property
    def seen(self) -> set[str]:
        """The ids that were listed last."""
        return self._seen

    @property
    def under_way(self) -> ScanState:
        assert self.state is not None, "there is a window before there are pages"
        return self.state

    def present(self, tx: Transaction, now: datetime) -> Present:
        """Made after the inbox was asked what it knows: what it did not know by then may be forgotten now."""
        return Present(now, self.skew, self.coverage, tx.events.forgotten(self.spec.source))

    def took(self, page: Page, after: ScanState) -> None:
        """After the commit."""
        self.state, self.last, self.pages = after, page, self.pages + 1
        self.vouched.clear()
        fresh = scanning.ids_of(page) - self._seen
        self._order.extend(fresh)
        self._seen |= fresh
        while len(self._order) > REMEMBERED:
            self._seen.discard(self._order.popleft())

    def forget(self) -> None:
        """The list is read from its start again."""
        self._order.clear()
        self._seen.clear()
        self.asides.clear()


def check(tx: Transaction, one: Pass) -> None:
    """The run must be this attempt's, or what it read must not be written. Nobody can take it while its node is held.
    Refused if it is not."""
    run = tx.runs.get(one.run.id)
    mine = (one.run.node, one.run.fence)
    if run is None or run.status is not Status.RUNNING or (run.node, run.fence) != mine:
        raise Refused(f"run {short(one.run.id)} is not held here any more", hint="another attempt goes on with it")


def begin(tx: Transaction, one: Pass, now: datetime) -> ScanState | None:
    """The window to list, fixed before the first page. None: nothing is old enough yet."""
    before = tx.scans.state(one.job.name, lock=not one.dry)
    if one.dry and before is not None:
        before = replace(before, window=None)
    back = SetBack.read(tx.generations.value(SET_BACK))
    set_back = None if back is None else Window(back.at, back.until)
    jump = None if before is None else scan_window.ahead_by(before, set_back, now)
    if before is not None and jump is not None:
        before = scan_window.before_jump(before, tx.scans.reports(one.job.name, BACK), jump)
    state = scan_window.begin(before, one.job.name, one.spec, one.present(tx, now))
    if state is None or one.dry:
        return state
    state = replace(state, run=one.run.id, set_back_at=None if back is None else back.at)
    tx.scans.save(state)
    return state


def take(tx: Transaction, loaded: Loaded, one: Pass, page: Page, now: datetime) -> tuple[ScanState, Arrived]:
    """The events of a page and where the list goes on, together."""
    state = _standing(tx, one)
    assert state.window is not None
    source = source_of(loaded, one.spec.source)
    reader = ListReader(source)
    inbox = tx.events.known(source.name, scanning.ids_of(page), one.job.name)
    page = reader.checked(page, inbox)
    present = one.present(tx, now)
    part = scan_window.settled(state, one.spec, present, page)
    found = scanning.sort(page, inbox, one.seen, state, part, one.job.name)
    if any(item.id in one.vouched for item in found.missing):
        raise ListingFailed("an event was deleted while its page was read")
    arrived, injected = Arrived([]), len(found.missing)
    if one.dry:
        came = scan_window.came_within(part, state.watermark, one.spec, present, page)
        one.unmarked += sum(scanning.compared(item, inbox[item.id], part, came) for item in found.known)
        one.asides.extend(_aside(one, item, now) for item in found.undecodable[: SHOWN - len(one.asides)])
    else:
        unmarked = [inbox[item.id].seq for item in found.known if not inbox[item.id].listed]
        if unmarked:
            tx.events.listed(one.job.name, unmarked, now)
        if found.missing:
            events = [reader.event(item, one.job.name, now) for item in found.missing]
            arrived = arrive(tx, loaded, events, now)
        injected = sum(stored.new for stored in arrived.stored)
        if found.undecodable:
            tx.scans.put_aside(one.job.name, source.name, found.undecodable, now, ASIDE)
    counts = scanning.counted(state.counts, page, found, injected, present.told)
    after = replace(state, cursor=page.next, counts=counts)
    if not one.dry:
        tx.scans.save(after)
    return after, arrived


def complete(tx: Transaction, one: Pass, now: datetime) -> ScanReport:
    """The list was read to its end: what it came to, what cannot be proven, and how far the watermark goes."""
    state = _standing(tx, one)
    assert state.window is not None
    present = one.present(tx, now)
    holes = _holes(one, state, present)
    part = scan_window.settled(state, one.spec, present, one.last)
    part = Window(max([part.start, *(hole.end for hole in holes)]), part.end)
    unlisted, ids = 0, list[str]()
    if part.start <= part.end:
        came = scan_window.came_within(part, state.watermark, one.spec, present, one.last)
        unlisted, ids = tx.events.unlisted(one.spec.source, part, came, one.job.name, NAMED)
    if one.dry:
        unlisted, ids = max(0, unlisted - one.unmarked), []
    why = scanning.doubt(one.coverage, state.counts, unlisted)
    watermark = scan_window.advanced(state.watermark, *(hole.end for hole in holes), None if why else part.end)
    report = replace(_report(one, state, holes, now, watermark, why), unlisted=unlisted, unlisted_ids=tuple(ids))
    _write(tx, one, report)
    if not one.dry:
        tx.scans.save(replace(state, watermark=watermark, window=None, cursor=None, counts=Counts()))
    return report


def break_off(tx: Transaction, one: Pass, why: str, now: datetime, *, failed: bool) -> ScanReport | None:
    """The window stays as it stands. A report of it if there is news: it failed, or something cannot be listed any
    more."""
    state = _standing(tx, one)
    holes = _holes(one, state, one.present(tx, now))
    if not (failed or holes):
        return None
    watermark = scan_window.advanced(state.watermark, *(hole.end for hole in holes))
    report = _report(one, state, holes, now, watermark, why)
    _write(tx, one, report)
    if not one.dry:
        tx.scans.save(replace(state, watermark=watermark))
    return report


def list_anew(tx: Transaction, one: Pass) -> ScanState:
    """The window from its start: its cursor means nothing any more."""
    state = scan_window.anew(_standing(tx, one))
    if not one.dry:
        tx.scans.save(state)
    return state


def source_of(loaded: Loaded, name: str) -> Source:
    """Refused if there is none."""
    source = loaded.configuration.sources.get(name)
    if source is None:
        raise Refused(f"there is no source {name} any more", hint="correct compensate.source, or remove the job")
    return source


def _standing(tx: Transaction, one: Pass) -> ScanState:
    """Where the scan stands; Refused if another run went on with it."""
    state = one.under_way
    if not one.dry:
        stored = tx.scans.state(one.job.name, lock=True)
        if stored is None or stored.run != one.run.id:
            raise Refused(f"another run scans for {one.job.name} now", hint="this one has nothing left to do")
    return state


def _holes(one: Pass, state: ScanState, present: Present) -> tuple[Hole, ...]:
    lost = scan_window.lost(state, one.spec, present)
    if lost is None:
        return ()
    part, why = lost
    return (Hole(one.job.name, one.spec.source, part.start, part.end, why, present.now),)


def _report(
    one: Pass, state: ScanState, holes: Sequence[Hole], now: datetime, watermark: datetime | None, why: str
) -> ScanReport:
    assert state.window is not None
    return ScanReport(
        job=one.job.name,
        source=one.spec.source,
        run=one.run.id,
        window=state.window,
        counts=state.counts,
        began_at=state.began_at or now,
        ended_at=now,
        complete=not why,
        why=why,
        holes=tuple(holes),
        lag=None if watermark is None else now + one.skew - watermark,
        dry_run=one.dry,
        asides=tuple(one.asides),
    )


def _aside(one: Pass, item: Undecodable, now: datetime) -> Aside:
    raw = item.raw
    return Aside(one.job.name, one.spec.source, now, item.occurred_at, item.why, raw[:BEGINS], len(raw))


def _write(tx: Transaction, one: Pass, report: ScanReport) -> None:
    # A look records no hole: the scan that follows it does.
    tx.scans.report(replace(report, holes=()) if one.dry else report)
