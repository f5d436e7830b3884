"""The living runs: started, ended, reaped, and not over before everything they left behind is gone.

After a main process has exited, whatever it left behind has a direct child of the supervisor at its top
(the supervisor is a subreaper), so one list of children tells whether anything is left. Nobody but the
supervisor reaps its children, so that list is exact and a number in it cannot be given to another process.
"""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Callable
from typing import Any

from scheduler.supervisor import linux, processes
from scheduler.supervisor.cgroup import Cgroup, Cgroups
from scheduler.supervisor.launch import Launcher
from scheduler.supervisor.marks import Marks
from scheduler.supervisor.processes import Process
from scheduler.supervisor.run import Run, exited, failed

_LONGEST_PAUSE = 1.0  # seconds between two rounds of SIGKILL


class Runs:
    """`report` takes messages for the daemon; `watch(fd, run)` and `unwatch(fd)` say what to poll."""

    def __init__(
        self,
        report: Callable[[dict[str, Any]], None],
        watch: Callable[[int, Run], None],
        unwatch: Callable[[int], None],
    ) -> None:
        self._report, self._watch, self._unwatch = report, watch, unwatch
        self._marks = Marks()
        self._launcher = Launcher(self._marks)
        self._cgroups: Cgroups | None = None
        self._own_pid = os.getpid()
        self._by_name: dict[str, Run] = {}
        self._by_pid: dict[int, Run] = {}
        self._closing: dict[str, Run] = {}
        self._ending: dict[str, Run] = {}
        self._by_slot: dict[int, set[int]] = {}
        self._kept: dict[int, Cgroup | None] = {}
        self._strays: set[int] = set()
        self._adopted: dict[int, set[int]] = {}

    def use_cgroups(self, root: str) -> None:
        """From now on every run gets a cgroup below `root`."""
        self._cgroups = Cgroups(root)

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    @property
    def idle(self) -> bool:
        """There is no run, and nothing known to have outlived one."""
        return not self._by_name and not self._adopted

    @property
    def empty(self) -> bool:
        """Nothing at all lives below the supervisor, and every run is reported."""
        return not self._by_name and not processes.children_of(self._own_pid)

    def start(self, order: dict[str, Any], fds: dict[str, int]) -> None:
        """Fork; whether the exec succeeded is told later, by `told`."""
        slot = self._marks.take()
        cgroup = self._cgroups.make() if self._cgroups else None
        try:
            pid, tell = self._launcher.start(order, fds, slot, cgroup)
        except OSError as error:
            self._marks.give_back(slot)
            if cgroup:
                cgroup.remove()
            self._report(failed(order, "fork", error.errno or errno.EINVAL))
            return
        run = Run(
            order["run"],
            order["attempt"],
            order["node"],
            order["kill_after"],
            order["leftovers"] == "keep",
            slot,
            cgroup,
            pid,
            -1 if tell is None else tell,
            linux.boottime(),
        )
        self._by_name[run.run] = self._by_pid[pid] = run
        self._by_slot[slot] = run.orphans
        if tell is not None:
            self._watch(tell, run)

    def told(self, run: Run) -> None:
        """The pipe of a start has news: a failure, or its end, which is success."""
        if run.tell < 0:
            return
        try:
            news = os.read(run.tell, 100)
        except BlockingIOError:
            return
        self._unwatch(run.tell)
        os.close(run.tell)
        run.tell = -1
        if news:
            stage, number = news.split()
            run.failure = stage.decode("ascii"), int(number)

    def end(self, name: str, why: str, kill_after: float, now: float) -> None:
        """TERM now, KILL after `kill_after` seconds, to the run and all its descendants.

        The first reason stands, and only if the main process had not exited yet; the earliest KILL counts.
        """
        self.reap(now)
        run = self._by_name.get(name)
        if run is None:
            return
        if run.status is None and run.why is None:
            run.why = why
        self._end(run, kill_after, now)

    def signal(self, name: str, number: int) -> None:
        """A signal for the main process alone; it is no reason of an exit."""
        run = self._by_name.get(name)
        if run is not None and run.status is None and (process := processes.read(run.pid)):
            processes.send(process, number)

    def reap(self, now: float) -> None:
        """Take every exit that has happened and close the runs that are over with it."""
        taken = False
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            taken = True
            run = self._by_pid.get(pid)
            if run is not None and run.status is None:
                run.status, run.ended_at, run.ended = status, time.time(), linux.boottime()
                run.usage = {
                    "user": usage.ru_utime,
                    "system": usage.ru_stime,
                    "max_rss": usage.ru_maxrss * 1024,
                }
                self._closing[run.run] = run
            elif (home := self._adopted.pop(pid, None)) is not None:
                home.discard(pid)
        if taken and (self._closing or self._ending or self._kept):
            self._adopt()
            for run in self._ending.values():
                self._chase(run)
            for run in list(self._closing.values()):
                self._close(run, now)
            for slot in [slot for slot in self._kept if not self._by_slot[slot]]:
                self._release(slot)

    def tick(self, now: float) -> None:
        """SIGKILL where the time has come, again and again until nothing is left."""
        for run in [run for run in self._ending.values() if run.kill_at is not None and run.kill_at <= now]:
            if run.cgroup:
                run.cgroup.kill()
            self._adopt()
            self._send(run, signal.SIGKILL)
            run.kill_at = now + run.pause
            run.pause = min(run.pause * 2, _LONGEST_PAUSE)
            self._close(run, now)

    def next_due(self) -> float | None:
        """The monotonic instant of the next SIGKILL, if one is planned."""
        return min((run.kill_at for run in self._ending.values() if run.kill_at is not None), default=None)

    def end_all(self, why: str, kill_after: float, now: float) -> None:
        """TERM to everything below the supervisor, kept and unknown processes included."""
        self.reap(now)
        for run in list(self._by_name.values()):
            if run.status is None and run.why is None:
                run.why = why
            self._end(run, kill_after, now)
        self._adopt()
        for process in processes.below(self._unowned()):
            processes.send(process, signal.SIGTERM)

    def kill_all(self, now: float) -> None:
        """One round of SIGKILL to everything below the supervisor."""
        for run in self._ending.values():
            run.kill_at = now
        self.tick(now)
        self._adopt()
        for process in processes.below(self._unowned()):
            processes.send(process, signal.SIGKILL)

    def _unowned(self) -> list[int]:
        return [*self._strays, *(pid for slot in self._kept for pid in self._by_slot[slot])]

    def _end(self, run: Run, kill_after: float, now: float) -> None:
        kill_at = now + kill_after
        run.kill_at = kill_at if run.kill_at is None else min(run.kill_at, kill_at)
        self._ending[run.run] = run
        if not run.termed:
            run.termed = True
            self._adopt()
            self._send(run, signal.SIGTERM)

    def _send(self, run: Run, number: int) -> None:
        for process in self._members(run):
            if processes.send(process, number) and process.pid != run.pid:
                run.left.add((process.pid, process.started))

    def _chase(self, run: Run) -> None:
        """TERM to what was being forked at the moment of the first one, by a parent that it has ended.

        New processes whose parent lives are left to it: they may be its clean-up.
        """
        known = {pid for pid, _started in run.left}
        for process in processes.below(run.orphans - known):
            who = process.pid, process.started
            if who not in run.left and processes.send(process, signal.SIGTERM):
                run.left.add(who)

    def _members(self, run: Run) -> list[Process]:
        roots = [*([run.pid] if run.status is None else []), *run.orphans]
        if run.cgroup:
            roots += run.cgroup.pids()
        return processes.below(roots)

    def _adopt(self) -> None:
        """Find out whose the orphans are that have become our children."""
        for pid in processes.children_of(self._own_pid):
            main = self._by_pid.get(pid)
            if pid not in self._adopted and (main is None or main.status is not None):
                home = self._home_of(pid)
                home.add(pid)
                self._adopted[pid] = home

    def _home_of(self, pid: int) -> set[int]:
        slot = self._marks.slot_of(processes.mark_of(pid))
        if slot is not None and slot in self._by_slot:
            return self._by_slot[slot]
        process = processes.read(pid)
        run = self._by_pid.get(process.session) if process else None
        return run.orphans if run else self._strays

    def _close(self, run: Run, now: float) -> None:
        """Report a run whose main process has exited, or end first what it left behind."""
        if run.status is None:
            return
        self.told(run)
        ends_with_main = run.keep and run.why is None and not run.termed
        if not ends_with_main and (run.orphans or (run.cgroup and run.cgroup.pids())):
            if not run.termed:
                self._end(run, run.kill_after, now)
            return
        for table in (self._by_name, self._closing, self._ending):
            table.pop(run.run, None)
        if self._by_pid.get(run.pid) is run:
            del self._by_pid[run.pid]
        self._kept[run.slot] = run.cgroup
        if not run.orphans:
            self._release(run.slot)
        if run.failure:
            order = {"run": run.run, "attempt": run.attempt}
            self._report(failed(order, *run.failure) if run.why is None else exited(run, None))
        else:
            self._report(exited(run, run.status))

    def _release(self, slot: int) -> None:
        cgroup = self._kept.pop(slot)
        if cgroup:
            cgroup.remove()
        del self._by_slot[slot]
        self._marks.give_back(slot)
