"""Putting a peer to work and reading its stamps."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.measurement import Figures
from bench.peers.peer import NotMeasured, Peer, Task, base_environment, peers
from bench.session import Session
from bench.tools import stamps
from bench.tools.percentiles import spread
from bench.tools.processes import Group, tree
from bench.tools.waiting import sleep_until, until

LIMIT = 120.0
"""Seconds after which a peer has had its chance."""


@dataclass(slots=True)
class Trial:
    """A peer, a task for it, and the processes that work on it."""

    peer: Peer
    task: Task
    group: Group

    @property
    def folder(self) -> Path:
        return self.task.folder

    def start(self, role: str) -> None:
        """Starts what this role needs; it lives until the trial ends."""
        self._start(role, self.group)

    def finish(self, role: str, limit: float) -> None:
        """Starts what ends by itself, and waits for it."""
        begun = Group(self.folder)
        try:
            self._start(role, begun)
            until(lambda: not begun.alive(), limit, f"{role} is done")
        finally:
            begun.stop()

    def _start(self, role: str, group: Group) -> None:
        for command in self.peer.commands(role, self.task):
            group.start(command.argv, command.environment(self.task), self.folder)

    def wait_ready(self, seconds: float) -> None:
        """Raises NotMeasured with its last words if it ends before."""
        until(lambda: (self.folder / "ready").exists() or not self.group.alive(), seconds, "it is loaded")
        if not self.group.alive():
            raise NotMeasured(f"it ended: {self.group.tail()}")

    def wait_loaded(self, seconds: float) -> None:
        """As `wait_ready`; a peer that does not say when it is loaded gets this time."""
        if self.peer.says_ready:
            self.wait_ready(seconds)
            return
        sleep_until(time.time() + seconds)
        if not self.group.alive():
            raise NotMeasured(f"it ended: {self.group.tail()}")

    def pids(self) -> list[int]:
        return tree(process.pid for process in self.group.started)

    def count(self, kind: str) -> int:
        return stamps.count(self.folder, kind)

    def read(self, kind: str) -> list[float]:
        return stamps.read(self.folder, kind)


@contextmanager
def trial(
    session: Session,
    name: str,
    count: int,
    due: float = 0.0,
    *,
    command: bool = False,
    child: Path | None = None,
    sink: str = "",
) -> Iterator[Trial]:
    """A peer at work: on jobs that run `child` (None: the usual one) with `command`, on requests to the server `sink`
    if one is given, else on a no-op inside of it.

    Raises NotMeasured where it is not there; everything that was started ends with the context."""
    peer, child = peers()[name], child or session.child
    peer.must_be_there()
    with ExitStack() as stack:
        folder = session.folder()
        stack.callback(session.drop, folder)
        environment = {**base_environment(), "BENCH_DIR": str(folder), "BENCH_N": str(count), "BENCH_DUE": str(due)}
        mode = "cmd" if command else "http" if sink else "noop"
        environment |= {"BENCH_MODE": mode, "BENCH_CHILD": str(child), "BENCH_SINK": sink}
        for kind in peer.services:
            variable = {"postgresql": "BENCH_PG", "redis": "BENCH_REDIS"}[kind]
            environment[variable] = stack.enter_context(session.service(kind))
        group = Group(folder)
        stack.callback(group.stop)
        begun = Trial(peer, Task(folder, count, due, child, command, environment), group)
        if "schema" in peer.roles:
            begun.finish("schema", 60)
        yield begun


def due_together(session: Session, name: str, count: int, *, command: bool, child: Path | None = None) -> Figures:
    """`count` jobs due at one instant: seconds after it until they were recorded, and until they had started."""
    peer = peers()[name]
    due = float(int(time.time() + peer.lead(count)) + 1)
    if peer.whole_minutes:
        due += -due % 60
    with trial(session, name, count, due, command=command, child=child) as one:
        one.start("due")
        sleep_until(due - 0.1)
        if not one.group.alive():
            raise NotMeasured(f"it ended: {one.group.tail()}")
        until(lambda: one.count("started") >= count or time.time() > due + LIMIT, LIMIT + 60, "all have started", 0.25)
        started = [at - due for at in one.read("started")]
        recorded = [at - due for at in one.read("recorded")] if peer.records else []
        figures = {"started": float(len(started)), **_named("start", started)}
        return figures | (_named("durable", recorded) if recorded else {})


def _named(what: str, seconds: list[float]) -> dict[str, float]:
    return {f"{what} {name}": value for name, value in spread(seconds, "s").items()}


def queue(session: Session, name: str, wanted: int) -> Figures:
    """No-op tasks: enqueued while nobody works, then worked off by one worker process."""
    peer = peers()[name]
    count = min(wanted, peer.most)
    inside = "work" not in peer.roles
    with trial(session, name, count) as one:
        if inside:
            one.start("enqueue")
            until(lambda: one.count("started") >= count, LIMIT, "all have started", 0.25)
        else:
            one.finish("enqueue", LIMIT)
            one.start("work")
            there = one.count("enq")
            until(lambda: one.count("started") >= there, LIMIT, "all have started", 0.25)
        enqueued, started = one.read("enq"), one.read("started")
        figures = {"enqueued/s": _rate(enqueued), "executed/s": _rate(started)}
    if "enqueue-batch" in peer.roles:
        with trial(session, name, count) as one:
            begun = time.time()
            one.finish("enqueue-batch", LIMIT)
            sent = one.read("enq")
            # The first batch's own time lies before its first stamp.
            first = min(1000, count)
            figures["enqueued in batches/s"] = (
                (count - first) / (sent[-1] - sent[0]) if count > first else count / (sent[-1] - begun)
            )
    return figures


def _rate(instants: list[float]) -> float:
    return (len(instants) - 1) / max(1e-6, instants[-1] - instants[0])


def latency(session: Session, name: str, count: int) -> Figures:
    """One task at a time on an idle system: from the call that enqueues it to its first line."""
    with trial(session, name, count) as one:
        if "work" in one.peer.roles:
            one.start("work")
            one.wait_ready(60)
            time.sleep(1.5)
        one.start("latency")
        until(lambda: (one.folder / "done").exists() or not one.group.alive(), LIMIT, "all probes are through")
        sent, started = one.read("enq"), one.read("started")
        if len(started) < len(sent) or not sent:
            raise NotMeasured(f"{len(started)} of {len(sent)} started: {one.group.tail()}")
        return spread([after - before for before, after in zip(sent, started, strict=True)], "ms", 1e3)
