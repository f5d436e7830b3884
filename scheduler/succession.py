"""Succession: what a starting daemon finds of the one before it, and what it does about that."""

from __future__ import annotations

import pwd
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import structlog

from scheduler.core.job import Action, Configuration, Job
from scheduler.core.lifecycle import settle
from scheduler.core.model import Run
from scheduler.core.outcome import Outcome
from scheduler.core.ports import Store
from scheduler.core.value_object import value_object
from scheduler.engine.recovery import predecessors
from scheduler.executors.attempts.outcomes import of_exit
from scheduler.executors.attempts.records import AttemptRecords
from scheduler.supervisor.events import Exited
from scheduler.supervisor.owner import child_exit
from scheduler.supervisor.state import StateLock, read_exits
from scheduler.supervisor.sweep import sweep

log = structlog.get_logger("daemon")


@value_object
class Inheritance:
    """The nodes that this daemon succeeds, and what is `known` to have become of their attempts (run, number); after
    those that are `finished` no other follows."""

    nodes: tuple[str, ...]
    known: Mapping[tuple[str, int], Outcome]
    finished: frozenset[tuple[str, int]]


def succeed(
    store: Store, lock: StateLock, records: AttemptRecords, configuration: Configuration, cgroup: str | None
) -> Inheritance:
    """Ends what the former daemon of this state directory left running, and reads what its supervisor wrote down."""
    runs = predecessors(store, lock.former.node)
    held = [run for own in runs.values() for run in own]
    ended = sweep({run.id for run in held}, since=lock.former.since, users=_users(configuration), cgroup=cgroup)
    if ended:
        log.warning("left_processes_ended", count=ended)
    same_boot = lock.former.since is not None
    known = _known(lock.directory, held, records, configuration, same_boot=same_boot)
    return Inheritance(tuple(runs), known, _finished(held, known, configuration, store.now()))


def _finished(
    held: list[Run], known: Mapping[tuple[str, int], Outcome], configuration: Configuration, now: datetime
) -> frozenset[tuple[str, int]]:
    found = set()
    for run in held:
        outcome = known.get((run.id, run.attempt))
        if outcome is not None and settle(run, outcome, configuration.jobs.get(run.job), now, 0.0).status.final:
            found.add((run.id, run.attempt))
    return frozenset(found)


def _known(
    directory: Path, held: list[Run], records: AttemptRecords, configuration: Configuration, *, same_boot: bool
) -> dict[tuple[str, int], Outcome]:
    known: dict[tuple[str, int], Outcome] = {}
    by_id = {run.id: run for run in held}
    for exited in read_exits(directory):
        run = by_id.get(exited.run)
        if run is None:
            continue
        job = configuration.jobs.get(run.job) or Job(run.job, "{}", "", Action("", {}))
        result = records.of(run.id, exited.attempt).finish()
        ended = child_exit(exited if same_boot else _rebased(exited))
        known[run.id, exited.attempt] = of_exit(ended, job, result, {})
    return known


def _rebased(exited: Exited) -> Exited:
    """What a supervisor wrote before the machine was booted again, on the clock of this boot."""
    ended = time.clock_gettime(time.CLOCK_BOOTTIME) - (time.time() - exited.ended_at)
    return replace(exited, ended=ended, began=ended - (exited.ended - exited.began))


def _users(configuration: Configuration) -> set[int]:
    """The users that jobs run as, by number; unknown names have no processes."""
    found = set()
    for job in configuration.jobs.values():
        if job.child.user is not None:
            try:
                found.add(pwd.getpwnam(job.child.user).pw_uid)
            except KeyError:
                continue
    return found
