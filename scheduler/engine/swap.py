"""The swap: one transaction that replaces the configuration in force, so that no instant falls between two of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import structlog

from scheduler.core.errors import Refused
from scheduler.core.job import Action, CatchUp, Configuration, Job
from scheduler.core.model import ELSEWHERE, Generation, JobState, ScheduleVersion
from scheduler.core.policy import Plan, plan
from scheduler.core.ports import Transaction
from scheduler.core.requests import Defined, Due, Leftover
from scheduler.core.schedule import SCHEDULE_CODE, TZDATA_VERSION, Schedule
from scheduler.core.state import Flip, State, Why
from scheduler.core.value_object import value_object
from scheduler.engine.anew import settled_by_edit
from scheduler.engine.flips import amend_deadlines
from scheduler.engine.left_held import count_left, settle_left
from scheduler.engine.planner import Planned, apply_plans

log = structlog.get_logger("engine")

Judge = Callable[[Job, Due, datetime], Plan]
"""What becomes of the instants that a job owes: core.policy.plan, or that with more words."""

_TICK = timedelta(microseconds=1)
_EARLIEST = datetime.min.replace(tzinfo=UTC)


@value_object
class Difference:
    """Names of jobs, by what the new configuration does to them."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    unchanged: tuple[str, ...]


def compare(there: Mapping[str, Defined], new: Configuration) -> Difference:
    """What `new` changes against the jobs in the database. A job that raised an alarm counts as changed: putting a file
    in force gives it another chance."""
    present = {name: one for name, one in there.items() if not one.removed}
    changed = {
        name: None
        for name, job in new.jobs.items()
        if name in present and (present[name].fingerprint != job.fingerprint or present[name].alarmed)
    }
    return Difference(
        added=tuple(name for name in new.jobs if name not in present),
        changed=tuple(changed),
        removed=tuple(sorted(name for name in present if name not in new.jobs)),
        unchanged=tuple(name for name in new.jobs if name in present and name not in changed),
    )


def schedule_spec(schedule: Schedule) -> dict[str, object]:
    """What fixes the instants of a schedule, as a schedule version stores it."""
    return {
        "expressions": list(schedule.expressions),
        "zone": schedule.zone,
        "day_match": schedule.day_match,
        "hash_name": schedule.hash_name,
        "tzdata": TZDATA_VERSION,
        "code": SCHEDULE_CODE,
    }


def version_of(job: Job) -> dict[str, object] | None:
    """What its schedule version says; None: it has none. Instants of an external job are expected and not planned,
    which its version says."""
    if job.schedule is None or not job.enabled:
        return None
    return schedule_spec(job.schedule) | ({ELSEWHERE: True} if job.external else {})


def schedule_of(spec: Mapping[str, object]) -> Schedule:
    """The inverse; the instants are those of this release and its tzdata."""
    expressions = spec["expressions"]
    assert isinstance(expressions, list)
    return Schedule(tuple(expressions), str(spec["zone"]), spec["day_match"], str(spec["hash_name"]))  # type: ignore[arg-type]


