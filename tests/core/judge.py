"""The rules for owed instants, instant by instant: slow, and nothing shared with what is tested.

Instants come from brute_force. Where the rules leave a choice (an instant both paused and in a blackout; which of
several runs is named as the blocker) every answer that they allow is accepted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from scheduler.core.job import Blackout, CatchUp, Job, Overlap
from scheduler.core.model import Pause, Status
from scheduler.core.requests import Due

from . import brute_force

SECOND = timedelta(seconds=1)


@dataclass(frozen=True)
class Verdict:
    """Per instant the words that are right for it, and the runs that must make room. `makers_up`: runs one of which a
    missed instant must name."""

    instants: dict[datetime, set[str]]
    cancel: set[str]
    give_up: set[str]
    blockers: set[str]
    makers_up: set[str] = field(default_factory=set)


def instants_of(job_or_blackout: Job | Blackout, first: datetime, last: datetime) -> list[datetime]:
    schedule = job_or_blackout.schedule
    assert schedule is not None
    whole_first, whole_last = first.replace(microsecond=0), last.replace(microsecond=0)
    if whole_first < first:
        whole_first += SECOND
    return brute_force.occurrences(
        list(schedule.expressions), schedule.zone, whole_first, whole_last, schedule.day_match
    )


class Excuses:
    """Why an instant in `[first, last]` is excused, if it is."""

    def __init__(self, pauses: Iterable[Pause], blackouts: Iterable[Blackout], first: datetime, last: datetime) -> None:
        self._pauses = list(pauses)
        self._stretches: list[tuple[datetime, datetime]] = []
        for blackout in blackouts:
            if blackout.schedule is None:
                assert blackout.start is not None
                assert blackout.end is not None
                self._stretches.append((blackout.start, blackout.end))
            else:
                assert blackout.length is not None
                begins = instants_of(blackout, first - blackout.length, last)
                self._stretches += [(begin, begin + blackout.length) for begin in begins]

    def of(self, instant: datetime) -> set[str]:
        reasons = set()
        if any(one.start <= instant and (one.until is None or instant < one.until) for one in self._pauses):
            reasons.add("paused")
        if any(start <= instant < end for start, end in self._stretches):
            reasons.add("blackout")
        return reasons


def judge(job: Job, due: Due, now: datetime) -> Verdict:
    since = due.state.next_due_at
    if job.schedule is None or since is None or since > now:
        return Verdict({}, set(), set(), set())
    excuses = Excuses(due.pauses, job.blackouts, since, now)
    verdicts = {instant: excuses.of(instant) for instant in instants_of(job, since, now)}
    remaining = sorted(instant for instant, reasons in verdicts.items() if not reasons)
    if not remaining:
        return Verdict(verdicts, set(), set(), set())

    give_up, cancel, blockers = set(), set(), set()
    for run in due.unfinished:
        never_started = run.status is Status.PENDING and run.attempt == 0
        if never_started and run.cause == "schedule" and run.foreign_holder is not None:
            give_up.add(run.run)
    others = [run for run in due.unfinished if run.run not in give_up]
    not_begun = {
        run.run
        for run in others
        if run.status is Status.PENDING and run.attempt == 0 and run.cause in ("schedule", "catch_up")
    }
    makers_up: set[str] = set()
    newest = remaining.pop()
    if now - newest >= timedelta(minutes=1):
        remaining.append(newest)
        if job.catch_up is CatchUp.LATEST:
            makers_up = not_begun
    else:
        verdicts[newest] = {"schedule"}
        if job.overlap is Overlap.SKIP:
            # What was asked for after the instant was not in its way.
            blockers = {run.run for run in others if run.created_at <= newest}
        elif job.overlap is Overlap.QUEUE:
            blockers = not_begun
        elif job.overlap is Overlap.REPLACE:
            cancel = {run.run for run in others if run.cause == "schedule"}
        if blockers:
            verdicts[newest] = {"overlap"}

    places = {CatchUp.NONE: 0, CatchUp.LATEST: 1, CatchUp.ALL: job.catch_up_max}[job.catch_up] - len(not_begun)
    for instant in reversed(remaining):
        allowed = places > 0 and now - instant <= job.catch_up_window
        if job.catch_up is CatchUp.LATEST and instant != newest:
            allowed = False
        verdicts[instant] = {"catch_up"} if allowed else {"missed"}
        places -= allowed
    return Verdict(verdicts, cancel, give_up, blockers, makers_up)
