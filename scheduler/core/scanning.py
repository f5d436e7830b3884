"""Scans decided: which window is listed, what is new in a list, what cannot be proven, how far a watermark goes. Pure.

Instants of windows, holes and watermarks are the provider's time; only `began_at` and `received_at` are ours.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from scheduler.core.compensator import Coverage, ListedEvent, Page, Undecodable, Window
from scheduler.core.event import Known
from scheduler.core.scan import Counts, ScanState
from scheduler.core.source import Compensate

_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Sorted:
    """What a page holds, each event once, the oldest first: `known` are those that the inbox has, and `late` how many
    of these came by an earlier scan and still by no webhook; `missing` those that it lacks, old enough to be stored;
    `young` those that may still come by themselves."""

    missing: tuple[ListedEvent, ...]
    known: tuple[ListedEvent, ...]
    young: tuple[ListedEvent, ...]
    undecodable: tuple[Undecodable, ...]
    repeated: int
    late: int


def begin(state: ScanState | None, job: str, spec: Compensate, coverage: Coverage, now: datetime) -> ScanState | None:
    """Where a scan stands when it starts: a window under way goes on as it is, cursor and counts included, as long as
    the same is asked of the same source; else a new one begins, from `margin` before the watermark (the first: from
    `first_window` ago) to `settle` ago. None: nothing is old enough yet.

    Both ends are fixed before the first page. The lower one is a whole second, so that a list which knows seconds only
    lacks nothing, and no earlier than the provider's list reaches."""
    query = query_of(spec)
    if state is not None and state.source != spec.source:
        state = None  # A watermark is worth nothing for another source.
    if state is not None and state.window is not None and state.query in ("", query):
        return state if state.cursor is not None else anew(state)
    told = coverage.provider_now or now
    end = told - spec.settle
    start = _second(_owed_from(state, spec, end) - (spec.margin if _settled(state) else timedelta(0)))
    if coverage.reaches_back is not None:
        start = max(start, _next_second(told - coverage.reaches_back))
    if start >= end:
        return None
    base = state or ScanState(job, spec.source)
    return replace(base, window=Window(start, end), cursor=None, counts=Counts(), began_at=now, query=query)


def query_of(spec: Compensate) -> str:
    """What a cursor is valid with: the same compensator, with the same options."""
    words = [spec.source, spec.compensator, {name: repr(value) for name, value in spec.options.items()}]
    return hashlib.sha256(json.dumps(words, sort_keys=True).encode()).hexdigest()[:16]


def anew(state: ScanState) -> ScanState:
    """The same window from its start, because its cursor expired. What this scan has found stays found and counted:
    when it is listed again it is `repeated`."""
    counts = state.counts
    kept = Counts(
        listed=counts.injected,
        injected=counts.injected,
        pages=counts.pages,
        calls=counts.calls,
        throttled=counts.throttled,
        repeated=counts.repeated,
        oldest_unseen=counts.oldest_unseen,
    )
    return replace(state, cursor=None, counts=kept)


def sort(
    page: Page, inbox: Mapping[str, Known], seen: Container[str], state: ScanState, end: datetime, job: str
) -> Sorted:
    """`inbox`: what it has of this page's ids. `seen`: ids that this scan was told before. `end`: what occurred later
    is young. Items from before the window are nobody's business: they were settled long ago, and their ids may be
    forgotten."""
    assert state.window is not None
    events, undecodable, repeated = _once(page.items, seen)
    missing: list[ListedEvent] = []
    known: list[ListedEvent] = []
    young: list[ListedEvent] = []
    late = 0
    for item in events:
        stored = inbox.get(item.id)
        if item.occurred_at < state.window.start:
            continue
        if stored is None:
            (missing if item.occurred_at <= end else young).append(item)
        elif _found_here(stored, state, job):
            repeated += 1
        else:
            known.append(item)
            late += stored.missed
    return Sorted(tuple(missing), tuple(known), tuple(young), tuple(undecodable), repeated, late)


def ids_of(page: Page) -> set[str]:
    """What to look up in the inbox."""
    return {item.id for item in page.items if isinstance(item, ListedEvent)}


