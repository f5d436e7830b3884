"""graphile-worker: Node.js and PostgreSQL, ten tasks at once."""

from __future__ import annotations

from collections.abc import Callable

from bench.peers.install import HOME
from bench.peers.peer import PROGRAMS, Command, Peer, Task

_PATH = {"NODE_PATH": str(HOME / "node" / "node_modules"), "BENCH_THREADS": "10"}


def _node(role: str) -> Callable[[Task], list[Command]]:
    return lambda task: [Command(("node", str(PROGRAMS / "graphile.js"), role), _PATH)]


PEERS = (
    Peer(
        name="graphile-worker",
        package="graphile-worker",
        roles={role: _node(role) for role in ("schema", "due", "idle", "work", "enqueue", "enqueue-batch", "latency")},
        services=("postgresql",),
        whole_minutes=True,
        left="SELECT count(*) FROM graphile_worker._private_jobs",
        lead=lambda count: 6 + count * 0.0005,
    ),
)
