"""One connection: what it may take of the daemon's time and memory.

uvicorn reads requests and carries answers. It does not bound how long a request may take to come, how large its head
may be, or how long an answer may wait for its reader; that is done here, and by the `Door` that all connections of one
address share.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, MutableMapping, Sized
from functools import partial
from typing import Any, cast

from uvicorn._types import ASGI3Application
from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from scheduler.web.door import Door
from scheduler.web.peer import peer_name
from scheduler.web.raw_answer import problem_bytes

HEAD_SECONDS = 10.0
"""A request's head must be complete so soon after the connection was made, or after its first byte."""
BODY_SECONDS = 30.0
"""The body must be complete so soon after the head."""
LEFTOVER_SECONDS = 2.0
"""A body that nobody reads any more, because its request is answered, may take so long to go away."""
STALL_SECONDS = 30.0
"""An answer of which the other end takes nothing for so long is given up."""
KEEP_ALIVE_SECONDS = 30
"""How long a connection may wait for its next request."""
HEAD_BYTES = 64 * 1024
MOST_AHEAD = 100
"""Requests that may be sent ahead of the answers before them: each takes some kB until then."""
AT_ONCE = "schedulerd.answer_at_once"
"""In a request's scope: a function that takes status, header lines and body, and answers with them."""
AtHand = Callable[[MutableMapping[str, Any], bytes], bool]
"""What an app may have under the name `at_hand`: takes scope and body of a request that came whole with its first
bytes, and answers it by `scope[AT_ONCE]`, now or later, or says False: it is served as all others. Must not raise."""


