"""What is wrong now, since when, and what to type: the answer of `status`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from scheduler.core.channel import Channel
from scheduler.core.counted import counted
from scheduler.core.last_line import last_line
from scheduler.core.model import Run
from scheduler.core.notification import ChannelView
from scheduler.core.queries import JobView, NodeView, Queries, QueueView
from scheduler.core.remark import Remark, where_to_look
from scheduler.core.scan import Hole
from scheduler.core.scan_queries import ScanView
from scheduler.web.job_json import state_of, state_since
from scheduler.web.present import Shown, when
from scheduler.web.reception import Reception

MOST_OUTPUTS = 20
"""Jobs whose last line of output is looked up."""
STUCK = timedelta(minutes=5)
"""A ready run that waits longer than this in its queue is worth a word."""
HOLE_TOLD = timedelta(days=1)

_SAYS = {
    "alarm": "{alarm}",
    "missed": "no success by its deadline",
    "late": "no success by its deadline; still running",
    "failing": "failed {failures} times in a row",
}


def problems_of(
    views: Iterable[JobView],
    queues: Iterable[QueueView],
    nodes: Iterable[NodeView],
    dead_letters: Mapping[str, int],
    now: datetime,
    held_up: Mapping[tuple[str, str], int],
) -> list[Shown]:
    """One entry per thing that is wrong, jobs first: kind, job, since, what it is, what to type. `held_up`: how many
    runs wait behind dead letters, by (job, run)."""
    found = [one for view in views if (one := _job_problem(view, now)) is not None]
    by_job = {one["job"]: one for one in found}
    for job, count in sorted(dead_letters.items()):
        letters = "1 dead letter" if count == 1 else f"{count} dead letters"
        look = f"schedctl dead-letters list --job {job}"
        behind = sum(waiting for (of, _), waiting in held_up.items() if of == job)
        if behind:
            waiting = "1 run waits" if behind == 1 else f"{behind} runs wait"
            letters += f", behind which {waiting} until somebody retries or discards {'it' if count == 1 else 'them'}"
        if job in by_job:
            by_job[job]["what"] += f"; {letters} ({look})"
            continue
        what = f"{letters}: runs with a payload that gave up"
        found.append(_problem("dead_letters", job, None, what, look))
    for queue in queues:
        if queue.oldest is not None and now - queue.oldest > STUCK:
            what = f"queue {queue.queue.name}: {queue.ready} ready, none of them started for long"
            found.append(_problem("queue", None, queue.oldest, what, "schedctl nodes"))
    generations = {view.node.generation for view in nodes if view.node.state == "live"}
    if len(generations) > 1:
        found.append(_problem("nodes", None, None, "live nodes run different configurations", "schedctl nodes"))
    return found


def scan_problems(views: Iterable[ScanView], holes: Iterable[Hole], now: datetime) -> list[Shown]:
    """What scans found out that is no failure of theirs: webhooks that a list lacks, and, for a day, what nobody can
    list any more."""
    found: list[Shown] = []
    for view in views:
        if view.last is not None and view.last.unlisted:
            one = view.last.unlisted == 1
            webhooks = "1 webhook" if one else f"{view.last.unlisted} webhooks"
            what = (
                f"{webhooks} of {view.last.source} came and {'is' if one else 'are'} not in its list: "
                "it is broken, or somebody else signs"
            )
            found.append(_problem("unlisted", view.job, view.last.ended_at, what, f"schedctl scans {view.job}"))
    for hole in holes:
        if now - hole.found_at < HOLE_TOLD:
            what = f"{hole.source} from {when(hole.start)} to {when(hole.end)} cannot be proven complete: {hole.why}"
            found.append(_problem("hole", hole.job, hole.found_at, what, f"schedctl scans {hole.job}"))
    return found


def source_problems(receptions: Iterable[Reception]) -> list[Shown]:
    """Sources that cannot take what their senders sign."""
    return [
        _problem("source", None, since, what, f"schedctl events {one.source.name} --rejected")
        | {"about": one.source.name}
        for one in receptions
        for since, what in one.trouble()
    ]


def channel_problems(
    channels: Iterable[Channel], views: Mapping[str, ChannelView], unreadable: Mapping[str, str]
) -> list[Shown]:
    """Channels by which nobody can be told. `unreadable`: what keeps this node from reading their secrets, by name."""
    found = []
    for channel in channels:
        view = views.get(channel.name)
        standing = None if view is None else view.standing
        why = unreadable.get(channel.name) or (None if standing is None else standing.error)
        if why is None:
            continue
        waiting = "" if view is None or not view.waiting else f"; {counted(view.waiting, 'notification')} waiting"
        since = None if standing is None else standing.failing_since
        command = f"schedctl notify test {channel.name}"
        what = f"channel {channel.name} tells nobody: {why}{waiting}"
        found.append(_problem("channel", None, since, what, command) | {"about": channel.name})
    return found


def daemon_problems(remarks: Iterable[Remark]) -> list[Shown]:
    """What is wrong with this daemon."""
    return [_problem("daemon", None, one.since, one.what, one.command) | {"about": one.about} for one in remarks]


def problem_of_job(view: JobView, queries: Queries, now: datetime) -> Shown | None:
    """What `status` says of this job, if anything, with the last line that the run printed which is to blame."""
    found = _job_problem(view, now)
    if found is not None:
        add_last_lines([found], queries)
    return found


def _job_problem(view: JobView, now: datetime) -> Shown | None:
    kind = state_of(view, now)
    if kind not in _SAYS:
        return None
    state = view.state
    failures = state.consecutive_failures
    what = _SAYS[kind].format(alarm=state.alarm, failures=failures)
    if kind == "failing" and failures == 1:
        what = "failed at its last run"
    run = _to_blame(view, kind)
    problem = _problem(kind, state.name, state_since(view, kind), what, where_to_look(state.name, run))
    if run is not None:
        problem |= {"run_id": run.id, "error": run.error or run.reason}
    return problem


def _to_blame(view: JobView, kind: str) -> Run | None:
    """The run whose output explains it: the last one that failed since the last success, whatever has run or been
    canceled after it; of a job that is only late the one that runs."""
    if kind == "alarm":
        return None
    return view.last_failure or (view.last if kind == "late" else None)


def _problem(kind: str, job: str | None, since: datetime | None, what: str, command: str | None) -> Shown:
    return {
        "kind": kind,
        "about": None,
        "job": job,
        "since": when(since),
        "what": what,
        "command": command,
        "run_id": None,
        "error": None,
        "last_line": None,
    }


def add_last_lines(problems: list[Shown], queries: Queries) -> None:
    """Fills in the last line that the runs printed which the problems are about."""
    for problem in [one for one in problems if one["run_id"] is not None][:MOST_OUTPUTS]:
        problem["last_line"] = last_line(queries.output(problem["run_id"]))