def swap(
    tx: Transaction,
    newest: Generation | None,
    old: Configuration | None,
    new: Configuration,
    now: datetime,
    author: str,
    judge: Judge = plan,
    *,
    drop_pending: bool,
) -> tuple[Generation, Difference, Planned]:
    """Puts `new` in force at `now`. `newest` is the locked newest generation, `old` its configuration (None: there is
    none, or this release cannot read it); `judge` decides about what is owed. What it decided comes back, to be told
    after the commit.

    Raises Refused when removed jobs have waiting runs, or held events would never make their runs, and `drop_pending`
    is not given.
    """
    difference = compare(tx.jobs.defined(), new)
    renewed = newest is not None and (newest.tzdata, newest.schedule_code) != (TZDATA_VERSION, SCHEDULE_CODE)
    touched = {*difference.changed, *difference.removed}
    if renewed:
        touched |= {name for name in difference.unchanged if new.jobs[name].schedule is not None}
    states = tx.jobs.states(touched | set(difference.added), lock=True)
    if not drop_pending:
        _refuse_to_drop(waiting(tx, difference, old, new, now))

    planned: Planned = []
    if not renewed:
        planned = plan_owed(tx, old, states, now, judge)
        states = tx.jobs.states(states)
    near = tx.jobs.versions(now, touched.union(difference.added))
    versions = {v.job: v for v in near if v.valid_to is None}
    ended = {v.job: v.valid_to for v in near if v.valid_to is not None}
    settle_left(tx, old, new, now)
    generation = tx.generations.add(new.hash, new.files, now, author)
    tx.generations.put_queues(new.queues.values(), now)
    _close(tx, states, versions, difference.removed, generation.id, old, now)
    opened = [new.jobs[name] for name in (*difference.added, *sorted(touched - set(difference.removed)))]
    _open(tx, states, versions, ended, opened, generation.id, old, now)
    # Who is told of it was told what the miss was; that it is none any more is said by the reload.
    amend_deadlines(tx, opened, now, Why.CHANGE, new)
    return generation, difference, planned


def waiting(
    tx: Transaction, difference: Difference, old: Configuration | None, new: Configuration, now: datetime
) -> dict[str, Leftover]:
    """What `new` leaves of jobs, by name: waiting runs of those that it removes, and held events that would never make
    their runs. Jobs without any are left out."""
    found = tx.runs.pending_counts(difference.removed) if difference.removed else {}
    for name, count in count_left(tx, old, new, now).items():
        found[name] = replace(found.get(name, Leftover()), held_events=count)
    return dict(sorted(found.items()))


def _refuse_to_drop(waiting: Mapping[str, Leftover]) -> None:
    if not waiting:
        return
    words = ", ".join(f"{name} ({left})" for name, left in waiting.items())
    first = "let them finish"
    if any(left.held_events for left in waiting.values()):
        first += " (events are held while their source is `paused`)"
    raise Refused(
        f"the file removes what has waiting runs: {words}",
        hint=f"{first}, or give --drop-pending: those with a payload become dead letters, others canceled",
    )


def plan_owed(
    tx: Transaction,
    old: Configuration | None,
    states: Mapping[str, JobState],
    now: datetime,
    judge: Judge = plan,
) -> Planned:
    """Everything that these jobs owe up to `now` is judged as their definitions in `old` say, and written."""
    owed = [s for s in states.values() if s.next_due_at is not None and s.next_due_at <= now]
    if not owed:
        return []
    since = min(s.next_due_at for s in owed if s.next_due_at is not None)
    contexts = tx.jobs.context([s.name for s in owed], since)
    old_jobs = dict(old.jobs) if old is not None else {}
    versions = {v.job: v for v in tx.jobs.versions(since, [s.name for s in owed]) if v.valid_to is None}
    planned: Planned = []
    for due in contexts:
        name = due.state.name
        try:
            if name not in old_jobs:
                old_jobs[name] = _stand_in(name, versions[name])
            planned.append((due, judge(old_jobs[name], due, now)))
        except Exception:
            # A job whose planning fails is one that had raised an alarm; audit will name what it owes.
            log.exception("owed_instants_not_judged", job_name=name)
    known = Configuration("", {}, old_jobs, {})
    apply_plans(tx, known, planned, now)
    return planned


def _stand_in(name: str, version: ScheduleVersion) -> Job:
    """For a definition that this release cannot read: its schedule is known, so what it owes is recorded as missed."""
    return Job(name, "{}", "", Action("", {}), schedule=schedule_of(version.spec), catch_up=CatchUp.NONE)


def _boundary(version: ScheduleVersion | None, state: JobState | None, now: datetime) -> datetime:
    """The last moment at which the version in force still rules. Instants that are owed belong to its successor; those
    that were planned already, because the clock was set back or by a clock that is ahead of `now`, do not."""
    if version is None or state is None or state.next_due_at is None:
        return now
    if state.next_due_at <= now:
        return state.next_due_at - _TICK
    if (version.spec["tzdata"], version.spec["code"]) != (TZDATA_VERSION, SCHEDULE_CODE):
        return now
    planned = schedule_of(version.spec).before(state.next_due_at)
    return max(now, planned) if planned is not None else now


