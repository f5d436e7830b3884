"""cronstable: a YAML cron daemon in Python; without durable state, its default."""

from __future__ import annotations

import time
from collections.abc import Callable

from bench.peers.install import HOME
from bench.peers.peer import Command, Peer, Task


def _due(task: Task, number: int) -> str:
    due = time.gmtime(task.due)
    # Seven fields: seconds first, a year last.
    return f"{due.tm_sec} {due.tm_min} {due.tm_hour} {due.tm_mday} {due.tm_mon} * *"


def _far(task: Task, number: int) -> str:
    return f"{number % 60} {(time.gmtime().tm_hour + 12) % 24} * * *"


def _daemon(schedule: Callable[[Task, int], str]) -> Callable[[Task], list[Command]]:
    def commands(task: Task) -> list[Command]:
        child = [f"      - {task.child}", f"      - {task.folder / 'started.cmd'}"]
        # Its YAML knows no flow mappings.
        lines = ["defaults:", "  utc: true", "jobs:"]
        for number in range(task.count):
            when = schedule(task, number)
            lines += [f"  - name: job-{number}", f'    schedule: "{when}"', "    command:", *child]
        file = task.folder / "cronstable.yaml"
        file.write_text("\n".join(lines) + "\n")
        return [Command((str(HOME / "venv" / "bin" / "cronstable"), "-c", str(file), "-l", "WARNING"))]

    return commands


PEERS = (
    Peer(
        name="cronstable",
        package="cronstable",
        roles={
            "due": _daemon(_due),
            "second": _daemon(lambda task, number: "* * * * * * *"),
            "idle": _daemon(_far),
        },
        records=False,
        says_ready=False,
        lead=lambda count: 6 + count * 0.006,
    ),
)
