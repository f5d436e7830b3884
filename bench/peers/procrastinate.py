"""procrastinate: PostgreSQL, ten tasks at once."""

from __future__ import annotations

from bench.peers.peer import Peer, python

PEERS = (
    Peer(
        name="procrastinate",
        package="procrastinate",
        roles={
            role: python("procra.py", role, BENCH_THREADS="10")
            for role in ("schema", "due", "work", "enqueue", "enqueue-batch", "latency")
        },
        services=("postgresql",),
        left="SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')",
        lead=lambda count: 6 + count * 0.002,
    ),
)
