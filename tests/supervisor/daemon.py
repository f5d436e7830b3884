"""A daemon small enough to be killed: obeys JSON lines on stdin and prints what it hears as JSON lines."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from scheduler.core.children import ChildSpec
from scheduler.core.errors import Unavailable
from scheduler.supervisor.client import SupervisorClient
from scheduler.supervisor.events import Event
from scheduler.supervisor.orphans import reap_orphans
from scheduler.supervisor.state import StateLock
from tests.supervisor.harness import near_of

_printing = threading.Lock()


def say(kind: str, **values: Any) -> None:
    with _printing:
        print(json.dumps({"event": kind} | values), flush=True)


def hear(event: Event) -> None:
    say(type(event).__name__, **dataclasses.asdict(event))


def main(folder: Path) -> None:
    lock = StateLock.acquire(folder / "state", say=lambda text: say("held", text=text))
    client = SupervisorClient("node-1", lock.directory, hear, lock_fds=(lock.fd,)).open()
    client.trust(None, None)
    lock.record("node-1", supervisor_pid=client.pid)
    say("ready", supervisor=client.pid)
    for line in sys.stdin:
        order = json.loads(line)
        if order["do"] == "start":
            spec = ChildSpec(
                order["run"], 1, "node-1", tuple(order["argv"]), str(folder), {"PATH": os.environ["PATH"]}, 60.0
            )
            fd = os.open(folder / f"{order['run']}.out", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            with contextlib.suppress(Unavailable):
                client.start(spec, output_fd=fd, near=near_of(spec))
            os.close(fd)
        elif order["do"] == "settled":
            client.settled(order["run"], 1)
        elif order["do"] == "replace":
            client = client.replace(kill_after=order["kill_after"])
            client.trust(None, None)
            say("replaced", supervisor=client.pid)
        elif order["do"] == "orphan":
            subprocess.run(["/bin/sh", "-c", "(setsid sleep 0 &)"], check=True)
            say("orphaned")
        elif order["do"] == "reap":
            say("reaped", count=reap_orphans(spare=[client.pid]))
    client.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
