"""Which time scans list, over whatever may happen between them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.core import scan_window
from scheduler.core.compensator import Coverage, Page, Window
from scheduler.core.scan import Counts, ScanReport, ScanState
from scheduler.core.scan_window import Present
from scheduler.core.source import Compensate

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
ZERO, SECOND, MINUTE, HOUR = timedelta(0), timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
PAGE = Page(())

lengths = st.integers(0, 5_000).map(lambda count: count * MINUTE / 7)
specs = st.builds(
    Compensate,
    source=st.just("payments"),
    compensator=st.just("scripted"),
    settle=lengths,
    margin=lengths,
    first_window=lengths.map(lambda length: length + MINUTE),
)
SPEC = Compensate("payments", "scripted")


def present(
    now: datetime, skew: timedelta = ZERO, *, back: timedelta | None = None, forgotten: datetime | None = None
) -> Present:
    return Present(now, skew, Coverage(back, provider_now=now + skew), forgotten)


@dataclass(frozen=True)
class Step:
    """Some time passes, then there is a scan that reads its list to the end, or not, for so long. `forgets`: what came
    longer ago is forgotten by then."""

    passes: timedelta
    takes: timedelta
    whole: bool
    skew: timedelta
    forgets: timedelta | None


steps = st.lists(
    st.builds(
        Step,
        lengths,
        lengths,
        st.booleans(),
        st.sampled_from([-90, 0, 0, 0, 45]).map(lambda s: s * SECOND),
        st.none() | lengths,
    ),
    min_size=1,
    max_size=8,
)


@given(specs, st.none() | lengths.map(lambda length: length + MINUTE), steps)
def test_everything_before_the_watermark_was_listed_or_is_a_hole(
    spec: Compensate, keeps: timedelta | None, steps: list[Step]
) -> None:
    """With a clock of the provider's that is set now and then, and a list and an inbox that forget meanwhile."""
    state: ScanState | None = None
    settled: list[Window] = []
    first: datetime | None = None
    forgotten: datetime | None = None
    now = NOON
    for step in steps:
        now += step.passes
        begun = scan_window.begin(state, "scan", spec, present(now, step.skew, back=keeps, forgotten=forgotten))
        if begun is None:
            continue
        assert begun.window is not None
        assert begun.window.start <= begun.window.end
        if state is None or state.window is None:
            assert begun.window.end <= now + step.skew - spec.settle
        if first is None:
            first = begun.window.end + spec.settle - spec.first_window
        now += step.takes
        if step.forgets is not None:
            forgotten = max(forgotten or now - step.forgets, now - step.forgets)
        after = present(now, step.skew, back=keeps, forgotten=forgotten)
        lost = scan_window.lost(begun, spec, after)
        part = scan_window.settled(begun, spec, after, PAGE)
        assert forgotten is None or part.start > forgotten + step.skew
        if lost is not None:
            settled.append(lost[0])
        if step.whole and part.start <= part.end:
            settled.append(part)
        before = begun.watermark
        watermark = scan_window.advanced(before, lost and lost[0].end, part.end if step.whole else None)
        assert before is None or (watermark is not None and watermark >= before)
        state = replace(begun, watermark=watermark, window=None if step.whole else begun.window)
    if state is not None and state.watermark is not None and first is not None:
        assert _covers(settled, first, state.watermark)


def _covers(parts: list[Window], start: datetime, end: datetime) -> bool:
    at = start
    for part in sorted(parts, key=lambda one: one.start):
        if part.start > at:
            break
        at = max(at, part.end)
    return at >= end


errors = st.integers(-300, 300).map(lambda minutes: minutes * MINUTE)
scans = st.lists(st.tuples(lengths, errors, st.floats(0, 1)), min_size=2, max_size=8)


@given(specs, scans)
def test_whatever_clock_the_provider_has_each_event_is_listed_after_it_occurred(
    spec: Compensate, scans: list[tuple[timedelta, timedelta, float]]
) -> None:
    """Before each scan its clock is set to any error, and an event occurs somewhere in between, by that clock."""
    state: ScanState | None = None
    now, events = NOON, list[datetime]()
    for passes, skew, part in [*scans, (HOUR, ZERO, 0.0), (30 * 24 * HOUR, ZERO, 0.0)]:
        occurred = now + passes * part + skew
        now += passes
        begun = scan_window.begin(state, "scan", spec, present(now, skew))
        if state is not None and state.watermark is not None:
            events.append(occurred)
        if begun is None:
            continue
        listed = scan_window.settled(begun, spec, present(now, skew), PAGE)
        assert begun.window == listed
        events = [event for event in events if not listed.start <= event <= listed.end]
        watermark = scan_window.advanced(begun.watermark, listed.end)
        state = replace(begun, watermark=watermark, window=None, counts=Counts())
    assert events == []


