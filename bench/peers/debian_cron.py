"""Debian's cron, in a mount namespace of its own: whatever cron this machine has is neither seen nor disturbed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from bench.peers.install import HOME
from bench.peers.peer import Command, NotMeasured, Peer, Task

_DEBIAN = HOME / "debian"
_ENTER = """set -e
mkdir -p {box}/system {box}/etc/pam.d {box}/etc/cron.d {box}/spool
mount --bind /etc {box}/system
for name in $(ls -A {box}/system); do
  case $name in pam.d|cron*|group) ;; *) ln -s {box}/system/$name {box}/etc/$name ;; esac
done
for name in $(ls -A {box}/system/pam.d 2>/dev/null); do ln -sf {box}/system/pam.d/$name {box}/etc/pam.d/$name; done
rm -f {box}/etc/pam.d/cron
{{ cat {box}/system/group; echo crontab:x:64999:; }} > {box}/etc/group
cp {debian}/etc/pam.d/cron {box}/etc/pam.d/cron
cp {box}/table {box}/etc/cron.d/bench
mount --bind {box}/etc /etc
mount --bind {box}/spool /var/spool
mount -t tmpfs none /run
exec {debian}/usr/sbin/cron -f
"""


def _daemon(schedule: Callable[[Task, int], str]) -> Callable[[Task], list[Command]]:
    def commands(task: Task) -> list[Command]:
        if os.geteuid() != 0:
            raise NotMeasured("cron runs as root only, and this is not root")
        box = task.folder / "cron"
        box.mkdir()
        child = f"{task.child} {task.folder / 'started.cmd'}"
        lines = ["SHELL=/bin/sh", 'MAILTO=""']
        lines += [f"{schedule(task, number)} root {child}" for number in range(task.count)]
        table = box / "table"
        table.write_text("\n".join(lines) + "\n")
        table.chmod(0o644)
        return [Command(("unshare", "--mount", "/bin/sh", "-c", _ENTER.format(box=box, debian=_DEBIAN)))]

    return commands


def _due(task: Task, number: int) -> str:
    due = time.localtime(task.due)
    return f"{due.tm_min} {due.tm_hour} {due.tm_mday} {due.tm_mon} *"


def _far(task: Task, number: int) -> str:
    return f"{number % 60} {(time.localtime().tm_hour + 12) % 24} * * *"


PEERS = (
    Peer(
        name="Debian cron",
        package="cron",
        roles={"due": _daemon(_due), "idle": _daemon(_far)},
        whole_minutes=True,
        records=False,
        says_ready=False,
        lead=lambda count: 5 + count * 0.0005,
    ),
)
