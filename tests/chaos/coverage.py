"""Is every instant covered exactly once, and every skip justified?"""

from __future__ import annotations

from collections import Counter, defaultdict

from tests.chaos.history import RECOVERY, SWAPPING, History, Problem
from tests.chaos.load import ChaosJob
from tests.chaos.log import Rest
from tests.crash.checker import STARTING


def uncovered(history: History, figures: Counter[str]) -> list[Problem]:
    problems: list[Problem] = []
    for job in history.jobs.values():
        problems += _of_job(history, job, figures)
    return problems


def _of_job(history: History, job: ChaosJob, figures: Counter[str]) -> list[Problem]:
    certain, open_ = history.instants(job.name)
    runs: dict[int, list[str]] = defaultdict(list)
    skips: dict[int, list[str]] = defaultdict(list)
    problems: list[Problem] = []
    for run in history.runs_of.get(job.name, []):
        if run.instant is not None and run.status == "SKIPPED":
            skips[run.instant].append(run.reason or "")
        elif run.instant is not None:
            runs[run.instant].append(run.id)
    known = sorted({*certain, *open_})
    for skip in history.skips:
        if skip.job == job.name:
            inside = [instant for instant in known if skip.first <= instant <= skip.last]
            fewest = len([instant for instant in inside if instant not in open_])
            ends = not inside or (inside[0], inside[-1]) != (skip.first, skip.last)
            if ends or not fewest <= skip.count <= len(inside):
                problems.append(
                    Problem(
                        f"a skip of {skip.count} instants from {skip.first} to {skip.last}, of which {len(inside)} are",
                        job.name,
                        history.timeline.due(skip.first),
                    )
                )
            for instant in inside:
                skips[instant].append(skip.reason)
    planned = max((one for one in known if runs[one] or set(skips[one]) - {"missed"}), default=0)
    for instant in certain:
        figures["expected"] += 1
        if not runs[instant] and not skips[instant]:
            problems.append(Problem(f"nothing accounts for instant {instant}", job.name, history.timeline.due(instant)))
    for instant in known:
        at = history.timeline.due(instant)
        if len(runs[instant]) > 1:
            problems.append(Problem(f"instant {instant} has {len(runs[instant])} runs", job.name, at))
        if len(skips[instant]) > 1:
            problems.append(Problem(f"instant {instant} is skipped {len(skips[instant])} times", job.name, at))
        if runs[instant] and skips[instant]:
            problems.append(Problem(f"instant {instant} has a run and a skip", job.name, at))
        for reason in skips[instant]:
            figures[f"skipped {reason}"] += 1
            why = _unjustified(history, job, instant, history.timeline.showings(instant, RECOVERY), reason, planned)
            if why is not None:
                problems.append(Problem(f"instant {instant} was SKIPPED({reason}), but {why}", job.name, at))
        if runs[instant]:
            problems += _not_run(history, job, instant, at, runs[instant][0], figures)
    strange = sorted(runs.keys() - set(known))
    problems += [
        Problem(f"a run at {instant}, where the schedule has none", job.name, history.timeline.due(instant))
        for instant in strange
    ]
    return problems


def _not_run(
    history: History, job: ChaosJob, instant: int, at: float, run: str, figures: Counter[str]
) -> list[Problem]:
    """A run without a stamp: its child had no time to begin, or it was replaced before."""
    rested = any(_rested(history, rest, instant, surely=True) for rest in _rests(history, job.name))
    if rested and not _strayed(history, job.name, instant):
        return [Problem(f"instant {instant} has run {run}, though the job was paused", job.name, at)]
    if run in history.ran:
        figures["ran"] += 1
        return []
    row = history.rows[run]
    if job.overlap == "replace" and row.status == "CANCELED":
        figures["replaced before it began"] += 1
        return []
    if history.troubles(at - STARTING, at + STARTING + RECOVERY):
        figures["cut short before it began"] += 1
        return []
    figures["not started"] += 1
    return [Problem(f"run {run} of instant {instant} is {row.status} and never began", job.name, at)]


def _rests(history: History, job: str) -> list[Rest]:
    return [rest for rest in history.log.rests if rest.job == job]


def _strayed(history: History, job: str, instant: int) -> bool:
    """Whether a request to pause or resume it may have been carried out before that instant was planned."""
    due = history.timeline.due(instant)
    planned = history.out_until(due) or due
    return any(
        (asked <= planned or history.timeline.shown(asked) <= instant) and path.startswith(f"/v1/jobs/{job}/")
        for asked, path in history.log.strays
    )


def _rested(history: History, rest: Rest, instant: int, *, surely: bool) -> bool:
    """Whether a pause covers an instant, or may. It is kept in the time of the database's clock, which may have been
    set back between an instant and its planning, or nobody may have been there to plan it: then it may cover what was
    due before it."""
    due, shown = history.timeline.due(instant), history.timeline.shown
    if surely:
        first, last = rest.granted + SWAPPING, rest.resume_asked - SWAPPING
        # The clock may be set back between the question and the answer.
        return first < due < last and shown(first) < instant < min(shown(last), shown(rest.resumed + SWAPPING))
    first, last = rest.asked - SWAPPING, rest.resumed + SWAPPING
    # What nobody could plan at its time is decided when somebody can, by what holds then.
    planned = history.out_until(due) or due
    return (due <= last and first <= planned) or shown(first) <= instant <= shown(last)


def _unjustified(
    history: History, job: ChaosJob, instant: int, showings: list[float], reason: str, planned: int
) -> str | None:
    """Why there was no such reason at any time at which it may have been decided about."""
    if reason == "overlap":
        if job.overlap not in ("skip", "queue"):
            return f"its overlap is {job.overlap}"
        busy = history.busy.get(job.name, ())
        if any(first - SWAPPING <= at <= last for first, last in busy for at in showings):
            return None
        waited = any(first < instant < last for first, last in history.given_up.get(job.name, ()))
        if waited and any(_held_by_others(history, job, at, at) for at in showings):
            return None
        return "no run of it was unfinished then"
    if reason == "missed":
        if not any(map(history.out, showings)) and not history.timeline.leapt(instant):
            return "nothing was wrong then"
        return None if planned > instant else "all that came later was missed, too"
    if reason == "paused":
        rested = any(_rested(history, rest, instant, surely=False) for rest in _rests(history, job.name))
        if rested or _strayed(history, job.name, instant):
            return None
        return "nobody had paused it"
    if reason == "lock":
        return _unjustified_wait(history, job, instant)
    return "there was no reason for that"


def _unjustified_wait(history: History, job: ChaosJob, instant: int) -> str | None:
    """It waited for a shared lock until its next instant came, and somebody could plan that one."""
    if job.lock is None:
        return "it shares its lock with no other job"
    since, following = history.timeline.due(instant), history.timeline.due(instant + (job.period or 0))
    until = history.out_until(following) or following
    return None if _held_by_others(history, job, since, until) else "no other job held its lock"


def _held_by_others(history: History, job: ChaosJob, since: float, until: float) -> bool:
    """Whether a job that shares its lock was running at any time of this."""
    others = [one.name for one in history.jobs.values() if job.lock and one.lock == job.lock and one.name != job.name]
    return any(first < until and since <= last for other in others for first, last in history.busy.get(other, ()))


def idle(figures: Counter[str]) -> list[Problem]:
    """A scheduler that skips, or never starts, what it should run."""
    wanted = figures["ran"] + figures["not started"]
    if figures["expected"] and (not wanted or figures["ran"] < 0.9 * wanted):
        return [Problem(f"only {figures['ran']} of {wanted} instants that were neither skipped nor cut short ran")]
    return []
