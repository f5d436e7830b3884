"""What dead man's switches outside are to be told of runs that ended, in the transaction that ends them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from scheduler.core.job import Configuration
from scheduler.core.model import Run
from scheduler.core.ping import NewPing, signal_of
from scheduler.core.ports import Transaction
from scheduler.core.requests import Settlement


def put_pings(
    tx: Transaction,
    configuration: Configuration,
    settlements: Sequence[Settlement],
    runs: Sequence[Run],
    now: datetime,
) -> None:
    """`runs` are as `settlements` left them. Costs nothing for jobs without `ping_url`."""
    jobs = configuration.jobs
    told = [run for run in runs if run.job in jobs and jobs[run.job].watch.ping_url is not None]
    if not told:
        return
    decided = {one.run: one for one in settlements}
    pings = []
    for run in told:
        settled = decided[run.id]
        signal = signal_of(run, settled.attempt_outcome)
        if signal is not None:
            pings.append(NewPing(run.job, run.id, run.attempt, signal, settled.node, now))
    tx.outgoing.put(pings)
