"""Joins executors to the supervisor: who hears about which child."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from scheduler.core.children import ChildExit, ChildListener, ChildSpec
from scheduler.core.errors import Unavailable
from scheduler.supervisor.client import SupervisorClient
from scheduler.supervisor.diagnose import explain
from scheduler.supervisor.spec import ChildSpec as Spec
from scheduler.supervisor.spec import Event, Exited, Limits, SpawnFailed, SupervisorGone, User

_log = logging.getLogger(__name__)


class SupervisedChildren:
    """Implements core.children.Children with the supervisor that is in use.

    Give `hear` to the client as its `on_event`. `before_lost` is called when a supervisor has gone, before anything
    that it owned counts as lost: it ends what is left of it.
    """

    def __init__(self, before_lost: Callable[[], None] = lambda: None) -> None:
        self._before_lost = before_lost
        self._client: SupervisorClient | None = None
        self._listeners: dict[str, tuple[Spec, ChildListener]] = {}
        self._lock = threading.Lock()
        # Explaining a failure looks at files, which can wait for a disk; events must not.
        self._explaining = ThreadPoolExecutor(4, thread_name_prefix="explain")

    def use(self, client: SupervisorClient) -> None:
        """From now on children are asked of this one."""
        self._client = client

    def start(
        self,
        spec: ChildSpec,
        listener: ChildListener,
        *,
        output_fd: int,
        stdin_fd: int | None = None,
        channel_fd: int | None = None,
    ) -> None:
        client = self._client
        if client is None or client.gone:
            raise Unavailable("there is no supervisor", hint="the daemon starts a new one by itself")
        asked = Spec(
            run=spec.run,
            attempt=spec.attempt,
            node=spec.node,
            argv=spec.argv,
            cwd=spec.cwd,
            env=spec.env,
            kill_after=spec.kill_after,
            leftovers="keep" if spec.leftovers == "keep" else "end",
            user=None if spec.user is None else User(spec.user.uid, spec.user.gid, spec.user.groups),
            limits=Limits(spec.limits.memory, spec.limits.tasks, spec.limits.nice),
        )
        with self._lock:
            self._listeners[spec.run] = asked, listener
        try:
            client.start(asked, output_fd=output_fd, stdin_fd=stdin_fd, channel_fd=channel_fd)
        except BaseException:
            with self._lock:
                self._listeners.pop(spec.run, None)
            raise

    def end(self, run: str, why: str, kill_after: float) -> None:
        client = self._client
        try:
            if client is not None:
                client.end(run, why, kill_after)
        except Unavailable:
            # Then it is gone or about to be replaced, and everything it owned ends with it.
            _log.warning("cannot end %s: the supervisor does not answer", run)

    def hear(self, event: Event) -> None:
        """One event of the client in use, in its order."""
        match event:
            case Exited():
                if (found := self._pop(event.run)) is not None:
                    if event.attempt == 0:
                        self._settled(event)
                    found[1].exited(ChildExit(event.code, event.signal, event.why, event.left))
            case SpawnFailed():
                if (found := self._pop(event.run)) is not None:
                    self._explaining.submit(self._fail, *found, event)
            case SupervisorGone():
                self._before_lost()
                with self._lock:
                    lost, self._listeners = list(self._listeners.values()), {}
                for _spec, listener in lost:
                    listener.lost(f"the supervisor is gone: {event.reason}")
            case _:
                pass

    def close(self) -> None:
        """No more events will come."""
        self._explaining.shutdown()

    def _settled(self, event: Exited) -> None:
        try:
            if self._client is not None:
                self._client.settled(event.run, event.attempt)
        except Unavailable:
            _log.debug("the supervisor does not answer")

    def _pop(self, run: str) -> tuple[Spec, ChildListener] | None:
        with self._lock:
            return self._listeners.pop(run, None)

    def _fail(self, spec: Spec, listener: ChildListener, event: SpawnFailed) -> None:
        try:
            listener.failed(explain(spec, event))
        except Exception:
            _log.exception("handling %s failed", event)