def counted(before: Counts, page: Page, found: Sorted, injected: int, told: datetime) -> Counts:
    """`injected` of the missing ones were still missing when they were stored; `told` is the provider's present."""
    oldest = before.oldest_unseen
    if injected:
        ages = [told - item.occurred_at for item in found.missing]
        oldest = max([*ages, oldest or timedelta(0)])
    known = len(found.known) + len(found.missing) - injected
    return Counts(
        listed=before.listed + known + injected + len(found.young) + len(found.undecodable),
        known=before.known + known,
        injected=before.injected + injected,
        too_young=before.too_young + len(found.young),
        undecodable=before.undecodable + len(found.undecodable),
        repeated=before.repeated + found.repeated,
        late=before.late + found.late,
        pages=before.pages + 1,
        calls=before.calls + page.calls,
        throttled=before.throttled + page.throttled,
        oldest_unseen=oldest,
    )


def end_of(window: Window, coverage: Coverage, page: Page, now: datetime) -> datetime:
    """The last instant of the window that is old enough. Where nobody told the provider's clock before the window was
    fixed, and a page shows now that it is behind ours, that is earlier than the window's end."""
    if coverage.provider_now is not None or page.provider_now is None:
        return window.end
    return window.end - max(timedelta(0), now - page.provider_now)


def lost(state: ScanState | None, spec: Compensate, coverage: Coverage, told: datetime) -> Window | None:
    """What nobody can list any more, of what is not settled; `told` is the provider's present. A hole is recorded and
    settled by that: the next one begins where it ends."""
    if coverage.reaches_back is None:
        return None
    horizon = _next_second(told - coverage.reaches_back)
    window = None if state is None else state.window
    start = _second(_owed_from(state, spec, told - spec.settle if window is None else window.end))
    return Window(start, horizon) if start < horizon else None


def doubt(coverage: Coverage, counts: Counts, unlisted: int) -> str:
    """Why a list that was read to its end still proves nothing; "" if it does."""
    if not coverage.complete:
        return coverage.why or "its compensator says that the list cannot be trusted now"
    if unlisted and not counts.listed:
        webhooks = "1 webhook" if unlisted == 1 else f"{unlisted} webhooks"
        return f"the list is empty, and {webhooks} of this time came: it is the list of something else, or switched off"
    return ""


def advanced(watermark: datetime | None, *reached: datetime | None) -> datetime | None:
    """A watermark never goes back."""
    return max((one for one in (watermark, *reached) if one is not None), default=None)


def overdue_since(spec: Compensate, now: datetime) -> tuple[datetime, datetime]:
    """When events occurred of which a webhook that has not come is an alarm: longer ago than `alarm_after`. After a day
    nobody waits for it any more."""
    until = now - spec.alarm_after
    return until - timedelta(days=1), until


def _once(
    items: Iterable[ListedEvent | Undecodable], seen: Container[str]
) -> tuple[list[ListedEvent], list[Undecodable], int]:
    """The oldest first, so that what one page found is handled in its order."""
    events: dict[str, ListedEvent] = {}
    undecodable: list[Undecodable] = []
    repeated = 0
    for item in items:
        if isinstance(item, Undecodable):
            undecodable.append(item)
        elif item.id in events or item.id in seen:
            repeated += 1
        else:
            events[item.id] = item
    return sorted(events.values(), key=lambda one: (one.occurred_at, one.id)), undecodable, repeated


def _found_here(stored: Known, state: ScanState, job: str) -> bool:
    began = state.began_at
    return stored.found_by == job and began is not None and stored.received_at >= began


def _settled(state: ScanState | None) -> bool:
    return state is not None and state.watermark is not None


def _owed_from(state: ScanState | None, spec: Compensate, end: datetime) -> datetime:
    """From when on nothing is settled, for a window that ends at `end`."""
    if state is not None and state.watermark is not None:
        return state.watermark
    return end + spec.settle - spec.first_window


def _second(instant: datetime) -> datetime:
    return instant.astimezone(UTC).replace(microsecond=0)


def _next_second(instant: datetime) -> datetime:
    whole = _second(instant)
    return whole if whole == instant else whole + _SECOND
