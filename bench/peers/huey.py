"""huey on SQLite, four threads."""

from __future__ import annotations

from bench.peers.peer import Peer, python

PEERS = (
    Peer(
        name="huey",
        package="huey",
        roles={role: python("huey_app.py", role, BENCH_THREADS="4") for role in ("due", "work", "enqueue", "latency")},
        whole_minutes=True,
        lead=lambda count: 5 + count * 0.0005,
    ),
)
