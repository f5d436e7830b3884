"""What is said of a tiding, by its kind: a title, the lines that explain it, and what to type."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo

from scheduler.core.durations import format_duration
from scheduler.core.ids import short
from scheduler.core.instants import relative
from scheduler.core.job import Job
from scheduler.core.model import Json, Run
from scheduler.core.remark import where_to_look
from scheduler.core.result_words import details, headline
from scheduler.core.tiding import Kind, Tiding
from scheduler.core.value_object import value_object

_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
LONGEST_LINE = 300


@value_object
class Facts:
    """What is known of a tiding's job when people are told. `run`: the one that it is about, or else the one to blame;
    `behind`: how many runs wait until a dead letter is dealt with."""

    job: Job | None = None
    run: Run | None = None
    last_line: str | None = None
    last_success: datetime | None = None
    failures: int = 0


@value_object
class Words:
    """Title without mark, what explains it, and the command to type."""

    title: str
    lines: Sequence[str]
    command: str | None


def at(instant: datetime, facts: Facts, now: datetime) -> str:
    """`Mon 2026-11-30 03:45 Europe/Berlin (12m ago)`"""
    zone, name = _zone(facts)
    local = instant.astimezone(zone)
    clock = local.strftime("%H:%M:%S" if local.second else "%H:%M")
    return f"{_WEEKDAYS[local.weekday()]} {local:%Y-%m-%d} {clock} {name} ({relative(instant, now=now)})"


def _missed(tiding: Tiding, facts: Facts, now: datetime) -> Words:
    lines = [f"No success by its deadline, {at(tiding.since, facts, now)}."]
    run = facts.run
    if facts.last_success is not None:
        lines.append(f"Last success: {at(facts.last_success, facts, now)}.")
    elif facts.job is not None:
        lines.append("It has never succeeded.")
    if run is not None and not run.status.final:
        lines.append(f"Run {short(run.id)} is still on its way.")
    elif run is not None:
        lines.append(_ended(run, facts, now))
    return Words("MISSED", lines, where_to_look(tiding.job, facts.run))


def _failing(tiding: Tiding, facts: Facts, now: datetime) -> Words:
    failures = _count(tiding.detail.get("failures")) or facts.failures
    times = f"FAILED {failures} times in a row" if failures > 1 else "FAILED"
    lines = [f"Since {at(tiding.since, facts, now)}."]
    if facts.run is not None:
        lines.append(_ended(facts.run, facts, now))
    elif isinstance(tiding.detail.get("error"), str):
        lines.append(f"Why: {tiding.detail['error']}")
    return Words(times, lines, where_to_look(tiding.job, facts.run))


def _recovered(tiding: Tiding, facts: Facts, now: datetime) -> Words:
    before = {"missed": "had missed its deadline", "failing": "was failing"}
    what = before.get(str(tiding.detail.get("state")), "was not well")
    was_since = _instant(tiding.detail.get("was_since"))
    lines = [f"Well again since {at(tiding.since, facts, now)}."]
    title = "well again"
    if was_since is not None:
        lasted = format_duration(_whole_seconds(tiding.since - was_since))
        title = f"well again after {lasted}"
        lines.append(f"It {what} for {lasted}, since {at(was_since, facts, now)}.")
    elif tiding.detail.get("state"):
        lines.append(f"It {what}.")
    return Words(title, lines, f"schedctl describe {tiding.job}")


def _completed(tiding: Tiding, facts: Facts, now: datetime) -> Words:
    run = facts.run
    if run is None:
        return Words("completed", [f"At {at(tiding.since, facts, now)}."], f"schedctl runs {tiding.job}")
    said = headline(run.result) or (run.message or "")
    title = f"completed, {said}" if said else "completed"
    took = f", took {format_duration(_seconds(run.took))}" if run.took is not None else ""
    lines = [f"At {at(run.finished_at or tiding.since, facts, now)}{took}.", *details(run.result)]
    return Words(title, lines, f"schedctl logs {short(run.id)}")


def _scan_overdue(tiding: Tiding, facts: Facts, now: datetime) -> Words:
    lines = [f"No complete scan since {at(tiding.since, facts, now)}: events whose webhook was lost are not found."]
    watermark = _instant(tiding.detail.get("watermark"))
    if watermark is not None:
        lines.append(f"Events are complete up to {at(watermark, facts, now)}.")
    if facts.run is not None and facts.run.status.final:
        lines.append(_ended(facts.run, facts, now))
    return Words("SCAN OVERDUE", lines, f"schedctl scans {tiding.job}")


def _dead_letter(tiding: Tiding, facts: Facts, now: datetime) -> Words:
    letter = short(tiding.run or tiding.key)
    lines = [f"Run {letter} gave up, {at(tiding.since, facts, now)}; its payload is kept until you decide."]
    if facts.run is not None:
        lines.append(_ended(facts.run, facts, now))
    return Words("DEAD LETTER", lines, f"schedctl dead-letters retry {letter}   (or: discard {letter})")


def _test(tiding: Tiding, facts: Facts, now: datetime) -> Words:
    lines = [f"Somebody tried this channel with `schedctl notify test {tiding.job}`. If you read this, it works."]
    return Words("a test", [*lines, f"At {at(tiding.since, facts, now)}."], None)


def _ended(run: Run, facts: Facts, now: datetime) -> str:
    """How the run that is to blame ended: `Run 1a2b3c4d failed (exit 1) after 2s, Mon 2026-11-30 03:00 UTC …`"""
    why = f" ({_why(run)})" if _why(run) else ""
    took = f" after {format_duration(_seconds(run.took))}" if run.took is not None else ""
    when = f", {at(run.finished_at, facts, now)}" if run.finished_at is not None else ""
    attempts = f", {run.attempt} attempts" if run.attempt > 1 else ""
    return f"Run {short(run.id)} {run.status.value.lower()}{why}{took}{attempts}{when}."


def _why(run: Run) -> str:
    if run.exit_code:
        return f"exit {run.exit_code}"
    return (run.error or run.reason or "").splitlines()[0][:LONGEST_LINE] if run.error or run.reason else ""


def _zone(facts: Facts) -> tuple[tzinfo, str]:
    schedule = None if facts.job is None else facts.job.schedule
    return (UTC, "UTC") if schedule is None else (schedule.tzinfo, schedule.zone)


def _instant(value: Json) -> datetime | None:
    return datetime.fromisoformat(value) if isinstance(value, str) else None


def _count(value: Json) -> int:
    return value if isinstance(value, int) else 0


def _seconds(seconds: float) -> timedelta:
    """As short as people say it."""
    return timedelta(seconds=round(seconds) if seconds >= 10 else round(seconds, 1 if seconds >= 0.1 else 3))


def _whole_seconds(length: timedelta) -> timedelta:
    return timedelta(seconds=max(0, round(length.total_seconds())))


WORDS: Mapping[Kind, Callable[[Tiding, Facts, datetime], Words]] = {
    Kind.MISSED: _missed,
    Kind.FAILING: _failing,
    Kind.RECOVERED: _recovered,
    Kind.COMPLETED: _completed,
    Kind.SCAN_OVERDUE: _scan_overdue,
    Kind.DEAD_LETTER: _dead_letter,
    Kind.TEST: _test,
}
