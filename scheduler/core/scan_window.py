"""The time that a scan lists: where its window begins and ends, what of it is settled, what cannot be proven. Pure.

Instants of windows, holes and watermarks are the provider's time; only `began_at` and what is named so are ours.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from scheduler.core.compensator import Coverage, Page, Window
from scheduler.core.scan import Counts, ScanReport, ScanState
from scheduler.core.source import Compensate
from scheduler.core.value_object import value_object

UNLISTED = "older than what the provider still lists"
FORGOTTEN = "older than what the inbox remembers: the source's `keep` was shorter than the time without a scan"
"""Why a part of the past is a hole."""

_SECOND = timedelta(seconds=1)


@value_object
class Present:
    """What is known when a step of a scan is decided: our clock, the provider's minus ours (0: nobody told it), and
    `forgotten`: of events that were received later than this, by our clock, every id is known (None: of all)."""

    now: datetime
    skew: timedelta
    coverage: Coverage
    forgotten: datetime | None = None

    @property
    def told(self) -> datetime:
        """The provider's present."""
        return self.now + self.skew


def begin(state: ScanState | None, job: str, spec: Compensate, present: Present) -> ScanState | None:
    """Where a scan stands when it starts: a window under way goes on as it is, cursor and counts included, as long as
    the same is asked of the same source; else a new one begins, from `margin` before the watermark (the first: from
    `first_window` ago) to `settle` ago. None: nothing is old enough yet.

    Both ends are fixed before the first page. The lower one is a whole second, so that a list which knows seconds only
    lacks nothing, and no earlier than the provider's list and the ids in the inbox reach. A watermark that was cut by a
    clock of the provider's which was further ahead than it is now is set back: what occurs next has earlier times."""
    query = query_of(spec)
    if state is not None and state.source != spec.source:
        state = None  # A watermark is worth nothing for another source.
    if state is not None and state.window is not None and state.query in ("", query):
        return state if state.cursor is not None else anew(state)
    base = ScanState(job, spec.source) if state is None else replace(state, watermark=_believed(state, spec, present))
    end = present.told - spec.settle
    start = _second(_owed_from(base, spec, end) - (timedelta(0) if base.watermark is None else spec.margin))
    horizon = _horizon(present)
    if horizon is not None:
        start = max(start, horizon[0])
    if start >= end:
        return None
    return replace(base, window=Window(start, end), cursor=None, counts=Counts(), began_at=present.now, query=query)


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


def ahead_by(state: ScanState, set_back: Window | None, now: datetime) -> timedelta | None:
    """By how much, at least, our clock was ahead when the last listing began; None: it was not. Where nobody tells the
    provider's clock, the watermark then lies in a time that nobody has listed.

    `set_back`: when our clock was set back last, by the new time, and up to when it was then, by the old. A listing
    that began in between and does not know of that began before."""
    began = state.began_at
    if began is None:
        return None
    if began > now:
        return began - now
    if set_back is None or state.set_back_at == set_back.start or not set_back.start < began <= set_back.end:
        return None
    return set_back.end - set_back.start


def before_jump(state: ScanState, reports: Iterable[ScanReport], jump: timedelta) -> ScanState:
    """Of a scan by a clock that was ahead by that much: where it stood before, as the `reports` of its job, the newest
    first, tell. Of the two listings between which the clock jumped the later one began at least that much after the
    earlier. If there are none such, nothing is settled."""
    later, right = state.began_at, False
    for report in reports:
        right = right or (later is not None and later - report.began_at >= jump)
        later = report.began_at
        if right and report.complete and not report.dry_run and report.source == state.source:
            return replace(state, watermark=report.window.end, window=None, cursor=None, began_at=report.began_at)
    return replace(state, watermark=None, window=None, cursor=None, began_at=None)


def settled(state: ScanState, spec: Compensate, present: Present, page: Page) -> Window:
    """The part of the window that is old enough and of which no id is forgotten. It ends before the window does where
    the provider's clock was further ahead when that was fixed than it is now, or where nobody told it then and `page`
    shows that it is behind ours. There is none if it ends before it starts."""
    assert state.window is not None
    start, end = state.window.start, state.window.end
    if present.coverage.provider_now is None:
        end -= max(timedelta(0), _skew(present, page) * -1)
    elif state.began_at is not None:
        end = min(end, _reached(state.began_at, spec, present))
    return Window(start if present.forgotten is None else max(start, _remembered(present.forgotten, present)), end)


def came_within(part: Window, watermark: datetime | None, spec: Compensate, present: Present, page: Page) -> Window:
    """When those webhooks came, by our clock, which do not say when their events occurred, and of which the list of
    this `part`, or an earlier one of the same scan, must have had each.

    An event occurred before its webhook came, so it does not matter how long that took where earlier lists were read up
    to `watermark`; where none was, what came less than `margin` after the part begins may lie before it. `settle` is
    left at the upper end, because nobody may know the difference of the clocks, and taken up by the next scan."""
    begins = watermark if watermark is not None and watermark >= part.start else part.start + spec.margin
    back = spec.settle + _skew(present, page)
    return Window(begins - back, part.end - back)


def lost(state: ScanState, spec: Compensate, present: Present) -> tuple[Window, str] | None:
    """Of what is not settled the part that nobody can list any more, or whose ids are forgotten, and why. A hole is
    recorded and settled by that: the next one begins where it ends."""
    horizon = _horizon(present)
    if horizon is None:
        return None
    window = state.window
    start = _second(_owed_from(state, spec, present.told - spec.settle if window is None else window.end))
    return (Window(start, horizon[0]), horizon[1]) if start < horizon[0] else None


def advanced(watermark: datetime | None, *reached: datetime | None) -> datetime | None:
    """While a window is listed a watermark never goes back (before, it may: see `begin`)."""
    return max((one for one in (watermark, *reached) if one is not None), default=None)


def _believed(state: ScanState, spec: Compensate, present: Present) -> datetime | None:
    if state.watermark is None or state.began_at is None:
        return state.watermark
    return min(state.watermark, _reached(state.began_at, spec, present))


def _reached(began_at: datetime, spec: Compensate, present: Present) -> datetime:
    """What a listing that began then could settle, by the provider's clock of today."""
    return began_at - spec.settle + present.skew


def _skew(present: Present, page: Page) -> timedelta:
    """The provider's clock minus ours; of a clock that was not told before, what `page` tells."""
    if present.coverage.provider_now is not None or page.provider_now is None:
        return present.skew
    return page.provider_now - present.now


def _owed_from(state: ScanState, spec: Compensate, end: datetime) -> datetime:
    """From when on nothing is settled, for a window that ends at `end`."""
    return end + spec.settle - spec.first_window if state.watermark is None else state.watermark


def _horizon(present: Present) -> tuple[datetime, str] | None:
    """From when on the list and the inbox can be compared, and why not before."""
    ends = []
    if present.coverage.reaches_back is not None:
        ends.append((_next_second(present.told - present.coverage.reaches_back), UNLISTED))
    if present.forgotten is not None:
        ends.append((_remembered(present.forgotten, present), FORGOTTEN))
    return max(ends, default=None)


def _remembered(forgotten: datetime, present: Present) -> datetime:
    """What occurred from then on, by the provider's clock, came later than what is forgotten."""
    return _second(forgotten + present.skew) + _SECOND


def _second(instant: datetime) -> datetime:
    return instant.astimezone(UTC).replace(microsecond=0)


def _next_second(instant: datetime) -> datetime:
    whole = _second(instant)
    return whole if whole == instant else whole + _SECOND
