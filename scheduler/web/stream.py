"""Streams (Server-Sent Events): of everything, and of one run."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import StreamingResponse

from scheduler.core.access import Access
from scheduler.core.errors import InvalidInput, NotFound, Unavailable
from scheduler.web.backend import Backend, backend_of
from scheduler.web.events import Event, Hub
from scheduler.web.inputs import plain_name
from scheduler.web.operation import Operation
from scheduler.web.output import Printed, printed, segments
from scheduler.web.parameters import Header, Text, Words
from scheduler.web.present import Shown, run_json
from scheduler.web.shapes import TEXT
from scheduler.web.waiting import POLL, RunWatch

ALIVE = 15.0
"""Seconds after which a silent stream says that it is alive."""
LOOK = 1.0
"""Seconds between two looks whether the caller may still listen."""
SOON = 0.3
"""Seconds between two looks at output that grows."""
PIECE = 64 << 10
"""Bytes of output in one event."""
AGAIN = "retry: 3000\n\n"
"""Browsers come back after so many milliseconds."""

Holds = Callable[[], Awaitable[bool]]

LAST = Header("Last-Event-ID", "The id of the last event that was seen: the stream goes on after it.", 100)
JOB = Words("job", "Only what concerns these jobs.")
EVENT = Words("event", "Only these events, or kinds of them: `run.settled`, `run`.")
AFTER = Text("after", "As Last-Event-ID, for those who cannot send headers.")


class EventStream(StreamingResponse):
    media_type = "text/event-stream"

    def __init__(self, content: AsyncIterator[str]) -> None:
        # A proxy that collects what passes would keep it from whoever waits for it.
        super().__init__(content, headers={"X-Accel-Buffering": "no"})


async def stream_all(request: Request) -> EventStream:
    """What happens on this node, as it happens. Each event has an id; who comes back with the last one it saw gets
    what it missed, or `reset` if that is no longer known: then load anew what is shown. Who does not keep up is sent
    away."""
    hub: Hub = request.app.state.hub
    jobs, kinds = set(JOB.read(request)), EVENT.read(request)
    after = LAST.read(request) or AFTER.read(request) or None
    if hub.full:
        raise Unavailable("too many streams are open on this node", hint="end some, or ask another node")

    def wanted(event: Event) -> bool:
        if jobs and event.job not in jobs:
            return False
        return not kinds or any(event.name == kind or event.name.startswith(f"{kind}.") for kind in kinds)

    async def events() -> AsyncIterator[str]:
        quiet = 0.0
        with hub.listen(wanted, after) as (listener, missed, whole):
            yield AGAIN
            if not whole:
                yield _event("reset", {"reason": "what happened meanwhile is no longer known"}, hub.last)
            elif after is None:
                yield _event("open", {"node": backend_of(request).node()}, hub.last)
            yield "".join(event.text(hub.era) for event in missed)
            while not listener.dropped and await request.scope["holds"]():
                news = await listener.next(LOOK)
                quiet = 0.0 if news else quiet + LOOK
                if news:
                    yield "".join(event.text(hub.era) for event in news)
                elif quiet >= ALIVE:
                    quiet = 0.0
                    yield ": alive\n\n"

    return EventStream(events())


async def stream_run(request: Request) -> EventStream:
    """One run, until it is over: `run` whenever its state changes, `log` with what it prints, `end`. Who comes back
    with the last id gets the output from there on; the state comes whole each time."""
    backend, hub = backend_of(request), request.app.state.hub
    text = plain_name(request.path_params["run"])
    attempt, offset = _place(LAST.read(request) or AFTER.read(request))
    run = await to_thread.run_sync(backend.commands.find_run, text)
    await to_thread.run_sync(printed, backend, run, attempt or None)  # What is wrong is said before the stream begins.
    if hub.full:
        raise Unavailable("too many streams are open on this node", hint="end some, or ask another node")
    holds: Holds = request.scope["holds"]
    return EventStream(_follow(backend, hub, request.app.state.watch, _Follower(run, attempt, offset), holds))


async def _follow(backend: Backend, hub: Hub, watch: RunWatch, follower: _Follower, holds: Holds) -> AsyncIterator[str]:
    quiet = 0.0
    yield AGAIN
    with hub.listen(lambda event: False) as (listener, _, _), watch.watch(follower.run) as changed:
        while not listener.dropped and not follower.over and await holds():
            changed.clear()
            try:
                seen = await to_thread.run_sync(printed, backend, follower.run, follower.attempt or None)
                said = follower.tell(seen)
            except Unavailable:
                said = ""  # The database is away; the run goes on, and so does the stream.
            except NotFound:
                return
            quiet = 0.0 if said else quiet + POLL
            if quiet >= ALIVE:
                said, quiet = ": alive\n\n", 0.0
            if said:
                yield said
            if not follower.more:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(changed.wait(), SOON if follower.printing else POLL)


@dataclass(slots=True)
class _Follower:
    """How far somebody has seen a run. `more`: there is more to tell at once; `printing`: its output grows; `over`: all
    was told."""

    run: str
    attempt: int
    offset: int
    shown: Shown = field(default_factory=dict)
    more: bool = False
    printing: bool = False
    over: bool = False

    def tell(self, seen: Printed) -> str:
        """The events that say what is new."""
        run = seen.detail.run
        self.attempt = self.attempt or seen.attempt
        said = []
        state = run_json(run, seen.detail.waiting)
        if state != self.shown:
            self.shown = state
            said.append(_event("run", state, f"{self.attempt}.{self.offset}"))
        logs = self._logs(seen)
        self.printing = bool(logs)
        self.more = not seen.running and self.attempt < run.attempt
        if self.more:
            self.attempt, self.offset = self.attempt + 1, 0
        elif run.status.final:
            self.over = True
            logs.append(_event("end", {"status": str(run.status)}, f"{self.attempt}.{self.offset}"))
        return "".join(said + logs)

    def _logs(self, seen: Printed) -> list[str]:
        """What was printed since. A character that is not yet whole waits for its rest."""
        logs = []
        for body, end in segments(seen.output, self.offset):
            whole = _whole(body) if seen.running else len(body)
            place = end - len(body)  # Not of the line about what is left out; nobody can come back into its middle.
            for begin in range(0, whole, PIECE):
                piece = body[begin : min(begin + PIECE, whole)]
                last = begin + len(piece) == len(body)
                self.offset = end if last else place + begin + len(piece)
                data = {"attempt": seen.attempt, "offset": self.offset, "text": piece.decode("utf-8", "replace")}
                logs.append(_event("log", data, f"{seen.attempt}.{self.offset}"))
        return logs


def _whole(body: bytes) -> int:
    """The length of `body` without the beginning of a character at its end whose rest may follow."""
    for back in range(1, min(4, len(body)) + 1):
        byte = body[-back]
        if byte & 0b1100_0000 == 0b1000_0000:
            continue
        length = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
        return len(body) - back if length > back else len(body)
    return len(body)


def _place(text: str) -> tuple[int, int]:
    if not text:
        return 0, 0
    attempt, dot, offset = text.partition(".")
    if not (dot and all(part.isascii() and part.isdigit() and len(part) <= 18 for part in (attempt, offset))):
        raise InvalidInput("this is no id of an event of this stream", hint="send the last `id` as it came")
    return int(attempt), int(offset)


def _event(name: str, data: Any, number: str) -> str:
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return f"id: {number}\nevent: {name}\ndata: {text}\n\n"


_EVENTS = "text/event-stream"

operations = [
    Operation(
        "GET", "/v1/stream", stream_all, Access.READ, TEXT, query=(JOB, EVENT, AFTER), headers=(LAST,), media=_EVENTS
    ),
    Operation(
        "GET", "/v1/runs/{run}/stream", stream_run, Access.READ, TEXT, query=(AFTER,), headers=(LAST,), media=_EVENTS
    ),
]