class Connection(HttpToolsProtocol):
    """Counts itself at the door, and notes who is at the other end of a Unix socket, as the kernel knows it.

    `_open` counts requests whose head is complete and whose answer is not."""

    def __init__(
        self,
        door: Door,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._door = door
        self._open = 0
        self._begun = False
        self._body = False
        self._head_size = 0
        self._fed = 0
        """Bytes since the chunk in which the head before this one ended: no head is longer."""
        self._chunk = 0
        self._too_large = False
        self._too_many = False
        self._at_hand: AtHand | None = getattr(self.app, "at_hand", None)
        self._feeding = False
        self._ended = False
        """Whether a head ended in the bytes that are being read."""
        self._first: tuple[RequestResponseCycle, ASGI3Application] | None = None
        """The request whose head ended in the bytes that are being read."""
        self._handed: RequestResponseCycle | None = None
        """The last request that an app took at hand."""
        self._opening: tuple[Any, dict[int, bytes]] = (None, {})
        """The header lines of every answer, and what those of a status begin with."""
        self._since = self.loop.time()
        self._closing: float | None = None
        self._unsent = 0
        self._sent_at = self._since

    # ------------------------------------------------------------ what the door asks

    @property
    def silent_since(self) -> float | None:
        """Since when it has been waited for a request; None while one is being served."""
        return None if self._open else self._since

    def end(self) -> None:
        """At once; what was not sent is lost."""
        self._door.leave(self)
        self.transport.abort()

    def check(self, now: float) -> None:
        """Ends the connection if the other end takes too long."""
        if self.transport.is_closing():
            self._closing = self._closing or now
            if now - self._closing > STALL_SECONDS:
                self.end()
        elif self._stalled(now):
            self._door.note("client_too_slow", what="takes no answer")
            self.end()
        elif self._body and now - self._since > (BODY_SECONDS if self._open else LEFTOVER_SECONDS):
            self._refuse(408, f"the body did not come within {BODY_SECONDS:g} seconds")
        elif not self._open and not self._body and now - self._since > self._patience():
            if self._begun:
                self._refuse(408, f"the request did not come within {HEAD_SECONDS:g} seconds")
            else:
                self.end()

    def _patience(self) -> float:
        waits_for_another = self.cycle is not None and not self._begun
        return KEEP_ALIVE_SECONDS + 1 if waits_for_another else HEAD_SECONDS

    def _stalled(self, now: float) -> bool:
        unsent = self.transport.get_write_buffer_size()
        if unsent == 0 or unsent < self._unsent:
            self._sent_at = now
        self._unsent = unsent
        return now - self._sent_at > STALL_SECONDS

    def _length_of_head(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    # ------------------------------------------------------------ what asyncio and the parser tell

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow = _Flow(transport, self.pipeline)
        bound = transport.get_extra_info("socket")
        if bound is not None and bound.family == socket.AF_UNIX:
            self.client = (peer_name(cast(socket.socket, bound)), 0)
        refusal = self._door.enter(self)
        if refusal is not None:
            self.transport.write(problem_bytes(503, f"{refusal}; try again in a moment"))
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._door.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        head = not self._body
        self._chunk = len(data)
        self._fed += self._chunk
        self._feeding, self._ended = True, False
        try:
            super().data_received(data)
        finally:
            self._feeding = False
        if self._first is not None:
            self._serve_first()
        if head and self._begun and not self._body:
            # If another head ended in these bytes, this one has only what came after that.
            self._head_size += self._length_of_head() if self._ended else len(data)
            if self._head_size > HEAD_BYTES:
                self._too_large = True
                self.send_400_response("")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._begun = True
        if not self._open:
            self._since = self.loop.time()

    def on_headers_complete(self) -> None:
        if self._fed > HEAD_BYTES and self._length_of_head() > HEAD_BYTES:
            self._too_large = True
            raise ValueError("too large")  # The parser stops here and has the request refused.
        if len(self.pipeline) >= MOST_AHEAD:
            self._too_many = True
            raise ValueError("too many")
        super().on_headers_complete()
        cast(dict[str, Any], self.scope)[AT_ONCE] = partial(self._answer_at_once, self.cycle)
        self._open += 1
        self._fed = self._chunk
        self._head_size = 0
        self._ended = True
        self._body = True
        self._since = self.loop.time()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        if self._feeding and self._at_hand is not None:
            self._first = cycle, app
        else:
            super()._start_asgi_task(cycle, app)

    def _serve_first(self) -> None:
        """A task, and all that it needs to wait for a body, takes as long as the rest of a small request."""
        assert self._first is not None
        (cycle, app), self._first = self._first, None
        if cycle.disconnected:
            return  # What came after its head could not be read.
        at_hand, scope = self._at_hand, cast(dict[str, Any], cycle.scope)
        if at_hand is not None and not cycle.more_body and at_hand(scope, bytes(cycle.body)):
            self._handed = cycle
        else:
            super()._start_asgi_task(cycle, app)

    def eof_received(self) -> bool:  # type: ignore[override]
        """Who sends nothing more may still wait for the answer; whether it does. Of requests that take longer it is
        taken as a goodbye."""
        if self._handed is None or self._handed.response_complete or self._body:
            return False
        self.cycle.keep_alive = False
        return True

    def pause_writing(self) -> None:
        """Who takes no answers is asked nothing more: each would be kept here for them."""
        super().pause_writing()
        self.flow.pause_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        self.flow.resume_reading()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._body = self._begun = False
        self._since = self.loop.time()

    def on_response_complete(self) -> None:
        self._open -= 1
        self._since = self.loop.time()
        super().on_response_complete()

    def _answer_at_once(self, cycle: RequestResponseCycle, status: int, head: bytes, body: bytes) -> None:
        """A whole answer in one write, where each write costs as much as all the rest of a small request. `head`: its
        own header lines."""
        if cycle.disconnected or self.transport.is_closing():
            return
        cycle.response_started = True
        cycle.waiting_for_100_continue = False
        lines = [self._opening_of(status), head]
        if not cycle.keep_alive:
            lines.append(b"connection: close\r\n")
        lines.append(b"\r\n")
        if cycle.scope["method"] != "HEAD":
            lines.append(body)
        self.transport.write(b"".join(lines))
        cycle.response_complete = True
        cycle.message_event.set()
        if not cycle.keep_alive:
            self.transport.close()
        cycle.on_response()

    def _opening_of(self, status: int) -> bytes:
        common = self.server_state.default_headers
        if self._opening[0] is not common:  # Another list every second: it has the date.
            self._opening = common, {}
        known = self._opening[1]
        if status not in known:
            lines = [b"%s: %s\r\n" % one for one in common]
            known[status] = b"".join([STATUS_LINE[status], *lines])
        return known[status]

    # ------------------------------------------------------------ refusing

    def send_400_response(self, msg: str) -> None:
        """What the parser cannot read. `msg` is the parser's word for it, which helps nobody."""
        if self._too_large:
            self._refuse(431, f"the head of the request is larger than {HEAD_BYTES} bytes")
        elif self._too_many:
            self._refuse(400, f"more than {MOST_AHEAD} requests were sent ahead of the answers")
        else:
            self._refuse(400, "the request is not well-formed HTTP")

    def _unsupported_upgrade_warning(self) -> None:
        """The request is served as if it had asked for nothing else, and is the last one of its connection."""
        if self.cycle is not None:
            self.cycle.keep_alive = False

    def _refuse(self, status: int, detail: str) -> None:
        """Says so, if nothing else is being said, and ends the connection."""
        self._door.note("request_refused", status=status, detail=detail)
        begun = self.cycle is not None and not self.cycle.response_complete and self.cycle.response_started
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if not begun and not self.transport.is_closing():
            self.transport.write(problem_bytes(status, detail))
        self.transport.close()


class _Flow(FlowControl):
    """Nothing is read while answers wait for their reader, or requests for the answers before them."""

    def __init__(self, transport: asyncio.Transport, pipeline: Sized) -> None:
        super().__init__(transport)
        self._pipeline = pipeline

    def resume_reading(self) -> None:
        if not self.write_paused and not self._pipeline:
            super().resume_reading()
