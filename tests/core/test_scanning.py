"""What scans decide, over whatever may happen between them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from scheduler.core import scanning
from scheduler.core.compensator import Coverage, ListedEvent, Page, Undecodable, Window
from scheduler.core.event import Known
from scheduler.core.scan import Counts, ScanState
from scheduler.core.source import Compensate

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)

lengths = st.integers(0, 5_000).map(lambda count: count * MINUTE / 7)
specs = st.builds(
    Compensate,
    source=st.just("payments"),
    compensator=st.just("scripted"),
    settle=lengths,
    margin=lengths,
    first_window=lengths.map(lambda length: length + MINUTE),
)


@dataclass(frozen=True)
class Step:
    """Some time passes, then there is a scan that reads its list to the end, or not, for so long."""

    passes: timedelta
    takes: timedelta
    whole: bool
    skew: timedelta


steps = st.lists(
    st.builds(Step, lengths, lengths, st.booleans(), st.sampled_from([-90, 0, 0, 0, 45]).map(lambda s: s * SECOND)),
    min_size=1,
    max_size=8,
)


@given(specs, st.none() | lengths.map(lambda length: length + MINUTE), steps)
def test_everything_before_the_watermark_was_listed_or_is_a_hole(
    spec: Compensate, keeps: timedelta | None, steps: list[Step]
) -> None:
    """With a clock of the provider's that is set now and then, and a list that forgets while it is read."""
    state: ScanState | None = None
    settled: list[Window] = []
    first: datetime | None = None
    now = NOON
    for step in steps:
        now += step.passes
        told = now + step.skew
        coverage = Coverage(keeps, provider_now=told)
        begun = scanning.begin(state, "scan", spec, coverage, now)
        if begun is None:
            continue
        assert begun.window is not None
        assert begun.window.start <= begun.window.end
        if state is None or state.window is None:
            assert begun.window.end <= told - spec.settle
        if first is None:
            first = begun.window.end + spec.settle - spec.first_window
        now += step.takes
        hole = scanning.lost(begun, spec, coverage, now + step.skew)
        if hole is not None:
            settled.append(hole)
        if step.whole:
            settled.append(begun.window)
        before = begun.watermark
        reached = begun.window.end if step.whole else None
        watermark = scanning.advanced(before, None if hole is None else hole.end, reached)
        assert before is None or (watermark is not None and watermark >= before)
        window = None if step.whole else begun.window
        state = replace(begun, watermark=watermark, window=window)
    if state is not None and state.watermark is not None and first is not None:
        assert _covers(settled, first, state.watermark)


def _covers(parts: list[Window], start: datetime, end: datetime) -> bool:
    at = start
    for part in sorted(parts, key=lambda one: one.start):
        if part.start > at:
            break
        at = max(at, part.end)
    return at >= end


names = st.sampled_from("abcdefgh")
items = st.lists(
    st.builds(
        ListedEvent, names, st.integers(-100, 100).map(lambda minutes: NOON + minutes * MINUTE), st.just({"n": 1})
    )
    | st.builds(Undecodable, names, st.just("no id")),
    max_size=12,
)
stored = st.builds(
    Known,
    seq=st.just(1),
    received_at=st.sampled_from([NOON - MINUTE, NOON + MINUTE]),
    found_by=st.sampled_from(["", "scan", "other"]),
    missed=st.booleans(),
)


@given(items, st.dictionaries(names, stored), st.sets(names), st.data())
def test_every_item_is_counted_once_and_in_one_way(
    listed: list[ListedEvent | Undecodable], inbox: dict[str, Known], seen: set[str], data: st.DataObject
) -> None:
    window = Window(NOON - 60 * MINUTE, NOON)
    state = ScanState("scan", "payments", window=window, began_at=NOON)
    page = Page(tuple(listed), None, NOON)
    found = scanning.sort(page, inbox, seen, state, window.end, "scan")
    injected = data.draw(st.integers(0, len(found.missing)))
    counts = scanning.counted(Counts(), page, found, injected, NOON + 5 * MINUTE)
    assert counts.listed == counts.known + counts.injected + counts.too_young + counts.undecodable
    events = [one for one in listed if isinstance(one, ListedEvent)]
    sorted_ones = (*found.missing, *found.known, *found.young)
    assert len({one.id for one in sorted_ones}) == len(sorted_ones)
    assert not {one.id for one in found.missing} & inbox.keys()
    assert all(window.start <= one.occurred_at <= window.end for one in found.missing)
    assert all(one.occurred_at > window.end for one in found.young)
    outside = sum(one.occurred_at < window.start for one in _firsts(events, seen))
    assert len(sorted_ones) + found.repeated + outside == len(events)
    assert list(found.missing) == sorted(found.missing, key=lambda one: (one.occurred_at, one.id))


def _firsts(events: list[ListedEvent], seen: set[str]) -> list[ListedEvent]:
    first = {one.id: one for one in reversed(events)}
    return [one for one in first.values() if one.id not in seen]


def test_a_scan_of_another_source_knows_nothing_of_the_past() -> None:
    spec = Compensate("payments", "scripted")
    state = ScanState("scan", "elsewhere", watermark=NOON - MINUTE)
    begun = scanning.begin(state, "scan", spec, Coverage(None), NOON)
    assert begun is not None
    assert begun.window is not None
    assert (begun.source, begun.watermark) == ("payments", None)
    assert begun.window.start == NOON - spec.first_window


def test_nothing_is_listed_before_anything_is_old_enough() -> None:
    spec = Compensate("payments", "scripted", settle=5 * MINUTE, first_window=MINUTE)
    assert scanning.begin(None, "scan", spec, Coverage(None), NOON) is None
