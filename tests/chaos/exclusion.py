"""Did runs that exclude each other overlap, did a fence ever shrink, did a queue let too many in?"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

from tests.chaos.history import History, Problem
from tests.chaos.load import BURST, CONCURRENCY, NARROW, RATE, RATED
from tests.crash.stamps import RESOLUTION

THAW = 1.0
"""Seconds for which what was frozen with its whole node may go on after it was thawed."""
MARGIN = 2
"""Starts by which a rate may be exceeded: what was claimed and what began are not the same moment."""


@dataclass(frozen=True)
class Span:
    """One attempt: its first and its last sign of life. `end` None: its child never wrote its end."""

    job: str
    run: str
    attempt: int
    fence: int
    start: float
    last: float
    end: float | None
    node: str

    def __str__(self) -> str:
        return f"{self.run}.{self.attempt} of {self.job} on {self.node}"


def spans(history: History) -> list[Span]:
    """In the order in which they began."""
    found = [
        Span(ran.job, ran.run, attempt, ran.fences[attempt], start, ran.lived[attempt], end, history.node(ran, attempt))
        for ran in history.ran.values()
        for attempt, (start, end) in ran.attempts.items()
    ]
    return sorted(found, key=lambda span: span.start)


def thawed(history: History, node: str, at: float) -> bool:
    """Whether that is a sign of life from the moment after a whole node was thawed."""
    return any(
        one.fault == "freeze-node" and one.whom == node and one.healed - RESOLUTION <= at <= one.healed + THAW
        for one in history.log.troubles
    )


def overlapping(history: History, figures: Counter[str]) -> list[Problem]:
    problems = []
    by_lock: dict[str, list[Span]] = defaultdict(list)
    for span in spans(history):
        lock = history.jobs[span.job].exclusion if span.job in history.jobs else None
        if lock is not None:
            by_lock[lock].append(span)
    for lock, own in by_lock.items():
        latest = highest = own[0]
        for span in own[1:]:
            if span.start < latest.last - RESOLUTION:
                if thawed(history, latest.node, latest.last) or thawed(history, span.node, span.start):
                    figures["overlaps of a thawed node, at most 1 s"] += 1
                else:
                    what = f"{span} began {latest.last - span.start:.2f} s before the last sign of life of {latest}"
                    problems.append(Problem(what, lock, span.start))
            if span.fence <= highest.fence and not thawed(history, span.node, span.start):
                what = f"fence {span.fence} of {span} is not above {highest.fence} of {highest}, which began before"
                problems.append(Problem(what, lock, span.start))
            latest = max(latest, span, key=lambda one: one.last)
            highest = max(highest, span, key=lambda one: one.fence)
    for ran in history.ran.values():
        fences = [ran.fences[attempt] for attempt in sorted(ran.fences)]
        if fences != sorted(set(fences)):
            problems.append(Problem(f"the fences of {ran.run} do not grow: {fences}", ran.job, ran.first))
    return problems


def crowded(history: History, figures: Counter[str]) -> list[Problem]:
    """More runs at once than the queue allows."""
    names = {name for name, job in history.jobs.items() if job.queue == NARROW}
    own = [span for span in spans(history) if span.job in names]
    problems = []
    for span in own:
        together = [one for one in own if one.start <= span.start < one.last - RESOLUTION or one is span]
        figures["most at once"] = max(figures["most at once"], len(together))
        if len(together) <= CONCURRENCY:
            continue
        steady = [one for one in together if not thawed(history, one.node, one.last)]
        if len(steady) <= CONCURRENCY:
            figures["too many at once because of a thawed node, at most 1 s"] += 1
        else:
            who = ", ".join(str(one) for one in together)
            problems.append(Problem(f"{len(together)} at once in queue {NARROW}: {who}", span.job, span.start))
    return problems


def hasty(history: History, figures: Counter[str]) -> list[Problem]:
    """More starts than the rate allows, in any 60 s (and in any 10 s, for campaigns that are not much longer)."""
    own = {name for name, job in history.jobs.items() if job.queue == RATED}
    starts = [span.start for span in spans(history) if span.job in own]
    problems = []
    for window in (60.0, 10.0):
        allowed = int(RATE / 60 * window) + BURST + MARGIN
        first = 0
        for number, at in enumerate(starts):
            while starts[first] <= at - window:
                first += 1
            count = number - first + 1
            name = f"most starts in {window:.0f} s"
            figures[name] = max(figures[name], count)
            if count > allowed:
                problems.append(Problem(f"{count} starts in {window:.0f} s, allowed are {allowed}", RATED, at))
    return problems
