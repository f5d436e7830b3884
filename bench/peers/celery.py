"""Celery with Redis (appendonly, fsync every second): beat and one worker process."""

from __future__ import annotations

from collections.abc import Callable

from bench.peers.peer import PROGRAMS, PYTHON, Command, Peer, Task, python

_CELERY = (str(PYTHON), "-m", "celery", "-A", "celery_app")
_PATH = {"PYTHONPATH": str(PROGRAMS), "PYTHONDONTWRITEBYTECODE": "1"}
_WORKER = Command((*_CELERY, "worker", "-P", "prefork", "-c", "1", "--without-gossip", "-l", "ERROR"), _PATH)


def _beat(role: str, *more: Command) -> Callable[[Task], list[Command]]:
    def commands(task: Task) -> list[Command]:
        argv = (*_CELERY, "beat", "-s", str(task.folder / "beat.db"), "--pidfile=", "-l", "ERROR")
        return [*more, Command(argv, {**_PATH, "BENCH_ROLE": role})]

    return commands


PEERS = (
    Peer(
        name="Celery",
        package="celery",
        roles={
            "due": _beat("due", _WORKER),
            "idle": _beat("idle"),
            "work": lambda task: [_WORKER],
            "enqueue": python("celery_app.py", "enqueue", **_PATH),
            "latency": python("celery_app.py", "latency", **_PATH),
            "first-load": _beat("restart"),
            "restart": _beat("restart"),
        },
        services=("redis",),
        whole_minutes=True,
        lead=lambda count: 10 + count * 0.0012,
    ),
)
