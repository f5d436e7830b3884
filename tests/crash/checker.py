"""The checker. It knows the schedules (every second), what the killer did, and what the children wrote down themselves.
From the ledger it takes claims, and believes none of them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tests.crash.stamps import RESOLUTION, Ran, Stamp, attempts_of

SETTLING = 2.0
"""Seconds that may pass from a child's end to the moment at which the ledger knows it."""
STARTING = 2.5
"""Seconds around an outage in which an instant may be missed: a daemon that starts plans at its first tick."""
EXITING = 0.25
"""Seconds from a child's last stamp to its exit: what ends it within them cannot know that it was done."""


@dataclass(frozen=True)
class RunRow:
    id: str
    job: str
    instant: int | None
    status: str
    reason: str | None
    attempt: int
    unfinished: bool
    cause: str = "schedule"
    key: str = ""


@dataclass(frozen=True)
class AttemptRow:
    """`node`: the id of a daemon's life."""

    run: str
    number: int
    node: str
    fence: int


@dataclass(frozen=True)
class SkipRow:
    job: str
    reason: str
    first: int
    last: int
    count: int


@dataclass
class History:
    """`since` is exclusive, `until` inclusive (seconds since 1970). `outages` are intervals in which the daemon was
    down, stopped or without its database."""

    overlaps: Mapping[str, str]
    since: int
    until: int
    outages: list[tuple[float, float]]
    stamps: list[Stamp]
    runs: list[RunRow]
    skips: list[SkipRow]
    survivors: list[str] = field(default_factory=list)


@dataclass
class Verdict:
    problems: list[str]
    figures: dict[str, float]

    @property
    def clean(self) -> bool:
        return not self.problems


def check(history: History) -> Verdict:
    problems: list[str] = []
    figures: Counter[str] = Counter()
    by_run = attempts_of(history.stamps)
    runs_of: dict[str, dict[int, list[RunRow]]] = defaultdict(lambda: defaultdict(list))
    for run in history.runs:
        if run.instant is not None:
            runs_of[run.job][run.instant].append(run)
    skips_of: dict[str, dict[int, str]] = defaultdict(dict)
    for skip in history.skips:
        if skip.last - skip.first + 1 != skip.count:
            problems.append(f"{skip.job}: a skip of {skip.count} instants spans {skip.first}..{skip.last}")
        for instant in range(skip.first, skip.last + 1):
            if instant in skips_of[skip.job]:
                problems.append(f"{skip.job}: instant {instant} is skipped twice")
            skips_of[skip.job][instant] = skip.reason

    for job, policy in history.overlaps.items():
        own, skipped = runs_of[job], skips_of[job]
        busy = _busy(own, by_run)
        last_ran = max((instant for instant in own if any(run.id in by_run for run in own[instant])), default=0)
        for instant in range(history.since + 1, history.until + 1):
            here = own.get(instant, [])
            figures["expected"] += 1
            if len(here) + (instant in skipped) == 0:
                problems.append(f"{job}: nothing accounts for instant {instant}")
            elif len(here) > 1:
                problems.append(f"{job}: instant {instant} has {len(here)} runs")
            elif here and instant in skipped:
                problems.append(f"{job}: instant {instant} has a run and a skip")
            elif here and here[0].status == "SKIPPED":
                figures[f"skipped {here[0].reason}"] += 1
                problems.append(f"{job}: run {here[0].id} of {instant} was skipped: {here[0].reason}")
            elif here:
                figures[_fate(here[0], by_run, history.outages)] += 1
            else:
                reason = skipped[instant]
                figures[f"skipped {reason}"] += 1
                why = _unjustified(instant, reason, busy, history.outages, last_ran)
                if why is not None:
                    problems.append(f"{job}: instant {instant} was SKIPPED({reason}), but {why}")
        if policy != "allow":
            problems.extend(_overlapping(job, [by_run[r.id] for rows in own.values() for r in rows if r.id in by_run]))

    problems.extend(_twice(history.stamps))
    problems.extend(_false_statuses(history, by_run))
    problems.extend(_unstarted(history, by_run))
    problems.extend(f"survivor: {line}" for line in history.survivors)
    wanted = figures["ran"] + figures["not started"]
    if not wanted or figures["ran"] < 0.9 * wanted:
        problems.append(f"only {figures['ran']} of {wanted} instants that were neither skipped nor cut short ran")
    return Verdict(problems, dict(figures))


