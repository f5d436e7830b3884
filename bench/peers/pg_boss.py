"""pg-boss: Node.js and PostgreSQL, ten workers that take 50 tasks each half second."""

from __future__ import annotations

from collections.abc import Callable

from bench.peers.install import HOME
from bench.peers.peer import PROGRAMS, Command, Peer, Task

_PATH = {"NODE_PATH": str(HOME / "node" / "node_modules")}


def _node(role: str) -> Callable[[Task], list[Command]]:
    return lambda task: [Command(("node", str(PROGRAMS / "pgboss.js"), role), _PATH)]


PEERS = (
    Peer(
        name="pg-boss",
        package="pg-boss",
        roles={role: _node(role) for role in ("schema", "work", "enqueue-batch")},
        services=("postgresql",),
        left="SELECT count(*) FROM pgboss.job WHERE name = 'tasks' AND state < 'completed'",
    ),
)
