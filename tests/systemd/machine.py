"""A machine with a systemd of its own, made of namespaces: what only a real process 1 can tell."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.daemon.waiting import wait_for

SOURCE = Path(__file__).parents[2]
BOOT = Path(__file__).with_name("boot.sh")
PATH = "/opt/schedulerd/bin:/usr/sbin:/usr/bin:/sbin:/bin"
BOOTED_WITHIN = 60.0


class NoMachine(Exception):
    """This machine lets nobody boot another one, or not this one."""


class Machine:
    def __init__(self, process: int) -> None:
        self._process = process

    def run(self, script: str, *, check: bool = True) -> str:
        """What a shell in the machine prints, stderr included; with `check` it must succeed."""
        done = self.shell(script)
        said = done.stdout + done.stderr
        assert not check or done.returncode == 0, f"{script}\n{done.returncode}: {said}"
        return said

    def shell(self, script: str) -> subprocess.CompletedProcess[str]:
        enter = ["nsenter", "-t", str(self._process), "-m", "-p", "-C", "-i", "-u", "-n", "-r", "-w"]
        clean = ["env", "-i", f"PATH={PATH}", "LANG=C.UTF-8", "TERM=dumb", "PYTHONDONTWRITEBYTECODE=1"]
        return subprocess.run([*enter, *clean, "bash", "-c", script], capture_output=True, text=True, timeout=120)

    def show(self, what: str, unit: str = "schedulerd") -> str:
        """A property of the unit."""
        return self.run(f"systemctl show -p {what} --value {unit}").strip()

    def journal(self, unit: str = "schedulerd") -> str:
        return self.run(f"journalctl --no-pager -o cat -u {unit}")

    def wait_for(self, script: str, timeout: float = 30.0) -> None:
        """Until the shell's script succeeds."""
        wait_for(lambda: self.shell(script).returncode == 0, timeout, script, 0.2)


@contextmanager
def booted(folder: Path) -> Iterator[Machine]:
    """NoMachine says why there is none."""
    if os.geteuid() != 0:
        raise NoMachine("only root can boot one")
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    groups = next((Path(fields[1]) for fields in mounts if fields[2] == "cgroup2"), None)
    if groups is None:
        raise NoMachine("cgroup v2 is not mounted")
    group = groups / f"schedulerd-test-{uuid.uuid4().hex[:8]}"
    try:
        group.mkdir()
    except OSError as error:
        raise NoMachine(f"no cgroup can be made: {error}") from None
    log = folder / "boot.log"
    view = folder / "view"
    view.mkdir()
    python, packages = sys.base_prefix, sysconfig.get_path("purelib")
    with log.open("wb") as output:
        process = subprocess.Popen(
            [BOOT, view, group, python, packages, SOURCE], stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        yield _up(process, log)
    finally:
        process.kill()
        process.wait()
        wait_for(lambda: not _members(group), 20, "everything in the machine is gone")
        for directory, _, _ in os.walk(group, topdown=False):
            with suppress(OSError):
                os.rmdir(directory)


def _up(process: subprocess.Popen[bytes], log: Path) -> Machine:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")

    def ready() -> bool:
        if process.poll() is not None:
            raise NoMachine(log.read_text(errors="replace")[-500:].strip() or f"status {process.returncode}")
        born = children.read_text().split()
        return bool(born) and "running" in Machine(int(born[0])).run("systemctl is-system-running", check=False)

    try:
        wait_for(ready, BOOTED_WITHIN, "systemd has booted", 0.2)
    except AssertionError:
        raise NoMachine(f"it does not boot: {log.read_text(errors='replace')[-500:]}") from None
    return Machine(int(children.read_text().split()[0]))


def _members(group: Path) -> list[str]:
    return [pid for path in group.rglob("cgroup.procs") for pid in path.read_text().split()]
