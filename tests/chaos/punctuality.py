"""How late did occurrences begin that nothing but a fault elsewhere could delay?"""

from __future__ import annotations

from collections import Counter

from tests.chaos.history import History, Problem
from tests.crash.checker import RunRow

AFTERWARDS = 4.0
"""Seconds after the beginning of a fault in which a delay is put down to it."""
LATEST = {"undisturbed": 1.0, "after a kill": 1.0, "after another fault": 3.0}
"""Seconds."""


def late(history: History, figures: Counter[str]) -> list[Problem]:
    """Of occurrences that wait for no lock and no queue, and whose own node is well; not while nothing can be expected
    at all. In `figures` the latest of each kind, in milliseconds."""
    problems = []
    for run in history.runs:
        delay, kind = _delay(history, run)
        if kind:
            name = f"latest start in ms, {kind}"
            figures[name] = max(figures[name], round(1000 * delay))
            if delay > LATEST[kind]:
                problems.append(Problem(f"run {run.id} began {delay:.2f} s late, {kind}", run.job, history.began(run)))
    return problems


def _delay(history: History, run: RunRow) -> tuple[float, str]:
    """In seconds, and of which kind; no kind: it is not judged."""
    job, ran = history.jobs.get(run.job), history.ran.get(run.id)
    if job is None or ran is None or run.instant is None or run.cause != "schedule" or 1 not in ran.attempts:
        return 0.0, ""
    if job.queue != "wide" or job.lock is not None or job.overlap not in ("skip", "allow"):
        return 0.0, ""
    due, began = history.timeline.due(run.instant), ran.attempts[1][0]
    if any(first <= began and due <= last for first, last in history.blackouts):
        return 0.0, ""
    disabling = [one for one in history.log.troubles if one.disables]
    if any(one.near(due, began) and one.whom == history.node(ran, 1) for one in disabling):
        return 0.0, ""
    recent = [one for one in disabling if due - AFTERWARDS <= one.begin <= began]
    if any(not one.fault.startswith("kill") for one in recent):
        return began - due, "after another fault"
    return began - due, "after a kill" if recent else "undisturbed"
