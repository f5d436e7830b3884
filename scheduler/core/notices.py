"""The notice bus: what happened, told to whoever listens in this process (logs, metrics, streams, tests).

Notices are published after the transaction that made them true. Names are dotted, `noun.past`:

    run.planned run.claimed run.started run.settled run.skipped run.lost run.cancel_asked
    job.disabled job.paused job.resumed
    config.loaded config.rejected node.started node.stopped node.dead clock.stepped audit.finished
    job.missed job.failing job.recovered job.unknown job.excused
    job.acknowledged letters.discarded token.created token.revoked queue.saturated database.lost database.back
    supervisor.gone retention.pruned invariant.broken  event.received event.replayed condition.failed
    scan.read scan.finished scan.hole scan.unlisted
    notification.announced notification.sent notification.delayed notification.failed
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import field
from typing import Any

from scheduler.core.value_object import value_object


@value_object
class Notice:
    """`fields` hold only plain values (text, numbers, instants), never secrets."""

    name: str
    fields: Mapping[str, Any] = field(default_factory=dict)


Listener = Callable[[Notice], None]


class Bus:
    """Synchronous: `publish` calls every listener in the publisher's thread. A listener that raises is handed to
    `on_error` and disturbs neither the publisher nor the other listeners. Nobody hears of the runs of `unheard`, a job
    by its name."""

    def __init__(self, on_error: Callable[[Notice, Exception], None] | None = None, unheard: str | None = None) -> None:
        self._listeners: tuple[tuple[Listener, tuple[str, ...], Collection[str]], ...] = ()
        self._told: dict[str, tuple[Listener, ...]] = {}
        """Who hears of a name: thousands of webhooks a second concern only one of ten listeners."""
        self._around: tuple[Callable[[], AbstractContextManager[None]], ...] = ()
        self._lock = threading.Lock()
        self._on_error = on_error
        self._unheard = unheard

    def subscribe(self, listener: Listener, *names: str, but: Collection[str] = ()) -> Callable[[], None]:
        """Adds a listener, of all notices or of those whose name begins as one of `names`, without those named in
        `but`; the returned function removes it."""
        entry = (listener, names or ("",), but)
        with self._lock:
            self._listeners = (*self._listeners, entry)
            self._told = {}

        def cancel() -> None:
            with self._lock:
                self._listeners = tuple(one for one in self._listeners if one is not entry)
                self._told = {}

        return cancel

    def surround(self, around: Callable[[], AbstractContextManager[None]]) -> None:
        """Enters it around each group of notices."""
        with self._lock:
            self._around = (*self._around, around)

    @contextmanager
    def together(self) -> Iterator[None]:
        """What this thread publishes meanwhile is one group: whoever writes notices down may write them at its end."""
        with ExitStack() as stack:
            for around in self._around:
                stack.enter_context(around())
            yield

    def publish(self, name: str, /, **fields: Any) -> None:
        if self._unheard is not None and fields.get("job") == self._unheard and name.startswith("run."):
            return
        notice = Notice(name, fields)
        listeners = self._told.get(name)
        if listeners is None:
            listeners = self._find(name)
        for listener in listeners:
            try:
                listener(notice)
            except Exception as error:
                if self._on_error is not None:
                    self._on_error(notice, error)

    def _find(self, name: str) -> tuple[Listener, ...]:
        with self._lock:
            found = tuple(
                listener for listener, names, but in self._listeners if name.startswith(names) and name not in but
            )
            self._told[name] = found
        return found
