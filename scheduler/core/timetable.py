"""The wall-clock times of one or several cron rules, without any zone: which days match × which times of day.

All numbers are whole seconds of a wall clock since 1970-01-01T00:00:00 on that clock. Counting costs per day,
never per match. A second that several rules match is one match.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from calendar import monthrange
from collections.abc import Iterator
from datetime import date
from functools import lru_cache

from scheduler.core.value_object import value_object

from .offsets import DAY

_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()


@value_object
class Rule:
    """One expression as numbers.

    `both_days`: day of month and day of week must both match, else either. `wildcard`: it follows the wall
    clock through gaps and folds; else it is fixed-time.
    """

    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    last_day: bool
    months: frozenset[int]
    weekdays: frozenset[int]
    nth_weekdays: frozenset[tuple[int, int]]
    last_weekdays: frozenset[int]
    both_days: bool
    wildcard: bool

    def days_of_month(self, length: int, first_weekday: int) -> tuple[int, ...]:
        """The matching days of a month of that many days whose 1st is that weekday (0 = Sunday)."""
        return tuple(day for day in range(1, length + 1) if self._matches(day, length, first_weekday))

    def _matches(self, day: int, length: int, first_weekday: int) -> bool:
        weekday = (first_weekday + day - 1) % 7
        by_date = day in self.days or (self.last_day and day == length)
        by_weekday = (
            weekday in self.weekdays
            or (weekday, (day + 6) // 7) in self.nth_weekdays
            or (weekday in self.last_weekdays and day + 7 > length)
        )
        return (by_date and by_weekday) if self.both_days else (by_date or by_weekday)

    def ever_comes(self) -> bool:
        """Whether any date of the calendar matches."""
        lengths = {_LONGEST_MONTH[month] for month in self.months} | ({28} if 2 in self.months else set())
        return any(self.days_of_month(length, weekday) for length in lengths for weekday in range(7))


_LONGEST_MONTH = (0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class Timetable:
    """The union of rules. A `mask` is a set of rules as bits, bit i = the i-th rule; `wildcards`, `fixed` and
    `everything` are such sets."""

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self.rules = rules
        self._days: dict[tuple[int, int, int], tuple[tuple[int, int], ...]] = {}
        self._times: dict[int, array[int]] = {}
        self._months = frozenset().union(*(rule.months for rule in rules))
        self.everything = (1 << len(rules)) - 1
        self.wildcards = sum(1 << index for index, rule in enumerate(rules) if rule.wildcard)
        self.fixed = self.everything & ~self.wildcards

    def has_day_in(self, year: int) -> bool:
        """Whether any date of that year matches."""
        return any(self._days_of(year, month) for month in self._months)

    def ascending(self, start: int, end: int, mask: int) -> Iterator[int]:
        """Yield the matches in `[start, end)`, earliest first."""
        for day, rules in self._days_between(start, end):
            if rules & mask:
                times = self._times_of(rules & mask)
                for index in range(bisect_left(times, start - day), len(times)):
                    second = day + times[index]
                    if second >= end:
                        return
                    yield second

    def descending(self, start: int, end: int, mask: int) -> Iterator[int]:
        """Yield the matches in `[start, end)`, latest first."""
        for day, rules in self._days_between(start, end, backwards=True):
            if rules & mask:
                times = self._times_of(rules & mask)
                for index in range(bisect_left(times, end - day) - 1, -1, -1):
                    second = day + times[index]
                    if second < start:
                        return
                    yield second

    def count(self, start: int, end: int, mask: int) -> int:
        """The number of matches in `[start, end)`."""
        total = 0
        for day, rules in self._days_between(start, end):
            if rules & mask:
                times = self._times_of(rules & mask)
                if start <= day and day + DAY <= end:
                    total += len(times)
                else:
                    total += bisect_left(times, end - day) - bisect_left(times, start - day)
        return total

    def any(self, start: int, end: int, mask: int) -> bool:
        """Whether there is a match in `[start, end)`."""
        return next(self.ascending(start, end, mask), None) is not None

    def _days_between(self, start: int, end: int, *, backwards: bool = False) -> Iterator[tuple[int, int]]:
        """Yield (first second, rules that match) of each matching day that overlaps `[start, end)`."""
        if start >= end:
            return
        first, last = _date_of(start), _date_of(end - 1)
        step = -1 if backwards else 1
        months = range(first.year * 12 + first.month - 1, last.year * 12 + last.month)
        for index in months[::step]:
            year, month = index // 12, index % 12 + 1
            days = self._days_of(year, month)
            if not days:
                continue
            midnight = (date(year, month, 1).toordinal() - _EPOCH_ORDINAL - 1) * DAY
            for day, rules in days[::step]:
                second = midnight + day * DAY
                if start - DAY < second < end:
                    yield second, rules

    def _days_of(self, year: int, month: int) -> tuple[tuple[int, int], ...]:
        if month not in self._months:
            return ()
        first_weekday, length = _month(year, month)
        key = (month, length, first_weekday)
        found = self._days.get(key)
        if found is None:
            masks = dict.fromkeys(range(1, length + 1), 0)
            for index, rule in enumerate(self.rules):
                if month in rule.months:
                    for day in rule.days_of_month(length, first_weekday):
                        masks[day] |= 1 << index
            found = self._days[key] = tuple((day, mask) for day, mask in masks.items() if mask)
        return found

    def _times_of(self, mask: int) -> array[int]:
        """The seconds of a day at which at least one rule of `mask` fires, sorted."""
        found = self._times.get(mask)
        if found is None:
            seconds: set[int] = set()
            for index, rule in enumerate(self.rules):
                if mask >> index & 1:
                    minutes = [hour * 3600 + minute * 60 for hour in rule.hours for minute in rule.minutes]
                    seconds.update(minute + second for minute in minutes for second in rule.seconds)
            found = self._times[mask] = array("i", sorted(seconds))
        return found


def _date_of(second: int) -> date:
    return date.fromordinal(second // DAY + _EPOCH_ORDINAL)


@lru_cache(maxsize=65_536)
def _month(year: int, month: int) -> tuple[int, int]:
    weekday, length = monthrange(year, month)
    return (weekday + 1) % 7, length
