"""The server: TCP addresses and a Unix socket, each with a thread, an event loop and places of its own.

So whatever strangers do on TCP, `schedctl` on the socket waits neither for their connections nor for their requests.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

import uvicorn
from anyio import to_thread
from starlette.types import ASGIApp

from scheduler.core.value_object import value_object
from scheduler.web.connection import KEEP_ALIVE_SECONDS, Connection
from scheduler.web.door import Door, places_for
from scheduler.web.event_loop import new_event_loop
from scheduler.web.sockets import BACKLOG, bind_tcp, bind_unix

THREADS = {"tcp": 3, "socket": 6, "webhooks": 1}
"""Requests of each address that may use the database at once; the loops of the engine must always find a connection."""


class Server(uvicorn.Server):
    """Is told when to end, instead of looking ten times a second, which an idle daemon would pay for."""

    def __init__(self, config: uvicorn.Config, door: Door) -> None:
        super().__init__(config)
        self._door = door
        self._over = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.ready: Callable[[], None] = lambda: None

    async def main_loop(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.ready()
        while not await self.on_tick(0):  # Sets the Date of answers.
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._over.wait(), timeout=1.0)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Lets requests under way finish, in the time they are given. When it returns nobody is connected any more:
        under a connection its loop cannot be closed."""
        self._door.close()
        await super().shutdown(sockets)
        while self.server_state.connections:
            for one in list(self.server_state.connections):
                cast(Connection, one).end()
            await asyncio.sleep(0)

    def end(self) -> None:
        """From any thread."""
        self.should_exit = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._over.set)


@value_object
class _Face:
    """One address: what is served there, and by what."""

    name: str
    app: ASGIApp
    bound: socket.socket
    door: Door
    server: Server


class WebServer:
    """Serves until `stop`. The sockets are bound by `open`, so that what is wrong with them is said at start; clients
    that come before `start` wait in the backlog. No signal handler is touched."""

    def __init__(
        self,
        reading: ASGIApp,
        acting: ASGIApp,
        listen: tuple[str, int] | None,
        path: Path,
        grace: float = 5.0,
        *,
        receiving: ASGIApp | None = None,
        webhook_listen: tuple[str, int] | None = None,
    ) -> None:
        """`reading` is served on `listen` (None: nowhere), `acting` on the Unix socket at `path`, `receiving` on
        `webhook_listen`. `grace`: seconds that requests under way get at the end."""
        self._reading = reading
        self._acting = acting
        self._listen = listen
        self._path = path
        self._grace = grace
        self._receiving = receiving
        self._webhook_listen = webhook_listen
        self._faces: list[_Face] = []
        self._threads: list[threading.Thread] = []
        self._inode = 0
        self.address: tuple[str, int] | None = None
        """Where TCP is served, with the port that was chosen for port 0."""
        self.webhook_address: tuple[str, int] | None = None
        """Where webhooks alone are served."""

    def open(self) -> None:
        """Binds the sockets. Raises StartError with the address and the remedy."""
        try:
            if self._listen is not None:
                tcp = bind_tcp(*self._listen)
                self._faces.append(self._face("tcp", self._reading, tcp))
                self.address = tcp.getsockname()[:2]
            if self._webhook_listen is not None and self._receiving is not None:
                tcp = bind_tcp(*self._webhook_listen, setting="SCHEDULER_WEBHOOK_LISTEN")
                self._faces.append(self._face("webhooks", self._receiving, tcp))
                self.webhook_address = tcp.getsockname()[:2]
            self._faces.append(self._face("socket", self._acting, bind_unix(self._path)))
            self._inode = self._path.stat().st_ino
        except BaseException:
            self._close()
            raise

    def start(self) -> None:
        """Begins to answer, in threads."""
        # What uvicorn tells is about single requests of strangers; what counts is told by the door and the guard.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL + 1)
        for face in self._faces:
            thread = threading.Thread(target=_serve, args=(face,), name=f"web-{face.name}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """Takes no further connection, lets requests under way finish (`grace`), removes the socket's file if it is
        still this server's."""
        for face in self._faces:
            face.server.end()
        for thread in self._threads:
            thread.join(self._grace + 5)
        self._close()
        with contextlib.suppress(OSError):
            if self._inode and self._path.stat().st_ino == self._inode:
                self._path.unlink()
        self._inode = 0

    def _close(self) -> None:
        for face in self._faces:
            face.bound.close()
        self._faces.clear()

    def _face(self, name: str, app: ASGIApp, bound: socket.socket) -> _Face:
        door = Door(name, places_for())
        config = uvicorn.Config(
            app,
            http=cast(Any, partial(Connection, door)),
            loop="asyncio",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            headers=[("server", "schedulerd"), ("cache-control", "no-store"), ("x-content-type-options", "nosniff")],
            proxy_headers=False,
            # asyncio accepts so many at once: fewer than there are places, or newcomers would drive each other out
            # before a byte of them was read.
            backlog=max(1, door.places // 4),
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=max(1, round(self._grace)),
        )
        return _Face(name, app, bound, door, Server(config, door))


def _serve(face: _Face) -> None:
    async def serve() -> None:
        to_thread.current_default_thread_limiter().total_tokens = THREADS[face.name]
        watch = asyncio.create_task(face.door.watch())
        # asyncio lets as many wait in the kernel as it accepts at once; who connects to a Unix socket with a time limit
        # would be refused where more could have waited.
        face.server.ready = lambda: face.bound.listen(BACKLOG)
        try:
            await face.server.serve(sockets=[face.bound])
        finally:
            watch.cancel()

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(serve())
