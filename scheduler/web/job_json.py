"""A job as JSON, its state in one word, and its coming occurrences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from heapq import merge
from itertools import islice
from typing import Any

from scheduler.core.excuses import excuses
from scheduler.core.explain import note
from scheduler.core.job import EXTERNAL, Job
from scheduler.core.model import Pause
from scheduler.core.queries import JobView
from scheduler.core.state import Facts, Flip, State, shown
from scheduler.core.value_object import value_object
from scheduler.web.present import Shown, pause_json, run_json, skip_json, when

STATES = (
    "removed",
    "alarm",
    "disabled",
    "missed",
    "late",
    "failing",
    "unknown",
    "overdue",
    "paused",
    "running",
    "waiting",
    "new",
    "up",
)
"""From the most to the least telling; a job has the first one that applies."""

OVERDUE = timedelta(minutes=1)
"""An instant that nobody has planned for so long is no longer merely late."""

_TICK = timedelta(microseconds=1)
_CENTURIES = timedelta(days=200 * 366)
_END = datetime(9999, 1, 1, tzinfo=UTC)


def state_of(view: JobView, now: datetime) -> str:
    """One word of STATES: those of core.state.State, and `removed`, `alarm`, `disabled`, `overdue` (due for a minute,
    and the planner has not come to it), `waiting`."""
    state = view.state
    said = shown(_facts(view), now)
    if state.removed_at is not None:
        return "removed"
    if state.alarm is not None:
        return "alarm"
    if not state.enabled:
        return "disabled"
    if said not in _TELLING:
        if state.next_due_at is not None and now - state.next_due_at > OVERDUE:
            return "overdue"
        if said not in (State.PAUSED, State.RUNNING) and view.waiting > 0:
            return "waiting"
    return str(said)


_TELLING = (State.MISSED, State.LATE, State.FAILING, State.UNKNOWN)


def _facts(view: JobView) -> Facts:
    state = view.state
    return Facts(
        kept=State(state.state),
        deadline=state.deadline_at,
        failures=state.consecutive_failures,
        threshold=alert_after(view),
        succeeded=state.last_success_at is not None,
        running=bool(view.running),
        paused=view.pause is not None,
    )


def state_since(view: JobView, word: str) -> datetime | None:
    """Since when it is in the state that `word` says; None: nobody noted that."""
    state = view.state
    kept = state.state_since if state.state != State.UP else None
    match word:
        case "missed" | "late":
            return kept if state.state == State.MISSED else state.deadline_at
        case "failing":
            return kept or state.last_failure_at
        case "unknown":
            return kept
        case "removed":
            return state.removed_at
        case "overdue":
            return state.next_due_at
        case "paused":
            return None if view.pause is None else view.pause.start
        case "running":
            return min((run.started_at for run in view.running if run.started_at is not None), default=None)
        case "new":
            return state.since
        case "up":
            return state.state_since or state.since
    return None


def alert_after(view: JobView) -> int:
    value = view.definition.get("alert_after", 1)
    return value if isinstance(value, int) else 1


def schedule_of(view: JobView) -> list[str]:
    """Its cron expressions, as written."""
    value: Any = view.definition.get("schedule")
    if isinstance(value, str):
        return [value]
    return [str(one) for one in value] if isinstance(value, list | tuple) else []


def job_json(view: JobView, now: datetime, paused_source: str | None) -> Shown:
    """A job as lists show it. `paused_source`: the one that holds its events now."""
    state, definition = view.state, view.definition
    word = state_of(view, now)
    return {
        "name": state.name,
        "description": definition.get("description", ""),
        "state": word,
        "state_since": when(state_since(view, word)),
        "enabled": state.enabled,
        "schedule": schedule_of(view),
        "timezone": definition.get("timezone"),
        "external": bool(definition.get(EXTERNAL)),
        "next_run_at": when(state.next_due_at),
        "deadline_at": when(state.deadline_at),
        "since": when(state.since),
        "removed_at": when(state.removed_at),
        "last_success_at": when(state.last_success_at),
        "last_failure_at": when(state.last_failure_at),
        "consecutive_failures": state.consecutive_failures,
        "alarm": state.alarm,
        "running": [run_json(run) for run in view.running],
        "waiting": view.waiting,
        "last": None if view.last is None else run_json(view.last),
        "last_skip": None if view.last_skip is None else skip_json(view.last_skip),
        "pause": pause_json(view.pause),
        "upcoming_pause": pause_json(view.upcoming),
        "paused_source": paused_source,
        "queue": definition.get("queue", "default"),
        "team": definition.get("team", ""),
        "severity": definition.get("severity", ""),
        "tags": list(definition.get("tags") or ()),
    }


def expected_json(job: Job | None, view: JobView, now: datetime) -> Shown:
    """Of an external job, when it is expected next, in the place of when it runs; of all others nothing."""
    if job is None or not job.external or job.schedule is None or not view.state.enabled:
        return {}
    return {"next_run_at": when(job.schedule.after(now))}


def flip_json(flip: Flip) -> Shown:
    """A change of state: `at` is when it became so, `seen_at` when that was noted."""
    return {
        "at": when(flip.at),
        "seen_at": when(flip.seen_at),
        "was": str(flip.old),
        "state": str(flip.new),
        "cause": str(flip.why),
        "run_id": flip.run,
    }


@value_object
class Planned:
    """A job whose coming occurrences are asked for. `first` is the next one, if that is known already."""

    job: Job
    pauses: Sequence[Pause]
    first: datetime | None = None


def coming(jobs: Iterable[Planned], after: datetime, count: int, until: datetime | None = None) -> list[Shown]:
    """The next `count` occurrences of all these jobs, strictly after `after` and at most up to `until`, by time; in UTC
    and in the job's zone.

    `note` says what is unusual about the clock then; `excused` why that instant will not run, as things stand."""
    end = min(until or _END, after + min(_CENTURIES, _END - after))
    streams = [_stream(one, after, end) for one in jobs]
    in_order = merge(*streams, key=lambda one: (one[0], one[1].job.name))
    return [_occurrence(one.job, one.pauses, instant) for instant, one in islice(in_order, count)]


def _stream(one: Planned, after: datetime, end: datetime) -> Iterator[tuple[datetime, Planned]]:
    """Of most of a thousand jobs only the first occurrence is looked at, which need not be computed."""
    schedule = one.job.schedule
    if schedule is None:
        return
    start = after
    if one.first is not None and after < one.first <= end:
        yield one.first, one
        start = one.first
    for instant in schedule.between(start + _TICK, end):
        yield instant, one


def _occurrence(job: Job, pauses: Sequence[Pause], instant: datetime) -> Shown:
    assert job.schedule is not None
    excuse = next(iter(excuses(pauses, job.blackouts, instant, instant)), None)
    excused = None
    if excuse is not None:
        excused = f"{excuse.reason}: {excuse.detail}" if excuse.detail else str(excuse.reason)
    return {
        "job": job.name,
        "utc": when(instant),
        "local": instant.astimezone(job.schedule.tzinfo).isoformat(),
        "zone": job.schedule.zone,
        "note": note(job.schedule, instant),
        "excused": excused,
    }
