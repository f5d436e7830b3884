"""What the commands of docs/operations.md find on a machine, as far as they need it: `systemctl` and `ssh`.

`python -m tests.moving.machine systemctl|ssh …`. The machine is the folder `ROOT`; those that can be reached by ssh lie
beside it, under their names. Of the units of systemd/ it knows what the drop-ins add: credentials and environment.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

READY = 60.0


def main(program: str, *words: str) -> int:
    root = Path(os.environ["ROOT"])
    if program == "ssh":
        host, command = words
        there = root.with_name(host)
        return subprocess.run(["/bin/sh", "-ec", command], env=surroundings(there)).returncode
    match words:
        case ("daemon-reload",):
            return 0
        case ("stop", "schedulerd"):
            return stop(root)
        case ("start", "schedulerd") | ("enable", "--now", "schedulerd"):
            return start(root)
    raise SystemExit(f"{program} {' '.join(words)}: not known here")


def surroundings(root: Path) -> dict[str, str]:
    """The environment of somebody at that machine."""
    return {
        "ROOT": str(root),
        "PATH": os.environ["PATH"],
        "XDG_STATE_HOME": str(root / "var/lib"),
        "HOME": str(root),
        "LANG": "C.UTF-8",
    }


def state(root: Path) -> Path:
    return root / "var/lib/schedulerd"


def start(root: Path) -> int:
    """Returns when the daemon says that it is ready, as a unit of the type `notify` does."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        told.bind(f"{folder}/notify")
        told.settimeout(0.2)
        with (root / "log").open("ab") as log:
            daemon = subprocess.Popen(
                [sys.executable, "-m", "scheduler.daemon"],
                env=environment(root) | {"NOTIFY_SOCKET": f"{folder}/notify"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        (root / "pid").write_text(str(daemon.pid))
        until = time.monotonic() + READY
        while time.monotonic() < until and daemon.poll() is None:
            try:
                if b"READY=1" in told.recv(65536):
                    return 0
            except TimeoutError:
                continue
    sys.stderr.write((root / "log").read_text()[-2000:])
    return 1


def environment(root: Path) -> dict[str, str]:
    found = surroundings(root) | {
        "SCHEDULER_CONFIG": str(root / "etc/schedulerd/jobs.yaml"),
        "SCHEDULER_STATE_DIR": str(state(root)),
        "SCHEDULER_LISTEN": "127.0.0.1:0",
        "SCHEDULER_LOG_FORMAT": "json",
    }
    credentials = root / "run/credentials"
    for dropped in sorted((root / "etc/systemd/system/schedulerd.service.d").glob("*.conf")):
        text = dropped.read_text()
        for name, path in re.findall(r"^LoadCredential=([^:\n]+):/(.+)$", text, re.MULTILINE):
            credentials.mkdir(parents=True, exist_ok=True)
            (credentials / name).write_text((root / path).read_text())
        for name, value in re.findall(r"^Environment=(\w+)=(.*)$", text, re.MULTILINE):
            found[name] = value.replace("%d", str(credentials))
    return found


def stop(root: Path, number: signal.Signals = signal.SIGTERM) -> int:
    """Returns when the daemon has drained."""
    pid = int((root / "pid").read_text())
    os.kill(pid, number)
    until = time.monotonic() + READY
    while alive(pid):
        if time.monotonic() > until:
            return 1
        time.sleep(0.05)
    return 0


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
