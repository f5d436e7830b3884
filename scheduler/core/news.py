"""The texts that people get, written for a phone at 3 a.m.: what, since when, why, and what to type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from urllib.parse import quote

from scheduler.core.channel import Message
from scheduler.core.durations import format_duration
from scheduler.core.ids import short
from scheduler.core.instants import relative
from scheduler.core.job import Job
from scheduler.core.model import Json, Run
from scheduler.core.result_words import details, headline
from scheduler.core.tiding import Kind, Tiding

LISTED = 20
"""Lines of a digest; the rest is counted."""
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_LONGEST_LINE = 300
_BAD = {Kind.MISSED: "missed", Kind.FAILING: "failing", Kind.SCAN_OVERDUE: "scan overdue", Kind.DEAD_LETTER: "dead"}


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a tiding's job when people are told. `run`: the one that it is about, or else the one to blame;
    `behind`: how many runs wait until a dead letter is dealt with."""

    job: Job | None = None
    run: Run | None = None
    last_line: str | None = None
    last_success: datetime | None = None
    failures: int = 0


@dataclass(frozen=True, slots=True)
class Place:
    """Which scheduler tells: the address that people reach it by ("" if none is known), its environment."""

    public_url: str = ""
    environment: str = "default"

    def link(self, tiding: Tiding, facts: Facts) -> str | None:
        """Where to look in a browser."""
        if not self.public_url or tiding.kind is Kind.TEST:
            return self.public_url or None
        about = f"runs/{tiding.run}" if tiding.run is not None else f"jobs/{quote(tiding.job, safe='')}"
        return f"{self.public_url.rstrip('/')}/v1/{about}"


@dataclass(frozen=True, slots=True)
class _Words:
    """Title without mark, what explains it, and the command to type."""

    title: str
    lines: Sequence[str]
    command: str | None


def message(tiding: Tiding, facts: Facts, place: Place, now: datetime) -> Message:
    """One tiding, in full."""
    words = _WORDS[tiding.kind](tiding, facts, now)
    job = facts.job
    lines = [*words.lines]
    if facts.last_line and tiding.kind not in (Kind.RECOVERED, Kind.TEST):
        lines.append(f"Last line: {facts.last_line[:_LONGEST_LINE]}")
    if job is not None and job.description and tiding.kind in _BAD:
        lines.append(f"What it is: {job.description.splitlines()[0][:_LONGEST_LINE]}")
    if job is not None and job.watch.runbook and tiding.kind in _BAD:
        lines.append(f"Runbook: {job.watch.runbook}")
    if words.command is not None:
        lines.append(f"Type: {words.command}")
    link = place.link(tiding, facts)
    if link is not None:
        lines.append(f"Link: {link}")
    title = _title(tiding.kind, words.title, tiding.job, job, place)
    names = {
        **_names(tiding, facts, now),
        "title": title,
        "text": "\n".join(lines),
        "link": link,
        "command": words.command,
        "environment": place.environment,
        "count": 1,
        "items": [_names(tiding, facts, now)],
    }
    return Message(title, "\n".join(lines), names)


def digest(told: Sequence[tuple[Tiding, Facts]], more: Sequence[Tiding], place: Place, now: datetime) -> Message:
    """Many at once: a line each for `told`, and the others by their number."""
    everything = [*(tiding for tiding, _ in told), *more]
    counts = {kind: sum(one.kind is kind for one in everything) for kind in Kind}
    parts = [f"{count} {_COUNTED[kind]}" for kind, count in counts.items() if count]
    jobs = len({one.job for one in everything})
    about = f"{jobs} jobs" if jobs > 1 else everything[0].job
    worst = next((kind for kind in _BAD if counts[kind]), everything[0].kind)
    title = _title(worst, ", ".join(parts), about, None, place)
    lines = [_digest_line(tiding, facts, now) for tiding, facts in told]
    command = "schedctl status"
    if more:
        lines.append(f"… and {len(more):,} more")
        command = f"schedctl notify list --limit {len(everything)}"
    lines += [f"Type: {command}"]
    link = f"{place.public_url.rstrip('/')}/v1/status" if place.public_url else None
    if link is not None:
        lines.append(f"Link: {link}")
    first, facts = told[0]
    names = {
        **_names(first, facts, now),
        "kind": "digest",
        "job": about,
        "run": None,
        "title": title,
        "text": "\n".join(lines),
        "link": link,
        "command": command,
        "environment": place.environment,
        "count": len(everything),
        "items": [_names(tiding, facts, now) for tiding, facts in told],
    }
    return Message(title, "\n".join(lines), names)


def test_message(channel: str, place: Place, now: datetime) -> Message:
    """To try whether a channel works."""
    return message(Tiding(Kind.TEST, channel, now, ""), Facts(), place, now)


def at(instant: datetime, facts: Facts, now: datetime) -> str:
    """`Mon 2026-11-30 03:45 Europe/Berlin (12m ago)`"""
    zone, name = _zone(facts)
    local = instant.astimezone(zone)
    clock = local.strftime("%H:%M:%S" if local.second else "%H:%M")
    return f"{_WEEKDAYS[local.weekday()]} {local:%Y-%m-%d} {clock} {name} ({relative(instant, now=now)})"


def _missed(tiding: Tiding, facts: Facts, now: datetime) -> _Words:
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
    return _Words("MISSED", lines, _look(tiding, facts))


