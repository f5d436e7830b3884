"""Starting children: what happens between fork and exec, or a spawn where nothing need happen there.

The supervisor forks: fork, unlike posix_spawn, does not wait for the exec, so a work directory or program on a
stalled file system holds up only the child that needs it. Success is the end of a close-on-exec pipe; failure is
`stage errno` in it. What is known to lie on local disks is spawned, which copies no memory and costs less than half;
when that fails, for whatever reason, a fork tells why.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` makes an enum of every signal, in every child
import contextlib
import errno
import fcntl
import os
import resource
import signal
import time
from typing import Any, NoReturn

from scheduler.supervisor import linux
from scheduler.supervisor.cgroup import Cgroup
from scheduler.supervisor.marks import Marks

CHANNEL_FD = 3
BUSY_FOR = 2.0  # seconds for which a program that is still being written is tried again
_OOM_STEP = 500
_SIGNALS = sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})


class Launcher:
    """Starts children of the calling process, which must have one thread and 0, 1, 2 open."""

    def __init__(self, marks: Marks) -> None:
        self._marks = marks
        self._null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self._own_pid = os.getpid()
        with open("/proc/self/oom_score_adj", encoding="ascii") as file:
            score = int(file.read())
        self._own_score, self._child_score = b"%d" % score, b"%d" % min(1000, score + _OOM_STEP)
        self._files = resource.getrlimit(resource.RLIMIT_NOFILE)
        if self._files[0] != self._files[1]:
            # A burst of starts brings many descriptors at once; children get the former limit back.
            resource.setrlimit(resource.RLIMIT_NOFILE, (self._files[1], self._files[1]))
        self._most_files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        for name in os.listdir("/proc/self/fd"):  # Locks among them that no child may hold.
            with contextlib.suppress(OSError):
                os.set_inheritable(int(name), int(name) < CHANNEL_FD)

    def start(
        self, order: dict[str, Any], fds: dict[str, int], slot: int, cgroup: Cgroup | None
    ) -> tuple[int, int | None]:
        """The new child's number and the descriptor that tells how its exec went (None: well); OSError if fork
        fails."""
        if order["near"] and cgroup is None and self._needs_nothing(order):
            pid = self._spawn(order, fds, slot)
            if pid is not None:
                return pid, None
        tell, told = os.pipe2(os.O_CLOEXEC)
        try:
            os.set_blocking(tell, False)
            pid = os.fork()
        except OSError:
            os.close(tell)
            os.close(told)
            raise
        if pid == 0:
            self._become(order, fds, slot, cgroup, told)
        os.close(told)
        return pid, tell

    def _needs_nothing(self, order: dict[str, Any]) -> bool:
        unlimited = all(limit is None for limit in order["limits"].values())
        return order["user"] is None and unlimited and "channel" not in order["fds"]

    def _spawn(self, order: dict[str, Any], fds: dict[str, int], slot: int) -> int | None:
        """What a child inherits is put on ourselves for the moment; every descriptor but these is close-on-exec."""
        output = fds["output"]
        places = [(os.POSIX_SPAWN_DUP2, fds.get("stdin", self._null), 0)]
        places += [(os.POSIX_SPAWN_DUP2, output, 1), (os.POSIX_SPAWN_DUP2, output, 2)]
        try:
            os.chdir(order["cwd"])
            self._confine(slot, None)
            return os.posix_spawn(
                order["near"],
                order["argv"],
                order["env"],
                file_actions=places,
                setsid=True,
                setsigmask=(),
                setsigdef=_SIGNALS,
            )
        except (OSError, ValueError, NotImplementedError):  # ValueError: text that no system takes.
            return None
        finally:
            self._release()
            os.chdir("/")

    def _become(
        self, order: dict[str, Any], fds: dict[str, int], slot: int, cgroup: Cgroup | None, told: int
    ) -> NoReturn:
        stage, number = "fork", 0
        try:
            os.setsid()
            linux.signal_on_parent_death(signal.SIGKILL)
            if os.getppid() != self._own_pid:
                os._exit(127)
            told = self._arrange(fds, told)
            # As after a fresh start: nothing blocked. What came meanwhile is delivered now.
            _signal.pthread_sigmask(signal.SIG_SETMASK, ())
            self._confine(slot, cgroup)
            stage = "limits"
            limits = order.get("limits") or {}
            if limits.get("nice") is not None:
                os.setpriority(os.PRIO_PROCESS, 0, limits["nice"])
            stage = "user"
            if order.get("user") is not None:
                uid, gid, groups = order["user"]
                os.setgroups(groups)
                os.setresgid(gid, gid, gid)
                os.setresuid(uid, uid, uid)
                # Changing the user clears it.
                linux.signal_on_parent_death(signal.SIGKILL)
            stage = "limits"
            _limit(resource.RLIMIT_AS, limits.get("memory"))
            _limit(resource.RLIMIT_NPROC, limits.get("tasks"))
            stage = "cwd"
            os.chdir(order["cwd"])
            stage = "exec"
            _execute(order["argv"], order["env"])
        except OSError as error:
            number = error.errno or errno.EINVAL
        except BaseException:
            number = errno.EINVAL
        finally:
            try:
                os.write(told, f"{stage} {number}".encode("ascii"))
            finally:
                os._exit(127)

    def _arrange(self, fds: dict[str, int], told: int) -> int:
        """Put descriptors where the child expects them and close all others; the new place of `told`. None of them is
        below CHANNEL_FD yet."""
        output, channel = fds["output"], fds.get("channel")
        os.dup2(fds.get("stdin", self._null), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        first = CHANNEL_FD
        if channel is not None:
            if told == CHANNEL_FD:
                told = fcntl.fcntl(told, fcntl.F_DUPFD_CLOEXEC, CHANNEL_FD + 1)
            if channel == CHANNEL_FD:
                os.set_inheritable(channel, True)
            else:
                os.dup2(channel, CHANNEL_FD)
            first += 1
        os.closerange(first, told)
        os.closerange(told + 1, self._most_files)
        return told

    def _confine(self, slot: int, cgroup: Cgroup | None) -> None:
        _write_score(self._child_score)
        if cgroup is not None:
            cgroup.join()
        resource.setrlimit(resource.RLIMIT_NOFILE, self._files)
        self._marks.put_on(slot)

    def _release(self) -> None:
        """What `_confine` did to ourselves."""
        _write_score(self._own_score)
        resource.setrlimit(resource.RLIMIT_NOFILE, (self._most_files, self._most_files))
        self._marks.put_on(0)


def _write_score(score: bytes) -> None:
    try:
        file = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
        os.write(file, score)
        os.close(file)
    except OSError:
        pass


def _limit(kind: int, value: int | None) -> None:
    if value is not None:
        hard = resource.getrlimit(kind)[1]
        if hard != resource.RLIM_INFINITY:
            value = min(value, hard)
        resource.setrlimit(kind, (value, value))


def _execute(argv: list[str], env: dict[str, str]) -> NoReturn:
    """Exec in the order of PATH; a busy text file is tried again for `BUSY_FOR` seconds."""
    name = argv[0]
    if "/" in name:
        candidates = [name]
    else:
        candidates = [os.path.join(folder or ".", name) for folder in env.get("PATH", os.defpath).split(":")]
    until = time.monotonic() + BUSY_FOR
    seen = errno.ENOENT
    index = 0
    while index < len(candidates):
        try:
            os.execve(candidates[index], argv, env)  # noqa: S606
        except OSError as error:
            if error.errno == errno.ETXTBSY and time.monotonic() < until:
                time.sleep(0.02)
                continue
            if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.EACCES):
                raise
            if error.errno == errno.EACCES:
                seen = errno.EACCES
        index += 1
    raise OSError(seen, os.strerror(seen), name)
