"""Somebody who types what a page of the documentation says, with a real daemon, in several terminals."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

from tests.docs.markdown import ROOT
from tests.until import until

BIN = Path(sys.executable).parent


def free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        return one.getsockname()[1], other.getsockname()[1]


class Reader:
    """Somebody with three terminals, on whose machine other ports and another /tmp are free."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tmp = folder / "tmp"
        self.tmp.mkdir()
        self.daemon_port, self.list_port = free_ports()
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("SCHEDULER_", "SCHEDCTL_"))}
        self.environment = clean | {
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            "PYTHONUNBUFFERED": "1",
            "SCHEDULER_LISTEN": f"127.0.0.1:{self.daemon_port}",
            "TZ": "UTC",
        }
        self.at = ROOT
        self.working: list[subprocess.Popen[bytes]] = []
        self.shown: dict[str, str] = {}

    def type(self, line: str) -> None:
        """Does it, and waits until it has done what it says; AssertionError if it fails."""
        line = re.sub(r"/tmp\b", str(self.tmp), line).replace(":8780", f":{self.daemon_port}")
        line = re.sub(r"\b9009\b", str(self.list_port), line)
        if line.startswith("cd "):
            self.at = Path(line.removeprefix("cd "))
        elif line.startswith("export "):
            name, _, value = line.removeprefix("export ").partition("=")
            self.environment[name] = value
        elif line.startswith("schedulerd"):
            self._leave_at_work(line, "started")
        elif line.startswith("python -m scheduler.testing.provider"):
            self._leave_at_work(line, " events; ")
        else:
            self.shown[line] = self.ask(line)

    def ask(self, line: str) -> str:
        """What it prints; AssertionError if it fails."""
        done = subprocess.run(
            ["/bin/sh", "-c", line], cwd=self.at, env=self.environment, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        return done.stdout

    def _leave_at_work(self, line: str, sign: str) -> None:
        log = self.folder / f"log{len(self.working)}"
        with log.open("wb") as output:
            process = subprocess.Popen(
                ["/bin/sh", "-c", f"exec {line}"], cwd=self.at, env=self.environment, stdout=output, stderr=output
            )
        self.working.append(process)
        until(lambda: sign in log.read_text() or process.poll() is not None, 60)
        self.shown[line] = log.read_text()
        assert process.poll() is None, self.shown[line]

    def leave(self) -> None:
        """Ends what is still at work."""
        for process in self.working:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            process.wait(60)
