"""graphile-worker: Node.js and PostgreSQL, ten tasks at once."""

from __future__ import annotations

from bench.peers.peer import Peer, node

PEERS = (
    Peer(
        name="graphile-worker",
        package="graphile-worker",
        roles={
            role: node("graphile.js", role, BENCH_THREADS="10")
            for role in ("schema", "due", "idle", "work", "enqueue", "enqueue-batch", "latency")
        },
        services=("postgresql",),
        whole_minutes=True,
        left="SELECT count(*) FROM graphile_worker._private_jobs",
        lead=lambda count: 6 + count * 0.0005,
    ),
)
