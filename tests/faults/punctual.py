"""A load whose every occurrence can be seen to begin on time, or late, or not at all."""

from __future__ import annotations

from collections.abc import Collection

from tests.faults.load import FaultJob
from tests.faults.nodes import FaultNodes
from tests.long import LONG

STAMPING = 0.15
"""Seconds that it takes a child to begin and to write its stamp, and its resolution."""
BUSY = STAMPING if LONG else STAMPING + 1.5
"""Seconds by which a start may be later than the product is allowed: the long tests have the machine for themselves,
beside the short ones others run."""
PERIOD = 6
"""Seconds between two occurrences of a job: longer than one may be late, so that no second one is owed meanwhile."""
PERIODIC = [
    FaultJob(f"job-{number:02d}", 0.1, f"{number % PERIOD}-59/{PERIOD} * * * * *") for number in range(10 * PERIOD)
]


def latest(nodes: FaultNodes, jobs: Collection[str], first: float, last: float) -> tuple[float, str]:
    """By how many seconds the latest occurrence of these jobs between two instants began late, and which; infinite: it
    has not begun."""
    begun = {(one.job, one.instant): one.at for one in reversed(nodes.stamps()) if one.kind == "S"}
    late = (0.0, "")
    for number, job in enumerate(PERIODIC):
        if job.name not in jobs:
            continue
        for at in range(int(first) + 1, int(last) + 1):
            if at % PERIOD == number % PERIOD:
                late = max(late, (begun.get((job.name, at), float("inf")) - at, f"{job.name} at {at}"))
    return late


def held_by(nodes: FaultNodes, identity: str) -> set[str]:
    """The jobs of which the ledger says that this node runs them."""
    with nodes.postgres.connect() as connection:
        rows = connection.execute("SELECT job FROM runs WHERE status = 'RUNNING' AND node = %s", [identity]).fetchall()
    return {row[0] for row in rows}
