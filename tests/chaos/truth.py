"""Does the ledger say of each run what its children say, and is all there that somebody was promised?"""

from __future__ import annotations

from collections import Counter, defaultdict

from tests.chaos.history import RECOVERY, History, Problem
from tests.crash.checker import EXITING, STARTING, RunRow
from tests.crash.stamps import Ran

FAILING = "exit"
"""The reason of a run whose child ended with another code than 0."""
SILENT = 2.5
"""Seconds between two signs of life of a child, at most."""


def false_statuses(history: History, figures: Counter[str]) -> list[Problem]:
    problems = []
    for run in history.runs:
        figures[f"runs {run.status}" + (f" ({run.reason})" if run.status == "FAILED" else "")] += 1
        why = _false(history, run, history.ran.get(run.id))
        if why is not None:
            problems.append(Problem(f"run {run.id} is {run.status}, but {why}", run.job, _where(history, run)))
    for name, ran in history.ran.items():
        if name not in history.rows:
            problems.append(Problem(f"run {name} ran and is not in the ledger", ran.job, ran.first))
        elif max(ran.attempts) > history.rows[name].attempt:
            problems.append(Problem(f"run {name} had more attempts than the ledger knows", ran.job, ran.last))
    return problems


def _where(history: History, run: RunRow) -> float | None:
    return history.ran[run.id].last if run.id in history.ran else history.began(run)


def _false(history: History, run: RunRow, ran: Ran | None) -> str | None:
    """Why its status cannot be."""
    end = None if ran is None else ran.attempts.get(run.attempt, (0.0, None))[1]
    job = history.jobs.get(run.job)
    fails = job is not None and job.fails
    if run.unfinished:
        return "everything has ended"
    if run.status == "COMPLETED":
        if fails:
            return "its children end with 3"
        return None if end is not None else f"its attempt {run.attempt} never wrote its end"
    if run.status == "SKIPPED":
        return None if ran is None else "its child began"
    if run.status == "CANCELED":
        return _not_replaced(history, run, end)
    if run.status == "FAILED" and run.reason == FAILING:
        return None if fails and end is not None else "its child did not end with 3"
    if run.status == "FAILED" and run.reason == "lost":
        return _not_lost(history, run, ran, end)
    return f"nobody knows a reason for {run.reason}"


def _not_replaced(history: History, run: RunRow, end: float | None) -> str | None:
    job = history.jobs.get(run.job)
    if job is None or job.overlap != "replace" or run.instant is None:
        return "nobody asked for that"
    own = [one.instant for one in history.runs_of[run.job] if one.instant is not None]
    later = [history.timeline.due(instant) for instant in own if instant > run.instant]
    if not later:
        return "no later occurrence replaced it"
    # An end that nobody could write down is none; then the run is lost, and as somebody asked for its end, canceled.
    if (
        end is not None
        and end < min(later) - EXITING
        and not _unheard(history, end, history.node(history.ran[run.id], run.attempt))
    ):
        return "its child wrote its end before the next occurrence was due"
    return None


def _not_lost(history: History, run: RunRow, ran: Ran | None, end: float | None) -> str | None:
    if ran is None or run.attempt not in ran.attempts:
        at = ran.last if ran is not None else history.began(run)
        if at is not None and not history.troubles(at - STARTING, at + STARTING + history.lease + RECOVERY):
            return "nothing was wrong when it should have begun"
        return None
    node = history.node(ran, run.attempt)
    last = ran.lived[run.attempt]
    if end is not None:
        return None if _unheard(history, end, node) else "its child wrote its end while nothing was wrong"
    # A trouble ends what runs at once, or when the lease is nearly over.
    near = history.shaken(ran.attempts[run.attempt][0] - EXITING, last + SILENT, node)
    if not any(one.disables for one in near):
        return f"nothing was wrong with {node} while it ran"
    return None


def _unheard(history: History, end: float, node: str) -> bool:
    """Whether what ended then on that node may not have come to be written: something befell it before it could."""
    return bool(history.troubles(end - EXITING, history.known_by(end, node), node))


