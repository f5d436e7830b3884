"""A schedule in words: `explain` says when it runs, `warnings` what may surprise, `note` what a day does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .clock_changes import note
from .offsets import start_of_year, transitions
from .schedule import Schedule
from .surprises import Surprise, surprises, warnings
from .timetable import Rule

__all__ = ["Surprise", "explain", "in_words", "note", "surprises", "warnings"]

_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_ORDINALS = ("first", "second", "third", "fourth", "fifth")
_MOST_TIMES = 6  # times of day that are listed one by one
_MOST_VALUES = 12


def explain(schedule: Schedule) -> str:
    """Return the schedule in English: one line per expression, then the zone and what a clock change does."""
    lines = [in_words(rule) for rule in schedule.timetable.rules]
    sentences = [line[0].upper() + line[1:] for line in lines]
    text = ".\nAlso ".join([sentences[0], *lines[1:]]) + f".\nTime zone {schedule.zone}"
    # Zones whose clock has stood still since 2000 need no words about changes.
    if not transitions(schedule.tzinfo, start_of_year(2000), start_of_year(2040)):
        return text + "."
    table = schedule.timetable
    fixed = "a time that is skipped runs once, right after the gap; a time that comes twice runs the first time"
    wild = "every real occurrence of the wall clock runs; skipped times do not, times that come twice do twice"
    if not table.wildcards:
        return f"{text}; when the clock changes, {fixed}."
    if not table.fixed:
        return f"{text}; when the clock changes, {wild}."
    return f"{text}; when the clock changes: for expressions with fixed times, {fixed}; for the others, {wild}."


def in_words(rule: Rule) -> str:
    """Return one expression in English, as `at 08:00 on Monday`."""
    days = _days(rule)
    words = [_time(rule), "" if days == "every day" and len(rule.hours) == 24 else days]
    if len(rule.months) < 12:
        words.append(f"in {_join(_MONTHS[month - 1] for month in sorted(rule.months))}")
    return " ".join(word for word in words if word)


def _time(rule: Rule) -> str:
    seconds, minutes, hours = rule.seconds, rule.minutes, rule.hours
    if len(seconds) * len(minutes) * len(hours) <= _MOST_TIMES:
        shown = [
            f"{hour:02}:{minute:02}:{second:02}".removesuffix(":00" if seconds == (0,) else "\0")
            for hour in hours
            for minute in minutes
            for second in seconds
        ]
        return f"at {_join(shown)}"
    parts = []
    if seconds != (0,):
        parts.append(_of(seconds, 60, "second"))
    if seconds == (0,) or len(minutes) < 60:
        parts.append(_of(minutes, 60, "minute"))
    if len(hours) < 24:
        parts.append(f"{'hour' if len(hours) == 1 else 'hours'} {_numbers(hours, '02')}")
    elif len(minutes) == 1:
        parts.append("every hour")
    phrase = " of ".join(parts)
    return phrase if phrase.startswith("every") else f"at {phrase}"


def _of(values: Sequence[int], size: int, unit: str) -> str:
    """`every minute`, `every 15 minutes` (only if the interval is kept over the hour), or the numbers."""
    if len(values) == size:
        return f"every {unit}"
    step = size // len(values)
    if len(values) > 1 and size % len(values) == 0 and values == tuple(range(0, size, step)):
        return f"every {step} {unit}s"
    return f"{unit}{'s' * (len(values) > 1)} {_numbers(values)}"


def _days(rule: Rule) -> str:
    by_date, by_weekday = _dates(rule), _weekdays(rule)
    if rule.both_days:
        if not by_date and not by_weekday:
            return "every day"
        if by_date and by_weekday:
            return f"on {by_date} if that is {by_weekday} (both must match)"
        return f"on {by_date or by_weekday}"
    if not by_date or not by_weekday:
        return "every day"
    return f"on {by_date}, and on {by_weekday} (either is enough)"


def _dates(rule: Rule) -> str:
    if len(rule.days) == 31:
        return ""
    parts = []
    if rule.days:
        parts.append(f"day {_numbers(sorted(rule.days))} of the month")
    if rule.last_day:
        parts.append("the last day of the month")
    return " or ".join(parts)


def _weekdays(rule: Rule) -> str:
    if len(rule.weekdays) == 7:
        return ""
    monday_first = sorted(rule.weekdays, key=lambda day: (day - 1) % 7)
    parts = [_WEEKDAYS[day] for day in monday_first]
    if set(rule.weekdays) == {1, 2, 3, 4, 5}:
        parts = ["Monday to Friday"]
    parts += [f"the {_ORDINALS[n - 1]} {_WEEKDAYS[day]} of the month" for day, n in sorted(rule.nth_weekdays)]
    parts += [f"the last {_WEEKDAYS[day]} of the month" for day in sorted(rule.last_weekdays)]
    return _join(parts, "or")


def _numbers(values: Sequence[int], form: str = "") -> str:
    """`1-5, 9 and 12`; a long list is cut, with its length."""
    runs: list[list[int]] = []
    for value in values:
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    texts: list[str] = []
    for run in runs:
        if len(run) > 2:
            texts.append(f"{run[0]:{form}}-{run[-1]:{form}}")
        else:
            texts += [f"{value:{form}}" for value in run]
    if len(texts) > _MOST_VALUES:
        return f"{', '.join(texts[:4])} … {texts[-1]}"
    return _join(texts)


def _join(parts: Iterable[str], word: str = "and") -> str:
    *head, tail = parts
    return f"{', '.join(head)} {word} {tail}" if head else tail
