"""The daemon's ends of all worker channels, served by one thread."""

from __future__ import annotations

import contextlib
import logging
import selectors
import socket
import threading
import time
from collections.abc import Callable

from scheduler.executors.workers.wire import Broken, Message, Unpacker, pack

_log = logging.getLogger(__name__)

_CHUNK = 256 * 1024


class Channel:
    """One worker's end. `send` and `close` may be called from any thread and never block."""

    def __init__(
        self, loop: Channels, sock: socket.socket, heard: Callable[[Message], None], closed: Callable[[], None]
    ) -> None:
        self.sock = sock
        self.heard = heard
        self.closed = closed
        self._loop = loop
        self._lock = threading.Lock()
        self._out = bytearray()
        self._unpacker = Unpacker()
        self._open = True

    def send(self, message: Message) -> None:
        """Sent as soon as the worker reads; to a closed channel nothing is sent (its end is told by `closed`)."""
        data = pack(message)
        with self._lock:
            if not self._open:
                return
            waiting = bool(self._out)
            self._out += data
            if not waiting:
                self._write()
            if self._out and not waiting:
                self._loop.wake(self)

    def close(self) -> None:
        """No further messages either way; the worker sees the end of its channel."""
        with self._lock:
            if self._open:
                self._open = False
                with contextlib.suppress(OSError):
                    self.sock.shutdown(socket.SHUT_RDWR)

    def ready(self, events: int) -> bool:
        """Called by the loop; False when the channel is over."""
        if events & selectors.EVENT_WRITE:
            with self._lock:
                self._write()
        if events & selectors.EVENT_READ:
            try:
                piece = self.sock.recv(_CHUNK)
                messages = list(self._unpacker.feed(piece))
            except BlockingIOError:
                return True
            except (OSError, Broken, ValueError):
                return False
            for message in messages:
                self._hear(message)
            return bool(piece)
        return True

    def _hear(self, message: Message) -> None:
        """What goes wrong with one of them is not for the others to pay, nor for the channel."""
        try:
            self.heard(message)
        except Exception:
            _log.exception("a message of a worker could not be handled")

    @property
    def wants(self) -> int:
        return selectors.EVENT_READ | (selectors.EVENT_WRITE if self._out else 0)

    def _write(self) -> None:
        try:
            while self._out:
                del self._out[: self.sock.send(self._out)]
        except BlockingIOError:
            pass
        except OSError:
            # The reading side will find the end of the channel.
            self._out.clear()


class Channels:
    """`heard` and `closed` of every channel are called from the one thread of this object; they must not block."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._woken, self._waker = socket.socketpair()
        self._woken.setblocking(False)
        self._waker.setblocking(False)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._lock = threading.Lock()
        self._fresh: list[Channel] = []
        self._thread: threading.Thread | None = None
        self._stopping = False
        self._calls: list[tuple[float, Callable[[], None]]] = []

    def attach(self, sock: socket.socket, heard: Callable[[Message], None], closed: Callable[[], None]) -> Channel:
        """Serve this end of a channel; it belongs to the channel from now on."""
        sock.setblocking(False)
        channel = Channel(self, sock, heard, closed)
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="worker-channels", daemon=True)
                self._thread.start()
        self.wake(channel)
        return channel

    def wake(self, channel: Channel) -> None:
        """Look again at what this channel waits for."""
        with self._lock:
            self._fresh.append(channel)
        self._nudge()

    def call_later(self, seconds: float, call: Callable[[], None]) -> None:
        """In the thread of this object, like everything that is heard; not any more once it is closed."""
        with self._lock:
            self._calls.append((time.monotonic() + seconds, call))
        self._nudge()

    def close(self) -> None:
        """Stop serving and close every channel's socket; once is enough."""
        if self._stopping:
            return
        self._stopping = True
        self._nudge()
        if self._thread is not None:
            self._thread.join()
        for key in list(self._selector.get_map().values()):
            if isinstance(key.data, Channel):
                key.data.sock.close()
        with self._lock:
            for channel in self._fresh:
                channel.sock.close()
        self._selector.close()
        self._woken.close()
        self._waker.close()

    def _nudge(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._waker.send(b"!")

    def _serve(self) -> None:
        while not self._stopping:
            for key, events in self._selector.select(self._patience()):
                if key.data is None:
                    self._drain()
                else:
                    self._serve_one(key.data, events)
            self._call()
            with self._lock:
                fresh, self._fresh = self._fresh, []
            for channel in fresh:
                self._look(channel)

    def _patience(self) -> float | None:
        with self._lock:
            return max(0.0, min(at for at, _ in self._calls) - time.monotonic()) if self._calls else None

    def _call(self) -> None:
        now = time.monotonic()
        with self._lock:
            due = [call for at, call in self._calls if at <= now]
            self._calls = [(at, call) for at, call in self._calls if at > now]
        for call in due:
            try:
                call()
            except Exception:
                _log.exception("what was due could not be done")

    def _serve_one(self, channel: Channel, events: int) -> None:
        if channel.ready(events):
            if events & selectors.EVENT_WRITE:
                self._look(channel)
            return
        self._selector.unregister(channel.sock)
        channel.close()
        channel.sock.close()
        try:
            channel.closed()
        except Exception:
            _log.exception("the end of a worker could not be handled")

    def _look(self, channel: Channel) -> None:
        if channel.sock.fileno() < 0:
            return
        if channel.sock in self._selector.get_map():
            self._selector.modify(channel.sock, channel.wants, channel)
        else:
            self._selector.register(channel.sock, channel.wants, channel)

    def _drain(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._woken.recv(4096):
                pass