def _busy(own: Mapping[int, list[RunRow]], by_run: Mapping[str, Ran]) -> list[tuple[float, float]]:
    """When a run of this job was unfinished, as far as the children's own stamps show it."""
    intervals = []
    for instant, rows in own.items():
        for run in rows:
            if run.id in by_run:
                intervals.append((float(instant), by_run[run.id].last + SETTLING))
    return sorted(intervals)


def _fate(run: RunRow, by_run: Mapping[str, Ran], outages: Iterable[tuple[float, float]]) -> str:
    """A run without a stamp is excused if its daemon was killed around its instant: the child had no time to begin."""
    if run.id in by_run:
        return "ran"
    near = any(start - STARTING <= (run.instant or 0) <= end + STARTING for start, end in outages)
    return "killed before it began" if near else "not started"


def _unjustified(
    instant: int, reason: str, busy: list[tuple[float, float]], outages: list[tuple[float, float]], last_ran: int
) -> str | None:
    in_outage = any(start - STARTING <= instant <= end + STARTING for start, end in outages)
    if reason == "overlap":
        if any(start <= instant <= end for start, end in busy):
            return None
        # A run whose child was killed before it could write anything is unfinished until the outage is over.
        return None if in_outage else "no run of it was unfinished then"
    if reason == "missed":
        if not in_outage:
            return "the daemon was up"
        return None if last_ran > instant else "no later instant of it ran"
    return "there was no reason for that"


def _overlapping(job: str, runs: list[Ran]) -> list[str]:
    """A child that was killed has no end; one that lived on writes its end after the next one's start."""
    spans = sorted(
        (start, end if end is not None else start, ran.run, attempt)
        for ran in runs
        for attempt, (start, end) in ran.attempts.items()
    )
    problems = []
    latest = (0.0, "", 0)
    for start, end, run, attempt in spans:
        if start < latest[0] - RESOLUTION:
            problems.append(f"{job}: {run} attempt {attempt} began before {latest[1]} attempt {latest[2]} had ended")
        latest = max(latest, (end, run, attempt))
    return problems


def _twice(stamps: Iterable[Stamp]) -> list[str]:
    starts = Counter((s.run, s.attempt) for s in stamps if s.kind == "S")
    problems = [f"attempt {attempt} of {run} was started {n} times" for (run, attempt), n in starts.items() if n > 1]
    runs: dict[tuple[str, int], set[str]] = defaultdict(set)
    for stamp in stamps:
        if stamp.instant is not None:
            runs[stamp.job, stamp.instant].add(stamp.run)
    problems += [f"{job}: instant {at} was run by {len(ids)} runs" for (job, at), ids in runs.items() if len(ids) > 1]
    return problems


def _false_statuses(history: History, by_run: Mapping[str, Ran]) -> list[str]:
    problems = []
    for run in history.runs:
        ran = by_run.get(run.id)
        end = ran.attempts.get(run.attempt, (0.0, None))[1] if ran is not None else None
        if run.unfinished:
            problems.append(f"{run.id} is still {run.status}")
        elif run.status == "COMPLETED" and end is None:
            problems.append(f"{run.id} is COMPLETED, but its attempt {run.attempt} never wrote its end")
        elif run.status == "FAILED" and end is not None and not _cut_short(end, history.outages):
            problems.append(f"{run.id} is FAILED ({run.reason}), but its attempt {run.attempt} wrote its end")
    return problems


def _cut_short(end: float, outages: Iterable[tuple[float, float]]) -> bool:
    """Whether a child that wrote its end then may have been ended before it could exit; what a killed supervisor leaves
    is ended by its daemon a moment after the kill."""
    return any(start - EXITING <= end <= until + EXITING for start, until in outages)


def _unstarted(history: History, by_run: Mapping[str, Ran]) -> list[str]:
    known = {run.id for run in history.runs}
    return [f"{run} ran and is not in the ledger" for run in by_run if run not in known]
