"""The verdict for people, and the history around what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from tests.chaos.checker import Verdict
from tests.chaos.history import History, Problem
from tests.chaos.log import STALL

AROUND = 12.0
"""Seconds before and after a problem that are shown."""
SHOWN = 5
"""Problems whose history is shown; all are named, up to MOST."""
MOST = 60


def report(history: History, verdict: Verdict) -> Iterator[str]:
    """Line by line."""
    for name, figure in sorted(verdict.figures.items()):
        yield f"{name:48} {figure}"
    for trouble in sorted(history.log.troubles, key=lambda one: one.begin):
        yield f"{_when(trouble.begin)}  {trouble}"
    for problem in verdict.problems[:MOST]:
        yield f"PROBLEM {problem}"
    for problem in verdict.problems[:SHOWN]:
        yield from _around(history, problem)
    stalled = sum(one.end - one.begin for one in history.log.troubles if one.fault == STALL)
    if stalled:
        yield f"the machine was overloaded for {stalled:.0f} s: what was late, missed or lost then is not judged"
    yield "clean" if verdict.clean else f"{len(verdict.problems)} problems"


def _around(history: History, problem: Problem) -> Iterator[str]:
    if problem.at is None:
        return
    first, last = problem.at - AROUND, problem.at + AROUND
    yield ""
    yield f"{_when(problem.at)}  {problem}"
    lines = [(one.begin, f"  begins: {one}") for one in history.log.troubles if one.near(first, last)]
    lines += [(one.asked, "  reload") for one in history.log.swaps if first <= one.asked <= last]
    lines += [
        (one.asked, f"  pause until {_when(one.resumed)}")
        for one in history.log.rests
        if one.job == problem.job and one.asked <= last and first <= one.resumed
    ]
    together = {problem.job}
    together |= {job.name for job in history.jobs.values() if problem.job in (job.lock, job.queue)}
    lock = history.jobs[problem.job].lock if problem.job in history.jobs else None
    together |= {job.name for job in history.jobs.values() if lock is not None and job.lock == lock}
    lines += [
        (
            one.at,
            f"  {one.kind} {one.job} {one.instant or ''} run {one.run[-8:]}.{one.attempt} fence {one.fence} "
            f"on {history.log.places.get(one.place, one.place)}",
        )
        for one in history.stamps
        if one.job in together and first <= one.at <= last
    ]
    for run in history.runs:
        at = history.began(run)
        if run.job in together and at is not None and first <= at <= last:
            lines.append(
                (at, f"  due {run.job} {run.instant or ''} run {run.id[-8:]}: {run.status} {run.reason or ''}")
            )
    for skip in history.skips:
        at = history.timeline.due(skip.first)
        if skip.job in together and first <= at <= last:
            lines.append((at, f"  skip {skip.job} {skip.first} to {skip.last}: {skip.reason} ({skip.count})"))
    for at, line in sorted(lines):
        yield _when(at) + line


def _when(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S.%f")[:-3]
