"""A TCP proxy between a node and its database, on which a network can fail in every way that networks do."""

from __future__ import annotations

import selectors
import socket
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from types import TracebackType

CHUNK = 65536
FULL = 4 * 1024 * 1024
"""Bytes that are held for one direction before the sender has to wait."""
PACE = 0.02
"""Seconds between two portions of a slow connection."""


class _Way(Enum):
    PASS = auto()
    DROP = auto()
    RESET = auto()
    HOLD = auto()
    VANISH = auto()
    NO_ANSWERS = auto()
    NO_REQUESTS = auto()


@dataclass(eq=False)
class _Stream:
    """One direction of one connection."""

    source: socket.socket
    target: socket.socket
    waiting: bytearray = field(default_factory=bytearray)
    ended: bool = False
    """The source has said its last."""
    paid: float = 0.0
    """Monotonic time up to which a slow stream has used its share."""


@dataclass(eq=False)
class _Link:
    near: socket.socket
    far: socket.socket
    requests: _Stream
    answers: _Stream
    torn: bool = False
    """Bytes of it have vanished: nothing that comes after them would make sense."""
    alone: bool = False
    """It was opened while nobody could be reached: there is no server at its other end."""


class Proxy:
    """Listens at `port` on 127.0.0.1 and passes on to `target` (host, port) what comes, as it is told:

    - `pass_through()`: as a network that works. What `stall` held is delivered now, late; a connection of which bytes
      have vanished is reset, since nobody could make sense of the rest.
    - `drop()`: connections end cleanly, new ones are accepted and ended.
    - `reset()`: connections are reset, new ones are accepted and reset.
    - `black_hole()`: bytes vanish both ways, closing and opening included; connections stay. The kernel goes on
      answering keep-alives for the proxy, as that of a balancer would, so only whoever looks at the clock notices.
    - `stall()`: the same, but nothing is lost: what was sent arrives when the network works again. (Connections that
      were opened meanwhile are reset then.)
    - `half_open(lost="answers")`: what the server says is lost, what it is told arrives; or `"requests"`.
    - `slow(bytes_per_s)`: each connection passes no more than that, each way.

    One thread; from any other thread the methods return when what they say is in force."""

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]
        self.accepted = 0
        """How many connections were made, from the start."""
        self._links: list[_Link] = []
        self._way = _Way.PASS
        self._rate: float | None = None
        self._poke, self._poked = socket.socketpair()
        self._poked.setblocking(False)
        self._orders: list[tuple[Callable[[], None], threading.Event]] = []
        self._guard = threading.Lock()
        self._closing = False
        self._thread = threading.Thread(target=self._serve, name=f"proxy {self.port}", daemon=True)
        self._thread.start()

    def pass_through(self) -> None:
        self._order(lambda: self._turn(_Way.PASS))

    def drop(self) -> None:
        self._order(lambda: self._turn(_Way.DROP))

    def reset(self) -> None:
        self._order(lambda: self._turn(_Way.RESET))

    def black_hole(self) -> None:
        self._order(lambda: self._turn(_Way.VANISH))

    def stall(self) -> None:
        self._order(lambda: self._turn(_Way.HOLD))

    def half_open(self, lost: str = "answers") -> None:
        ways = {"answers": _Way.NO_ANSWERS, "requests": _Way.NO_REQUESTS}
        way = ways[lost]
        self._order(lambda: self._turn(way))

    def slow(self, bytes_per_s: float) -> None:
        self._order(lambda: self._turn(_Way.PASS, bytes_per_s))

    @property
    def connections(self) -> int:
        """How many there are at present."""
        return len(self._links)

    def close(self) -> None:
        """Ends everything; the port is free afterwards."""
        if not self._thread.is_alive():
            return

        def end() -> None:
            self._closing = True

        self._order(end)
        self._thread.join()
        for link in list(self._links):
            self._end(link, hard=True)
        for one in (self._listener, self._poke, self._poked):
            one.close()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    # ------------------------------------------------------------ the thread

    def _order(self, what: Callable[[], None]) -> None:
        done = threading.Event()
        with self._guard:
            self._orders.append((what, done))
        self._poke.send(b".")
        assert done.wait(10), "the proxy does not answer"

    def _turn(self, way: _Way, rate: float | None = None) -> None:
        self._way, self._rate = way, rate
        for link in list(self._links):
            if way in (_Way.DROP, _Way.RESET) or (way is _Way.PASS and link.torn):
                self._end(link, hard=way is not _Way.DROP)

    def _serve(self) -> None:
        while not self._closing:
            with selectors.DefaultSelector() as selector:
                selector.register(self._poked, selectors.EVENT_READ)
                selector.register(self._listener, selectors.EVENT_READ)
                readable, writable, wait = self._interests()
                for one in readable | writable:
                    events = (selectors.EVENT_READ if one in readable else 0) | (
                        selectors.EVENT_WRITE if one in writable else 0
                    )
                    selector.register(one, events)
                ready = selector.select(wait)
            self._obey()
            if any(key.fileobj is self._listener for key, _ in ready):
                self._accept()
            for link in list(self._links):
                self._move(link)

    def _obey(self) -> None:
        with suppress(BlockingIOError):
            self._poked.recv(CHUNK)
        with self._guard:
            orders, self._orders = self._orders, []
        for what, done in orders:
            what()
            done.set()

    def _interests(self) -> tuple[set[socket.socket], set[socket.socket], float | None]:
        """Whom to wait for to read, to write, and for how long at most."""
        readable: set[socket.socket] = set()
        writable: set[socket.socket] = set()
        wait = None
        for link in self._links:
            for stream in (link.requests, link.answers):
                if not stream.ended and len(stream.waiting) < FULL:
                    readable.add(stream.source)
                if stream.waiting and self._passes(link, stream):
                    if self._rate is None:
                        writable.add(stream.target)
                    else:
                        wait = PACE
        return readable, writable, wait

    def _passes(self, link: _Link, stream: _Stream) -> bool:
        if self._way is _Way.NO_ANSWERS:
            return stream is link.requests
        if self._way is _Way.NO_REQUESTS:
            return stream is link.answers
        return self._way is _Way.PASS

    def _accept(self) -> None:
        with suppress(BlockingIOError):
            while True:
                near, _ = self._listener.accept()
                self.accepted += 1
                if self._way in (_Way.DROP, _Way.RESET):
                    _close(near, hard=self._way is _Way.RESET)
                    continue
                far = socket.socket()
                unreachable = self._way in (_Way.VANISH, _Way.HOLD, _Way.NO_REQUESTS)
                if not unreachable:
                    try:
                        far.settimeout(2)
                        far.connect(self._target)
                    except OSError:
                        far.close()
                        _close(near, hard=True)
                        continue
                for one in (near, far):
                    one.setblocking(False)
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                link = _Link(near, far, _Stream(near, far), _Stream(far, near))
                link.alone = link.torn = link.answers.ended = unreachable
                self._links.append(link)

    def _move(self, link: _Link) -> None:
        try:
            for stream in (link.requests, link.answers):
                self._read(link, stream)
                if self._passes(link, stream):
                    self._write(stream)
        except OSError:
            # Whoever reset it: the other side hears of it only through a network that works.
            if self._way is _Way.PASS:
                self._end(link, hard=True)
            else:
                link.torn = link.requests.ended = link.answers.ended = True
            return
        if link.alone:
            return
        if any(one.ended and not one.waiting and self._passes(link, one) for one in (link.requests, link.answers)):
            self._end(link, hard=False)

    def _read(self, link: _Link, stream: _Stream) -> None:
        lost = not self._passes(link, stream) and self._way is not _Way.HOLD
        with suppress(BlockingIOError):
            while not stream.ended and len(stream.waiting) < FULL:
                data = stream.source.recv(CHUNK)
                if not data:
                    stream.ended = True
                elif lost:
                    link.torn = True
                else:
                    stream.waiting += data

    def _write(self, stream: _Stream) -> None:
        room = len(stream.waiting)
        if self._rate is not None:
            now = time.monotonic()
            stream.paid = max(stream.paid, now - 2 * PACE)
            room = min(room, int((now - stream.paid) * self._rate))
            stream.paid += room / self._rate
        if room:
            with suppress(BlockingIOError):
                sent = stream.target.send(stream.waiting[:room])
                del stream.waiting[:sent]

    def _end(self, link: _Link, *, hard: bool) -> None:
        self._links.remove(link)
        for one in (link.near, link.far):
            _close(one, hard=hard)


def _close(end: socket.socket, *, hard: bool) -> None:
    with suppress(OSError):
        if hard:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        else:
            end.shutdown(socket.SHUT_RDWR)
    end.close()
