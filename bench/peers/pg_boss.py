"""pg-boss: Node.js and PostgreSQL, ten workers that take 50 tasks each half second."""

from __future__ import annotations

from bench.peers.peer import Peer, node

PEERS = (
    Peer(
        name="pg-boss",
        package="pg-boss",
        roles={role: node("pgboss.js", role) for role in ("schema", "work", "enqueue-batch")},
        services=("postgresql",),
        left="SELECT count(*) FROM pgboss.job WHERE name = 'tasks' AND state < 'completed'",
    ),
)