def doubled(history: History) -> list[Problem]:
    """Attempts that began twice, instants that two runs ran."""
    starts = Counter((one.run, one.attempt) for one in history.stamps if one.kind == "S")
    problems = [
        Problem(f"attempt {attempt} of {run} began {count} times", history.ran[run].job, history.ran[run].first)
        for (run, attempt), count in starts.items()
        if count > 1
    ]
    ids: dict[tuple[str, int], set[str]] = defaultdict(set)
    for ran in history.ran.values():
        if ran.instant is not None:
            ids[ran.job, ran.instant].add(ran.run)
    problems += [
        Problem(f"instant {instant} was run by {len(runs)} runs", job, history.timeline.due(instant))
        for (job, instant), runs in ids.items()
        if len(runs) > 1
    ]
    return problems


def baseless_attempts(history: History) -> list[Problem]:
    """An attempt after another one: only because something befell the first."""
    problems = []
    for ran in history.ran.values():
        for attempt in sorted(ran.attempts)[:-1]:
            start, end = ran.attempts[attempt]
            node, last = history.node(ran, attempt), ran.lived[attempt]
            if end is not None and not _unheard(history, end, node):
                what = (
                    f"{ran.run} was tried again, though attempt {attempt} had ended and nothing was wrong with {node}"
                )
                problems.append(Problem(what, ran.job, end))
            elif end is None and not history.shaken(start - EXITING, last + SILENT, node):
                what = f"{ran.run} was tried again, though nothing was wrong with {node} during attempt {attempt}"
                problems.append(Problem(what, ran.job, last))
    return problems


def misplaced(history: History) -> list[Problem]:
    """Attempts of which the ledger tells another node or fence than their children, or nothing. A life of a daemon is
    in one place: what most of its children wrote there is what it is taken for."""
    problems = []
    told = {(one.run, one.number): one for one in history.attempts}
    places: dict[str, Counter[str]] = defaultdict(Counter)
    for ran in history.ran.values():
        for number, place in ran.places.items():
            if (ran.run, number) in told:
                places[told[ran.run, number].node][place] += 1
    homes = {node: found.most_common(1)[0][0] for node, found in places.items()}
    for ran in history.ran.values():
        for number, place in ran.places.items():
            row = told.get((ran.run, number))
            if row is None:
                what = f"attempt {number} of {ran.run} ran, and the ledger has no such attempt"
            elif row.fence != ran.fences[number]:
                what = f"attempt {number} of {ran.run} has fence {row.fence}, its child had {ran.fences[number]}"
            elif place != homes[row.node]:
                what = f"attempt {number} of {ran.run} is said to have run in {homes[row.node]}, and ran in {place}"
            else:
                continue
            problems.append(Problem(what, ran.job, ran.attempts[number][0]))
    return problems


def broken_promises(history: History, figures: Counter[str]) -> list[Problem]:
    """Runs and events that were accepted and are not there, or not once, or were dropped."""
    problems = []
    of_key: dict[tuple[str, str], set[str]] = defaultdict(set)
    for request in history.log.requests:
        figures[f"accepted ({request.cause})"] += 1
        of_key[request.job, request.key].add(request.run)
        row = history.rows.get(request.run)
        if row is None:
            problems.append(Problem(f"run {request.run} was accepted and is gone", request.job, request.answered))
        elif row.status in ("SKIPPED", "CANCELED"):
            problems.append(Problem(f"run {row.id} was accepted and is {row.status}", request.job, request.answered))
    problems += [
        Problem(f"key {key} has {len(runs)} runs", job) for (job, key), runs in of_key.items() if len(runs) > 1
    ]
    events: dict[tuple[str, str], list[RunRow]] = defaultdict(list)
    for run in history.runs:
        if run.cause == "event":
            events[run.job, run.key.rpartition(":")[2]].append(run)
    for told in history.log.told:
        figures["accepted (event)"] += 1
        for job in told.jobs:
            own = events.pop((job, told.id), [])
            if len(own) != 1:
                problems.append(Problem(f"event {told.id} has {len(own)} runs", job, told.answered))
            elif own[0].status in ("SKIPPED", "CANCELED"):
                problems.append(Problem(f"event {told.id} has a run that is {own[0].status}", job, told.answered))
    # What was not answered may be there, but not twice.
    problems += [
        Problem(f"event {event} has {len(own)} runs", job) for (job, event), own in events.items() if len(own) > 1
    ]
    return problems


def outliving(history: History) -> list[Problem]:
    """Processes that lived longer than the lease of their node, or than everything."""
    problems = [Problem(f"survivor on {one.node}: {one.what}", at=one.at) for one in history.log.sightings]
    return problems + [Problem(f"survivor at the end: {what}", at=history.until) for what in history.survivors]
