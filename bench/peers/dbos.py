"""DBOS Transact on PostgreSQL, as a queue."""

from __future__ import annotations

from bench.peers.peer import Peer, python

PEERS = (
    Peer(
        name="DBOS",
        package="dbos",
        roles={role: python("dbos_app.py", role) for role in ("schema", "work", "enqueue", "latency")},
        services=("postgresql",),
        most=3000,
        left="SELECT count(*) FROM dbos.workflow_status WHERE status IN ('ENQUEUED', 'PENDING')",
    ),
)