def _failing(tiding: Tiding, facts: Facts, now: datetime) -> _Words:
    failures = _count(tiding.detail.get("failures")) or facts.failures
    times = f"FAILED {failures} times in a row" if failures > 1 else "FAILED"
    lines = [f"Since {at(tiding.since, facts, now)}."]
    if facts.run is not None:
        lines.append(_ended(facts.run, facts, now))
    elif isinstance(tiding.detail.get("error"), str):
        lines.append(f"Why: {tiding.detail['error']}")
    return _Words(times, lines, _look(tiding, facts))


def _recovered(tiding: Tiding, facts: Facts, now: datetime) -> _Words:
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
    return _Words(title, lines, f"schedctl describe {tiding.job}")


def _completed(tiding: Tiding, facts: Facts, now: datetime) -> _Words:
    run = facts.run
    if run is None:
        return _Words("completed", [f"At {at(tiding.since, facts, now)}."], f"schedctl runs {tiding.job}")
    said = headline(run.result) or (run.message or "")
    title = f"completed, {said}" if said else "completed"
    took = f", took {format_duration(_seconds(run.took))}" if run.took is not None else ""
    lines = [f"At {at(run.finished_at or tiding.since, facts, now)}{took}.", *details(run.result)]
    return _Words(title, lines, f"schedctl logs {short(run.id)}")


def _scan_overdue(tiding: Tiding, facts: Facts, now: datetime) -> _Words:
    lines = [f"No complete scan since {at(tiding.since, facts, now)}: events whose webhook was lost are not found."]
    watermark = _instant(tiding.detail.get("watermark"))
    if watermark is not None:
        lines.append(f"Events are complete up to {at(watermark, facts, now)}.")
    if facts.run is not None and facts.run.status.final:
        lines.append(_ended(facts.run, facts, now))
    return _Words("SCAN OVERDUE", lines, f"schedctl scans {tiding.job}")


def _dead_letter(tiding: Tiding, facts: Facts, now: datetime) -> _Words:
    run = facts.run
    which = "" if tiding.run is None else f" {short(tiding.run)}"
    lines = [f"Run{which} gave up, {at(tiding.since, facts, now)}; its payload is kept until you decide."]
    if run is not None:
        lines.append(_ended(run, facts, now))
    command = f"schedctl dead-letters retry{which}"
    return _Words("DEAD LETTER", lines, f"{command}   (or: discard{which})")


def _test(tiding: Tiding, facts: Facts, now: datetime) -> _Words:
    lines = ["Somebody tried this channel with `schedctl notify test`. If you read this, it works."]
    return _Words("a test", [*lines, f"At {at(tiding.since, facts, now)}."], None)


_WORDS = {
    Kind.MISSED: _missed,
    Kind.FAILING: _failing,
    Kind.RECOVERED: _recovered,
    Kind.COMPLETED: _completed,
    Kind.SCAN_OVERDUE: _scan_overdue,
    Kind.DEAD_LETTER: _dead_letter,
    Kind.TEST: _test,
}
_COUNTED = {
    Kind.MISSED: "missed",
    Kind.FAILING: "failing",
    Kind.RECOVERED: "well again",
    Kind.COMPLETED: "completed",
    Kind.SCAN_OVERDUE: "scans overdue",
    Kind.DEAD_LETTER: "dead letters",
    Kind.TEST: "tests",
}


def _title(kind: Kind, words: str, about: str, job: Job | None, place: Place) -> str:
    """`✗ nightly-backup: MISSED (critical, production)`"""
    mark = "✗" if kind in _BAD else "✓"
    notes = [job.watch.severity] if job is not None and kind in _BAD and job.watch.severity == "critical" else []
    if place.environment != "default":
        notes.append(place.environment)
    return f"{mark} {about}: {words}" + (f" ({', '.join(notes)})" if notes else "")


def _look(tiding: Tiding, facts: Facts) -> str:
    return f"schedctl describe {tiding.job}" if facts.run is None else f"schedctl logs {short(facts.run.id)}"


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
    return (run.error or run.reason or "").splitlines()[0][:_LONGEST_LINE] if run.error or run.reason else ""


def _digest_line(tiding: Tiding, facts: Facts, now: datetime) -> str:
    words = _WORDS[tiding.kind](tiding, facts, now).title
    mark = "✗" if tiding.kind in _BAD else "✓"
    line = f"{mark} {tiding.job}: {words}, {at(tiding.since, facts, now)}"
    said = facts.last_line if tiding.kind in _BAD else None
    return f"{line} - {said[:80]}" if said else line


def _names(tiding: Tiding, facts: Facts, now: datetime) -> dict[str, Json]:
    """A tiding as data: what templates and machines get."""
    job, run = facts.job, facts.run
    return {
        "kind": tiding.kind.value,
        "job": tiding.job,
        "since": tiding.since.isoformat(),
        "since_text": at(tiding.since, facts, now),
        "run": tiding.run or (run.id if run is not None else None),
        "status": run.status.value if run is not None else None,
        "error": run.error or run.reason if run is not None else None,
        "exit_code": run.exit_code if run is not None else None,
        "result": run.result if run is not None else None,
        "last_line": facts.last_line,
        "severity": job.watch.severity if job is not None else None,
        "team": job.watch.team if job is not None else None,
        "runbook": job.watch.runbook if job is not None else None,
        "tags": list(job.watch.tags) if job is not None else [],
    }


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