def test_a_window_that_goes_on_settles_no_more_than_there_was_when_it_began() -> None:
    """The provider's clock was three hours ahead then."""
    begun = scan_window.begin(None, "scan", SPEC, present(NOON, 3 * HOUR))
    assert begun is not None
    assert begun.window is not None
    assert begun.window.end == NOON + 3 * HOUR - SPEC.settle
    part = scan_window.settled(replace(begun, cursor="next"), SPEC, present(NOON + 4 * HOUR), PAGE)
    assert part.end == NOON - SPEC.settle


def _report(began: datetime, **how: object) -> ScanReport:
    window = Window(began - HOUR, began - SPEC.settle)
    report = ScanReport("scan", "payments", "run", window, Counts(), began, began + MINUTE, complete=True)
    return replace(report, **how)  # type: ignore[arg-type]


HALF = HOUR / 2
RIGHT = [_report(NOON + number * HALF) for number in range(3)]
AHEAD = [_report(NOON + 3 * HALF + 3 * HOUR + number * HALF) for number in range(8)]
"""Of a clock that was three hours ahead, for almost four."""


@pytest.mark.parametrize("number", [1, 2, 7, 8])
@pytest.mark.parametrize("noise", [{}, {"complete": False}, {"dry_run": True}, {"source": "other"}])
def test_before_a_jump_of_our_clock_the_last_scan_of_the_right_time_counts(
    number: int, noise: dict[str, object]
) -> None:
    ahead = AHEAD[:number]
    state = ScanState("scan", "payments", ahead[-1].window.end, began_at=ahead[-1].began_at)
    now = ahead[-1].began_at - 3 * HOUR + 10 * MINUTE
    jump = scan_window.ahead_by(state, None, now)
    assert jump == 3 * HOUR - 10 * MINUTE
    useless = [_report(NOON + 2 * HALF + MINUTE, **noise)] if noise else []
    back = scan_window.before_jump(state, reversed([*RIGHT, *useless, *ahead]), jump)
    assert (back.watermark, back.began_at) == (RIGHT[-1].window.end, RIGHT[-1].began_at)
    assert scan_window.ahead_by(back, None, now) is None


def test_a_scan_that_never_knew_the_right_time_begins_as_the_first() -> None:
    state = ScanState("scan", "payments", AHEAD[-1].window.end, began_at=AHEAD[-1].began_at)
    back = scan_window.before_jump(state, reversed(AHEAD), 3 * HOUR)
    assert (back.watermark, back.window) == (None, None)


@pytest.mark.parametrize(
    ("began", "ahead"), [(-SECOND, None), (ZERO, None), (SECOND, HOUR), (HOUR, HOUR), (2 * HOUR, None)]
)
def test_what_began_in_a_time_that_came_twice_and_does_not_know_of_it_began_before(
    began: timedelta, ahead: timedelta | None
) -> None:
    state = ScanState("scan", "payments", NOON, began_at=NOON + began)
    set_back = Window(NOON, NOON + HOUR)
    assert scan_window.ahead_by(state, set_back, NOON + 9 * HOUR) == ahead
    knew = replace(state, set_back_at=NOON)
    assert scan_window.ahead_by(knew, set_back, NOON + 9 * HOUR) is None, "it began after that"
    assert scan_window.ahead_by(replace(knew, set_back_at=NOON - HOUR), set_back, NOON + 9 * HOUR) == ahead
    assert scan_window.ahead_by(state, None, NOON + 9 * HOUR) is None
    assert scan_window.ahead_by(replace(state, began_at=None), set_back, NOON) is None


def test_a_scan_of_another_source_knows_nothing_of_the_past() -> None:
    state = ScanState("scan", "elsewhere", watermark=NOON - MINUTE)
    begun = scan_window.begin(state, "scan", SPEC, present(NOON))
    assert begun is not None
    assert begun.window is not None
    assert (begun.source, begun.watermark) == ("payments", None)
    assert begun.window.start == NOON - SPEC.first_window


def test_nothing_is_listed_before_anything_is_old_enough() -> None:
    spec = Compensate("payments", "scripted", settle=5 * MINUTE, first_window=MINUTE)
    assert scan_window.begin(None, "scan", spec, present(NOON)) is None
