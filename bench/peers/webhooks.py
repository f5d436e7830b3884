"""Receivers of webhooks: a handler that inserts each by itself, the least that stores at all, and Debian's webhook."""

from __future__ import annotations

import json
from collections.abc import Callable

from bench.peers.install import HOME
from bench.peers.peer import PROGRAMS, PYTHON, Command, Peer, Task
from bench.tools.webhooks import HEADER, SECRET, free_port

PATH = "/hooks/bench"
"""Where they all expect webhooks."""
PORT = "port"
"""The file in a trial's folder that says at which port of this machine."""


def _program(name: str) -> Callable[[Task], list[Command]]:
    def commands(task: Task) -> list[Command]:
        more = {"BENCH_PORT": str(_port(task)), "BENCH_SECRET": SECRET}
        return [Command((str(PYTHON), str(PROGRAMS / name)), more)]

    return commands


def _debian(task: Task) -> list[Command]:
    """Answers at once; the command that it starts for each webhook does nothing."""
    source = {"source": "header", "name": HEADER}
    rule = {"match": {"type": "payload-hmac-sha256", "secret": SECRET, "parameter": source}}
    hook = {"id": "bench", "execute-command": "/bin/true", "response-message": "ok", "trigger-rule": rule}
    file = task.folder / "hooks.json"
    file.write_text(json.dumps([hook]))
    program = str(HOME / "debian" / "usr" / "bin" / "webhook")
    return [Command((program, "-hooks", str(file), "-ip", "127.0.0.1", "-port", str(_port(task))))]


def _port(task: Task) -> int:
    port = free_port()
    (task.folder / PORT).write_text(str(port))
    return port


PEERS = (
    Peer("Starlette, one insert each", "starlette", {"ingest": _program("hooks_starlette.py")}, says_ready=False),
    Peer("raw ASGI, group commit", "starlette", {"ingest": _program("hooks_asgi.py")}, says_ready=False),
    Peer("Debian webhook, stores nothing", "webhook", {"ingest": _debian}, records=False, says_ready=False),
)