def _close(
    tx: Transaction,
    states: Mapping[str, JobState],
    versions: Mapping[str, ScheduleVersion],
    removed: Collection[str],
    generation: int,
    old: Configuration | None,
    now: datetime,
) -> None:
    rows = []
    kept = [states[name] for name in removed if states[name].state != State.UP]
    tx.jobs.flip([Flip(one.name, State(one.state), State.UP, now, Why.REMOVAL) for one in kept], now)
    for name in removed:
        tx.jobs.close_versions([name], _boundary(versions.get(name), states[name], now))
        canceled, dead_letters = tx.runs.drop_pending(name, now)
        if canceled or dead_letters:
            log.warning("job_removed_with_waiting_runs", job_name=name, canceled=canceled, dead_letters=dead_letters)
        definition = old.jobs[name].definition_text if old is not None and name in old.jobs else "{}"
        gone = replace(
            states[name],
            generation=generation,
            enabled=False,
            next_due_at=None,
            removed_at=now,
            deadline_at=None,
            alarm=None,
            state=str(State.UP),
            state_since=now,
        )
        rows.append((gone, definition))
    tx.jobs.put(rows)


def _open(
    tx: Transaction,
    states: Mapping[str, JobState],
    versions: Mapping[str, ScheduleVersion],
    ended: Mapping[str, datetime],
    jobs: Collection[Job],
    generation: int,
    old: Configuration | None,
    now: datetime,
) -> None:
    """Writes new and changed jobs; a schedule that changed gets a new version, one that did not keeps its own. `ended`:
    when former versions ended that, by a clock that was set back, end only later: no two rule at once."""
    rows: list[tuple[JobState, str]] = []
    closing: dict[datetime, list[str]] = {}
    opening: list[ScheduleVersion] = []
    for job in jobs:
        before = states.get(job.name)
        version = versions.get(job.name)
        spec = version_of(job)
        next_due = before.next_due_at if before is not None else None
        if (version.spec if version is not None else None) != spec:
            start = max(_boundary(version, before, now), ended.get(job.name, _EARLIEST))
            if version is not None:
                closing.setdefault(start, []).append(job.name)
            if spec is not None:
                opening.append(ScheduleVersion(job.name, spec, start, None))
            planned = job.schedule is not None and job.enabled and not job.external
            next_due = job.schedule.after(start) if job.schedule is not None and planned else None
        was = None if old is None else old.jobs.get(job.name)
        former = None if version is None else version.spec
        settled = now if before is None else settled_by_edit(job, was, before, former, spec, now)
        rows.append((_state(job, before, generation, next_due, settled, now), job.definition_text))
    for start, names in closing.items():
        tx.jobs.close_versions(names, start)
    tx.jobs.open_versions(opening)
    tx.jobs.put(rows)
    # Now, and not when thousands of them are due for the first time, all at once.
    tx.jobs.open_locks({job.lock for job in jobs if job.lock is not None})
    for job in jobs:
        if job.name in states:
            tx.runs.redefine(job)


def _state(
    job: Job,
    before: JobState | None,
    generation: int,
    next_due: datetime | None,
    settled: datetime | None,
    now: datetime,
) -> JobState:
    """One that comes back under its name starts anew; what the ledger knows of its past stays true."""
    if before is None:
        before = JobState(job.name, generation, job.fingerprint, job.enabled, next_due, since=now)
    elif before.removed_at is not None:
        before = replace(before, since=now, removed_at=None, consecutive_failures=0)
    return replace(
        before,
        generation=generation,
        fingerprint=job.fingerprint,
        enabled=job.enabled,
        next_due_at=next_due,
        settled_until=settled,
        alarm=None,
    )
