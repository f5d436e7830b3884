"""What follows the end of attempts, in the transaction that writes it: locks, follow-up runs, deadlines, flips."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from scheduler.core.execution import Bus
from scheduler.core.model import Run, Status
from scheduler.core.ports import Transaction
from scheduler.core.requests import Settlement
from scheduler.core.value_object import value_object
from scheduler.engine.announce import announce, ends
from scheduler.engine.deadlines import refresh_deadlines
from scheduler.engine.fan_out import check_loaded, follow_ups
from scheduler.engine.flips import Flipped, flip_after_runs
from scheduler.engine.in_force import InForce
from scheduler.engine.outgoing import put_pings


@value_object
class Aftermath:
    """The runs that changed, and what that made of their jobs: to be published after the commit. `live` as in
    core.requests.Settled."""

    runs: list[Run]
    flipped: Flipped
    live: frozenset[str]


def settle_all(
    tx: Transaction,
    in_force: InForce,
    settlements: Sequence[Settlement],
    now: datetime,
    *,
    orphans: bool = False,
) -> Aftermath:
    """Settles, gives every `after` subscriber its run, refreshes the deadlines, stores what that makes of the jobs.

    Raises LoadFirst, and then the transaction must be given up, when the newest generation has to be loaded to know who
    follows, or somebody is about to replace it."""
    current = in_force.current
    configuration = current.configuration
    settled = tx.runs.settle(settlements, now, orphans=orphans)
    ended = any(run.status.final for run in settled.runs)
    loaded = not ended or check_loaded(tx, in_force, current, settled.newest)
    new = follow_ups(tx, current, settled.runs, now, loaded=loaded)
    if new:
        tx.runs.insert(new)
    completed = {run.job for run in settled.runs if run.status is Status.COMPLETED}
    jobs = [configuration.jobs[name] for name in completed if name in configuration.jobs]
    deadlines = refresh_deadlines(tx, jobs, now, settled.jobs)
    put_pings(tx, configuration, settlements, settled.runs, now)
    flipped = flip_after_runs(tx, configuration, settled, deadlines, now)
    told = announce(tx, ends(settled.runs, configuration, now), configuration, now)
    flipped = replace(flipped, told=flipped.told + told) if told else flipped
    return Aftermath(settled.runs, flipped, settled.live)


def announce_settled(bus: Bus, run: Run, now: datetime, *, lost_with: str | None = None) -> None:
    """After the commit: what an attempt of `run` came to. `lost_with`: the node whose death ended it."""
    bus.publish(
        "run.settled",
        run=run.id,
        job=run.job,
        attempt=run.attempt,
        status=str(run.status),
        reason=run.reason,
        started_at=run.started_at,
        finished_at=run.finished_at or now,
        took=run.took,
        next_attempt_at=run.not_before if run.status is Status.PENDING else None,
        lost_with=lost_with,
        trace=run.trace,
    )
