"""APScheduler 3: in memory (nothing is durable), and with its SQLAlchemyJobStore."""

from __future__ import annotations

from bench.peers.peer import Peer, python

ROLES = ("due", "second", "idle", "enqueue", "latency")


def _peer(name: str, store: str, slow: float, services: tuple[str, ...] = ()) -> Peer:
    roles = ROLES if store == "memory" else (*ROLES, "first-load", "restart")
    return Peer(
        name=name,
        package="apscheduler",
        roles={role: python("aps.py", role, BENCH_STORE=store) for role in roles},
        services=services,
        records=store != "memory",
        most=3000,
        lead=lambda count: 5 + count * slow,
    )


PEERS = (
    _peer("APScheduler in memory", "memory", 0.001),
    _peer("APScheduler on SQLite", "sqlite", 0.004),
    _peer("APScheduler on PostgreSQL", "pg", 0.004, ("postgresql",)),
)
