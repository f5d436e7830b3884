"""The texts that people get, written for a phone at 3 a.m.: what, since when, why, and what to type."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from urllib.parse import quote

from scheduler.core.channel import Message
from scheduler.core.job import Job
from scheduler.core.model import Json
from scheduler.core.news_words import LONGEST_LINE, WORDS, Facts, at
from scheduler.core.tiding import Kind, Tiding
from scheduler.core.value_object import value_object

LISTED = 20
"""Lines of a digest; the rest is counted."""
LONGEST_LIST = 1_000
"""So many are shown at once."""
_BAD = (Kind.MISSED, Kind.FAILING, Kind.SCAN_OVERDUE, Kind.DEAD_LETTER)
"""What is no good news, the worst first."""


@value_object
class Place:
    """Which scheduler tells: the address that people reach it by ("" if none is known), its environment."""

    public_url: str = ""
    environment: str = "default"

    def link(self, tiding: Tiding) -> str | None:
        """Where to look in a browser."""
        if not self.public_url or tiding.kind is Kind.TEST:
            return self.public_url or None
        about = f"runs/{tiding.run}" if tiding.run is not None else f"jobs/{quote(tiding.job, safe='')}"
        return f"{self.public_url.rstrip('/')}/v1/{about}"


def message(tiding: Tiding, facts: Facts, place: Place, now: datetime) -> Message:
    """One tiding, in full."""
    words = WORDS[tiding.kind](tiding, facts, now)
    job = facts.job
    lines = [*words.lines]
    if facts.last_line and tiding.kind not in (Kind.RECOVERED, Kind.TEST):
        lines.append(f"Last line: {facts.last_line[:LONGEST_LINE]}")
    if job is not None and job.description and tiding.kind in _BAD:
        lines.append(f"What it is: {job.description.splitlines()[0][:LONGEST_LINE]}")
    if job is not None and job.watch.runbook and tiding.kind in _BAD:
        lines.append(f"Runbook: {job.watch.runbook}")
    if words.command is not None:
        lines.append(f"Type: {words.command}")
    link = place.link(tiding)
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
        command = f"schedctl notify list --limit {min(len(everything), LONGEST_LIST)}"
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


def trial(channel: str, place: Place, now: datetime) -> Message:
    """To try whether a channel works."""
    return message(Tiding(Kind.TEST, channel, now, ""), Facts(), place, now)


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


def _digest_line(tiding: Tiding, facts: Facts, now: datetime) -> str:
    words = WORDS[tiding.kind](tiding, facts, now).title
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
