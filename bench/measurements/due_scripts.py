"""The same as `due_commands` with a child as most people write it: a shell script."""

from __future__ import annotations

from collections.abc import Iterator

from bench.measurement import Bar, Row
from bench.measurements.due_commands import measure
from bench.peers.trial import due_together
from bench.session import Session, product

ORDER = 1.5
TITLE = "1,000 shell scripts due in the same second: seconds from the due instant to the stamp of each"
PEERS = ("cronstable", "Debian cron", "APScheduler in memory")
BARS = (
    Bar(product(), "start last s", most=0.5, beside="cronstable"),
    Bar(product(), "start last s", most=0.35, beside="Debian cron"),
)


def run(session: Session) -> Iterator[Row]:
    count, child = session.size(1000, 20), session.shell_child
    yield from session.ours(lambda database: measure(session, count, database, child=child))
    yield from session.theirs(PEERS, lambda name: due_together(session, name, count, command=True, child=child))
