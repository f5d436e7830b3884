"""What commonly surprises people about an expression they wrote; shown by `check` and `explain`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta

from scheduler.core.value_object import value_object

from .clock_changes import ClockChange, clock_changes, times_in_words
from .cron_text import COLUMNS, CronText, Field
from .schedule import Schedule
from .timetable import Rule

_YEAR = timedelta(days=366)
_SHORT_MONTHS = {29: "February", 30: "February", 31: "February, April, June, September and November"}
_NO_PLACE = {
    "GMT": "GMT has no summer time; London is Europe/London",
    "EST5EDT": "write the place: America/New_York",
    "CST6CDT": "write the place: America/Chicago",
    "MST7MDT": "write the place: America/Denver",
    "PST8PDT": "write the place: America/Los_Angeles",
}


@value_object
class Surprise:
    """`code` names the kind: `both-days` and the like; it never changes."""

    code: str
    text: str


def warnings(schedule: Schedule, now: datetime) -> list[str]:
    """Return one sentence per surprise; changes of the clock are those of the year after `now`."""
    return [surprise.text for surprise in surprises(schedule, now)]


def surprises(schedule: Schedule, now: datetime) -> list[Surprise]:
    """Return the same with the kind of each."""
    found: list[Surprise] = []
    read = schedule.texts
    for text, rule in zip(read, schedule.timetable.rules, strict=True):
        found += [Surprise(code, f"`{text.text}`: {sentence}") for code, sentence in _about(schedule, text, rule)]
    texts = [text.text for text in read]
    twice = sorted({text for text in texts if texts.count(text) > 1})
    found += [Surprise("written-twice", f"`{text}` is written more than once") for text in twice]
    if schedule.zone in _NO_PLACE:
        found.append(Surprise("zone", f"time zone {schedule.zone}: {_NO_PLACE[schedule.zone]}"))
    elif match := re.fullmatch(r"Etc/GMT([+-])([0-9]+)", schedule.zone):
        sign = "-" if match[1] == "+" else "+"
        sentence = f"time zone {schedule.zone} is UTC{sign}{match[2]}, all year (its sign is reversed)"
        found.append(Surprise("zone", sentence))
    if schedule.after(now) is None:
        found.append(Surprise("never", "no occurrence is left: every match falls into a gap of the clock"))
    changes = clock_changes(schedule, now, now + _YEAR)
    found += [Surprise("clock-change", _about_change(change)) for change in changes]
    return found


def _about(schedule: Schedule, text: CronText, rule: Rule) -> Iterator[tuple[str, str]]:
    for sentence in _about_stray_star(text):
        yield "stray-star", sentence
    for sentence in _about_every_minute(text, rule):
        yield "every-minute", sentence
    if schedule.day_match == "cron":
        for sentence in _about_both_days(text, rule):
            yield "both-days", sentence
    for field, column in zip(COLUMNS, text.columns, strict=True):
        for sentence in _about_steps(field, column.text):
            yield "uneven-steps", sentence
    for sentence in _about_short_months(text, rule):
        yield "short-months", sentence


def _about_stray_star(text: CronText) -> Iterator[str]:
    """A five-field line with one star too many, or six fields pasted from a dialect with seconds last."""
    words = [column.text for column in text.columns]
    if text.six_fields and words[5] == "*" and words[2] == "*" and words[1].isdigit() and words[0].isdigit():
        five = " ".join(words[:5])
        if int(words[1]) <= 23:
            yield (
                f"six fields: the first is the second, so this runs every hour at minute {int(words[1])}; "
                f'if it should run at {int(words[1]):02}:{int(words[0]):02}, write "{five}"'
            )


def _about_every_minute(text: CronText, rule: Rule) -> Iterator[str]:
    words = [column.text for column in text.columns]
    if words[0] == "*" and len(rule.minutes) < 60:
        yield 'every second of each of these minutes; for once a minute write 0 as the second ("0 …")'
    elif words[1] == "*" and len(rule.hours) < 24 and not (text.six_fields and words[0] == "*"):
        count = 60 * len(rule.hours)
        yield f"every minute of each of these hours, {count} a day; for once an hour write 0 first"


def _about_both_days(text: CronText, rule: Rule) -> Iterator[str]:
    day, weekday = text.columns[3], text.columns[5]
    by_day = not (day.starred and len(rule.days) == 31)
    by_weekday = not (weekday.starred and len(rule.weekdays) == 7)
    if not (by_day and by_weekday) or (len(rule.days) == 31 and len(rule.weekdays) == 7):
        return
    both = f"day of month `{day.text}` and day of week `{weekday.text}`"
    if rule.both_days:
        star = day.text if day.starred else weekday.text
        yield (
            f"{both} must both match, because `{star}` begins with `*`; "
            "say so with day_match: and, or write day_match: or if either is enough"
        )
    else:
        yield (
            f"{both}: either is enough, as in cron; "
            "say so with day_match: or, or write day_match: and if both must match"
        )


def _about_steps(field: Field, text: str) -> Iterator[str]:
    """Steps that a field cannot keep over its end."""
    low, high = field.low, 6 if field is COLUMNS[5] else field.high
    size = high - low + 1
    for item in text.split(","):
        match = re.fullmatch(rf"(\*|H|{low}|{low}-{high})/([0-9]+)", item)
        if match is None:
            continue
        step = int(match[2])
        if step >= size and not (field is COLUMNS[5] and step == 7):
            first = "once" if match[1] == "H" else f"at {field.name} {low} only"
            yield f"{field.name} `{item}`: the step is as wide as the field or wider, it matches {first}"
        elif size % step and step < size:
            last = low + (size - 1) // step * step
            if field is COLUMNS[3]:
                yield f"{field.name} `{item}`: the count starts again on the 1st of every month"
            elif match[1] == "H":
                yield f"{field.name} `{item}`: {step} does not divide {size}, one interval differs"
            else:
                yield (
                    f"{field.name} `{item}`: {step} does not divide {size}, "
                    f"after {last} comes {low} again, {size - last + low} later and not {step}"
                )


def _about_short_months(text: CronText, rule: Rule) -> Iterator[str]:
    """Days that some of the months do not have, unless the weekday brings a match anyway."""
    if not rule.both_days:
        return
    numbers = {int(item) for item in text.columns[3].text.split(",") if item.isdigit()}
    if rule.months == {2} and rule.days and min(rule.days) == 29 and not rule.last_day:
        yield "29 February comes in leap years only, and not in 2100"
        return
    for day in sorted(numbers & _SHORT_MONTHS.keys()):
        short = {2} if day < 31 else {2, 4, 6, 9, 11}
        if rule.months & short and not rule.last_day:
            yield (
                f"day {day}: months that do not have it are passed over ({_SHORT_MONTHS[day]}); "
                "L is the last day of any month"
            )


def _about_change(change: ClockChange) -> str:
    day = f"{change.shown_before:%Y-%m-%d}"
    clock = f"{day} {change.shown_before:%H:%M} the clock moves to {change.shown_after:%H:%M}"
    fixed, wildcard = change.fixed, change.wildcard
    parts = []
    if change.forward:
        if fixed:
            at = f"{change.shown_after:%H:%M}"
            parts.append(f"{times_in_words(fixed)} {_verb(fixed, 'runs', 'run once')} at {at} instead")
        if wildcard:
            parts.append(f"{times_in_words(wildcard)} {_verb(wildcard, 'is', 'are')} left out")
    else:
        if fixed:
            first = _verb(fixed, "comes twice and runs", "come twice and run")
            parts.append(f"{times_in_words(fixed)} {first} the first time only")
        if wildcard:
            parts.append(f"{times_in_words(wildcard)} {_verb(wildcard, 'runs', 'run')} twice")
    return f"{clock}: {', '.join(parts)}"


def _verb(times: tuple[datetime, ...], one: str, several: str) -> str:
    return one if len(times) == 1 else several
