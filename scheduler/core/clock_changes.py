"""Where the changes of a zone's clock meet the occurrences of a schedule, for `next` and `check`."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import islice

from scheduler.core.value_object import value_object

from .offsets import CLOCK_SET, EPOCH, Piece, instant_of, pieces, transitions
from .schedule import Schedule

_SHOWN = 3  # times named in one sentence; more are "…"


@value_object
class ClockChange:
    """At `at` (UTC) the wall clock of the zone jumps from `shown_before` to `shown_after` (naive wall clock).

    `fixed`, `wildcard`: the first few wall-clock times between the two that expressions match, the fixed-time
    ones, and the wildcard ones that do not run every hour anyway. They do not exist that day (a gap) or exist
    twice (a fold).
    """

    at: datetime
    shown_before: datetime
    shown_after: datetime
    fixed: tuple[datetime, ...]
    wildcard: tuple[datetime, ...]

    @property
    def forward(self) -> bool:
        """Whether it leaves a gap; else it makes a fold."""
        return self.shown_after > self.shown_before


def clock_changes(schedule: Schedule, first: datetime, last: datetime) -> list[ClockChange]:
    """The changes from `first` to `last` that skip or repeat such a match, ascending.

    Jumps of more than three hours are not among them: the clock was set.
    """
    start, end = ((moment - EPOCH) // timedelta(seconds=1) for moment in (first, last))
    table, found = schedule.timetable, []
    some_hours = sum(1 << index for index, rule in enumerate(table.rules) if len(rule.hours) < 24)
    for change in transitions(schedule.tzinfo, start, end + 1):
        if abs(change.after - change.before) > CLOCK_SET:
            continue
        low, high = sorted((change.at + change.before, change.at + change.after))
        fixed, wildcard = (
            tuple(_wall(second) for second in islice(table.ascending(low, high, mask), _SHOWN + 1))
            for mask in (table.fixed, table.wildcards & some_hours)
        )
        if fixed or wildcard:
            before, after = (_wall(change.at + offset) for offset in (change.before, change.after))
            found.append(ClockChange(instant_of(change.at), before, after, fixed, wildcard))
    return found


def note(schedule: Schedule, instant: datetime) -> str | None:
    """Return what is unusual about the clock at this occurrence, None on ordinary days."""
    second = (instant - EPOCH) // timedelta(seconds=1)
    piece = next(pieces(schedule.tzinfo, second, second + 1), None)
    if piece is None:
        return None
    wall = second + piece.offset
    if piece.skipped is not None and (missed := _made_up_for(schedule, piece)):
        verb = "does" if len(missed) == 1 else "do"
        return f"clocks go forward: {times_in_words(missed)} {verb} not exist, runs right after the gap"
    shown = f"{_wall(wall):%H:%M:%S}".removesuffix(":00")
    if piece.repeated:
        return f"clocks went back: {shown} happens twice; the second"
    if _shown_again(schedule, second, wall):
        only = "" if _wildcard_matches(schedule, wall) else ", the only one that runs"
        return f"clocks go back: {shown} happens twice; the first{only}"
    return None


def _made_up_for(schedule: Schedule, piece: Piece) -> tuple[datetime, ...]:
    assert piece.skipped is not None, "asked only behind a gap"
    table = schedule.timetable
    return tuple(_wall(second) for second in islice(table.ascending(*piece.skipped, table.fixed), _SHOWN + 1))


def _wildcard_matches(schedule: Schedule, wall: int) -> bool:
    table = schedule.timetable
    return table.any(wall, wall + 1, table.wildcards)


def _shown_again(schedule: Schedule, second: int, wall: int) -> bool:
    """Whether the clock, set back within three hours, shows `wall` a second time."""
    return any(
        -CLOCK_SET <= change.after - change.before < 0 and change.at + change.after <= wall
        for change in transitions(schedule.tzinfo, second + 1, second + CLOCK_SET + 1)
    )


def times_in_words(times: tuple[datetime, ...]) -> str:
    """Return wall-clock times of one day, as `02:15 and 02:45`."""
    texts = [f"{moment:%H:%M:%S}".removesuffix(":00") for moment in times[:_SHOWN]]
    if len(times) > _SHOWN:
        return ", ".join(texts) + " …"
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


def _wall(second: int) -> datetime:
    return instant_of(second).replace(tzinfo=None)
