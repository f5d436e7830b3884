"""The owner of all child processes, as executors and beats see it: routes each event to who started the child.

One object lives as long as the daemon; the supervisor process behind it may be replaced.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from scheduler.core.children import ChildExit, ChildListener, ChildSpec
from scheduler.core.errors import SupervisorAway
from scheduler.core.outcome import Span
from scheduler.supervisor.cgroup import delegated
from scheduler.supervisor.client import SupervisorClient
from scheduler.supervisor.diagnose import explain
from scheduler.supervisor.events import Event, Exited, SpawnFailed, SupervisorGone
from scheduler.supervisor.nearness import Nearness
from scheduler.supervisor.orphans import reap_orphans
from scheduler.supervisor.state import StateLock, read_exits

_log = logging.getLogger(__name__)

GONE = "the supervisor of its processes ended"
WORKER = 0
"""The attempt number of children that are no attempts: nothing about their exit is written down."""


_NOT_ITS_FAULT = ("refused", "fork")
"""Stages at which a start fails whatever is to be executed."""


class Owner:
    """Implements core.children.Children and core.execution.Switch.

    `on_gone` is called from a thread with the process id of each supervisor that has ended. If that is still the
    present one (`supervisor_pid`), nobody has put another in its place, and the main thread must call `replace`.
    """

    def __init__(
        self, lock: StateLock, node: str, on_gone: Callable[[int], None], more_locks: tuple[int, ...] = ()
    ) -> None:
        """`more_locks`: descriptors of locks that last as long as the supervisor, too."""
        self._lock = lock
        self._lock_fds = (lock.fd, *more_locks)
        self._node = node
        self._on_gone = on_gone
        self._guard = threading.Lock()
        self._listeners: dict[str, tuple[ChildSpec, ChildListener]] = {}
        self._told: set[tuple[str, int]] = set()
        """Exits that the present supervisor keeps until they are settled."""
        self._client: SupervisorClient | None = None
        self._closing = False
        self.cgroup = delegated()
        """The cgroup under which every run gets its own, if the system has handed one over."""
        # Looking at somebody's files to explain a failure may block; the reader of events must not.
        self._explaining = ThreadPoolExecutor(4, thread_name_prefix="explain")
        self._nearness = Nearness()

    def open(self) -> None:
        """Starts the supervisor; call it from the main thread. StartError if it does not come up."""
        client = SupervisorClient(
            self._node, self._lock.directory, self._hear, lock_fds=self._lock_fds, cgroup=self.cgroup
        )
        self._adopt(client.open())

    def replace(self, node: str) -> None:
        """Ends everything that the present supervisor owns and starts another for `node`; main thread only.

        Whoever waited for a child hears that it is lost, after it is gone."""
        client = self._present()
        self._node = node
        fresh = client.replace(node=node)
        # What the old one could not tell any more stands in its file.
        for exited in read_exits(self._lock.directory):
            self._hear(exited)
        with self._guard:
            lost = list(self._listeners.values())
            self._listeners.clear()
            self._told.clear()
        self._adopt(fresh)
        for _, listener in lost:
            listener.lost(GONE)

    def reap(self) -> int:
        """Takes away what fell to this process and has exited, as process 1 must; the number."""
        return reap_orphans(spare=[self._present().pid])

    def close(self, timeout: float = 15.0) -> bool:
        """Ends everything and the supervisor; False if it stayed."""
        self._closing = True
        done = self._present().close(timeout)
        self._explaining.shutdown(wait=False)
        return done

    # ------------------------------------------------------------ Children

    def start(
        self,
        spec: ChildSpec,
        listener: ChildListener,
        *,
        output_fd: int,
        stdin_fd: int | None = None,
        channel_fd: int | None = None,
    ) -> None:
        with self._guard:
            self._listeners[spec.run] = (spec, listener)
        try:
            near = self._nearness.of(spec) if spec.argv else None
            self._present().start(spec, output_fd=output_fd, stdin_fd=stdin_fd, channel_fd=channel_fd, near=near)
        except BaseException:
            with self._guard:
                self._listeners.pop(spec.run, None)
            raise

    def end(self, run: str, why: str, kill_after: float) -> None:
        try:
            self._present().end(run, why, kill_after)
        except SupervisorAway:
            return  # With the supervisor gone the child ends anyway, and its listener hears of it.

    def settled(self, run: str, attempt: int) -> None:
        """The exit is recorded in the database; the supervisor may forget it. Nothing is said of attempts that were no
        child of it."""
        with self._guard:
            if (run, attempt) not in self._told:
                return
            self._told.remove((run, attempt))
        try:
            self._present().settled(run, attempt)
        except SupervisorAway:
            return

    # ------------------------------------------------------------ Switch

    def trust(self, term_at: float | None, kill_at: float | None) -> None:
        self._present().trust(term_at, kill_at)

    def ping(self) -> None:
        self._present().ping()

    def silent_for(self) -> float:
        return self._present().silent_for

    @property
    def supervisor_pid(self) -> int | None:
        """The process id of the present supervisor."""
        return None if self._client is None else self._client.pid

    def kill(self) -> None:
        self._present().kill()

    # ------------------------------------------------------------ parts

    def _present(self) -> SupervisorClient:
        client = self._client
        if client is None:
            raise SupervisorAway("the supervisor has not been started")
        return client

    def _adopt(self, client: SupervisorClient) -> None:
        self._client = client
        self._lock.record(self._node, supervisor_pid=client.pid)

    def _hear(self, event: Event) -> None:
        if isinstance(event, SupervisorGone):
            if not self._closing:
                self._on_gone(event.pid)
        elif isinstance(event, SpawnFailed):
            started = self._dismiss(event.run, event.attempt)
            if started is not None:
                self._explaining.submit(_tell_failure, *started, event)
        elif isinstance(event, Exited):
            with self._guard:
                self._told.add((event.run, event.attempt))
            started = self._dismiss(event.run, event.attempt)
            if event.attempt == WORKER:
                self.settled(event.run, event.attempt)
            if started is not None:
                started[1].exited(child_exit(event))

    def _dismiss(self, run: str, attempt: int) -> tuple[ChildSpec, ChildListener] | None:
        """Who waits for that attempt, no longer waiting."""
        with self._guard:
            started = self._listeners.get(run)
            if started is None or started[0].attempt != attempt:
                return None
            return self._listeners.pop(run)


def child_exit(event: Exited) -> ChildExit:
    """What the supervisor said of a child, as executors want it."""
    span = Span(event.ended, event.began) if event.ended else None
    return ChildExit(event.code, event.signal, event.why, event.left, span)


def _tell_failure(spec: ChildSpec, listener: ChildListener, event: SpawnFailed) -> None:
    try:
        if event.stage in _NOT_ITS_FAULT:
            listener.refused(explain(spec, event))
        else:
            listener.failed(explain(spec, event))
    except Exception:
        _log.exception("telling of %s failed", event)
