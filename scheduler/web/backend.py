"""What the HTTP face needs from the rest of the daemon, joined by the composition root."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import datetime

from starlette.requests import Request

from scheduler.core.access import Gate
from scheduler.core.channel import Answer as Tried
from scheduler.core.commands import Commands
from scheduler.core.inbox import Inbox
from scheduler.core.job import Configuration, Job
from scheduler.core.model import Output
from scheduler.core.notices import Bus
from scheduler.core.queries import Readable
from scheduler.core.remark import Remark
from scheduler.core.sign import Signs
from scheduler.core.value_object import value_object
from scheduler.web.asked import Asked
from scheduler.web.reception import Receptions

Served = Callable[[str, str, int, float], None]
"""Hears of each answer: the operation's path as it was declared (`other`: there is none), method, status, seconds."""
Received = Callable[[str, str], None]
"""Hears of each request of a webhook's sender: its source (`other`: there is none) and what became of it: `stored
duplicate handshake too_many too_large unavailable unknown_source`, or the reason of a refusal."""
Check = Callable[[], str | None]
"""Why that part is not ready, None if it is. Must answer at once: it is called in the server's thread."""


def _nothing_live(run: str, attempt: int) -> Output | None:
    return None


def _nothing() -> str | None:
    return None


def _not_counted(route: str, method: str, status: int, seconds: float) -> None:
    return None


def _not_noted(source: str, what: str) -> None:
    return None


def _no_others(tell: Callable[[], None]) -> None:
    return None


def _no_channels(name: str) -> Tried:
    return Tried(False, "nothing is sent from here")


@value_object
class Backend:
    """`configuration` is what is in force on this node. `live_output` reads what a running attempt of this node has
    printed so far (None: not here). `metrics` gives the exposition text from memory. `remarks` is what
    this node knows to be wrong with itself, `holdup` why it starts nothing at present (None: it does).
    `elsewhere` is told whom to call when runs may have ended on other nodes. `try_channel` sends a test by a channel.
    `asked` remembers when runs were asked to end; `receptions` judge what comes for a source, `inbox` keeps it;
    `signs` keeps what external jobs tell."""

    readable: Readable
    commands: Commands
    bus: Bus
    now: Callable[[], datetime]
    configuration: Callable[[], Configuration | None]
    version: str
    node: Callable[[], str]
    gate: Gate
    inbox: Inbox
    signs: Signs
    receptions: Receptions
    checks: Mapping[str, Check] = field(default_factory=dict)
    metrics: Callable[[], bytes] = lambda: b""
    live_output: Callable[[str, int], Output | None] = _nothing_live
    remarks: Callable[[], list[Remark]] = list
    holdup: Callable[[], str | None] = _nothing
    address: Callable[[], str | None] = _nothing
    served: Served = _not_counted
    received: Received = _not_noted
    try_channel: Callable[[str], Tried] = _no_channels
    asked: Asked = field(default_factory=Asked)
    elsewhere: Callable[[Callable[[], None]], object] = _no_others

    def jobs(self) -> Mapping[str, Job]:
        """The definitions in force on this node, by name."""
        configuration = self.configuration()
        return {} if configuration is None else configuration.jobs

    def job(self, name: str) -> Job | None:
        """The definition in force on this node."""
        configuration = self.configuration()
        return None if configuration is None else configuration.jobs.get(name)


def backend_of(request: Request) -> Backend:
    backend: Backend = request.app.state.backend
    return backend
