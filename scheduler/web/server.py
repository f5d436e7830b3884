"""The server: one thread, one event loop, a TCP address and a Unix socket."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pwd
import socket
import stat
import struct
import threading
from pathlib import Path
from typing import cast

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from scheduler.core.errors import StartError

SOCKET_MODE = 0o660
LONGEST_PATH = 107
"""Bytes that the kernel takes as the path of a Unix socket."""
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_CREDENTIALS = struct.Struct("3i")


class WebServer:
    """Serves until `stop`. The sockets are bound by `open`, so that what is wrong with them is said at start; clients
    that come before `start` wait in the backlog. No signal handler is touched."""

    def __init__(
        self, reading: ASGIApp, acting: ASGIApp, listen: tuple[str, int] | None, path: Path, grace: float = 5.0
    ) -> None:
        """`reading` is served on `listen` (None: nowhere), `acting` on the Unix socket at `path`. `grace`: seconds that
        requests under way get at the end."""
        self._reading = reading
        self._acting = acting
        self._listen = listen
        self._path = path
        self._grace = grace
        self._sockets: list[tuple[ASGIApp, socket.socket]] = []
        self._servers: list[uvicorn.Server] = []
        self._inode = 0
        self._thread: threading.Thread | None = None
        self.address: tuple[str, int] | None = None
        """Where TCP is served, with the port that was chosen for port 0."""

    def open(self) -> None:
        """Binds both sockets. Raises StartError with the address and the remedy."""
        try:
            if self._listen is not None:
                tcp = bind_tcp(*self._listen)
                self._sockets.append((self._reading, tcp))
                self.address = tcp.getsockname()[:2]
            self._sockets.append((self._acting, bind_unix(self._path)))
            self._inode = self._path.stat().st_ino
        except BaseException:
            for _, bound in self._sockets:
                bound.close()
            self._sockets.clear()
            raise

    def start(self) -> None:
        """Begins to answer, in a thread."""
        for app, _ in self._sockets:
            config = uvicorn.Config(
                app,
                http=PeerProtocol,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=max(1, round(self._grace)),
            )
            self._servers.append(uvicorn.Server(config))
        self._thread = threading.Thread(target=self._serve, name="web", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Takes no further connection, lets requests under way finish (`grace`), removes the socket's file if it is
        still this server's."""
        for server in self._servers:
            server.should_exit = True
        if self._thread is not None:
            self._thread.join(self._grace + 5)
        for _, bound in self._sockets:
            bound.close()
        with contextlib.suppress(OSError):
            if self._inode and self._path.stat().st_ino == self._inode:
                self._path.unlink()

    def _serve(self) -> None:
        async def serve() -> None:
            pairs = zip(self._servers, self._sockets, strict=True)
            await asyncio.gather(*(server.serve(sockets=[bound]) for server, (_, bound) in pairs))

        asyncio.run(serve())


class PeerProtocol(H11Protocol):
    """Notes who is at the other end of a Unix socket, as the kernel knows it."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        bound = transport.get_extra_info("socket")
        if bound is not None and bound.family == socket.AF_UNIX:
            self.client = (peer_name(cast(socket.socket, bound)), 0)


def peer_name(bound: socket.socket) -> str:
    """The user at the other end of a connected Unix socket; `somebody` where the kernel does not say."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return "somebody"
    _, uid, _ = _CREDENTIALS.unpack(bound.getsockopt(socket.SOL_SOCKET, option, _CREDENTIALS.size))
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def bind_tcp(host: str, port: int) -> socket.socket:
    """A listening socket. Other addresses than this machine's own loopback are refused: nothing protects them yet."""
    if host not in _LOOPBACK:
        raise StartError(
            f"listening on {host} is refused: whoever reaches it could read everything",
            hint="listen on 127.0.0.1 (SCHEDULER_LISTEN) and put a reverse proxy with a login before it",
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=512)
    except OSError as error:
        raise StartError(
            f"cannot listen on {host}:{port}: {error.strerror}",
            hint="choose another port with SCHEDULER_LISTEN, or stop what holds it",
        ) from None


def bind_unix(path: Path) -> socket.socket:
    """A listening socket of mode 0660 at `path`; one that nobody serves any more is replaced, in one step."""
    place = os.fsencode(path)
    if len(place) + 4 > LONGEST_PATH:
        raise StartError(
            f"the socket's path {path} has {len(place)} bytes, the system takes {LONGEST_PATH - 4}",
            hint="set SCHEDULER_SOCKET to a shorter path",
        )
    _check_place(path)
    fresh = path.with_name(path.name + ".new")
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        fresh.unlink(missing_ok=True)
        bound.bind(os.fspath(fresh))
        fresh.chmod(SOCKET_MODE)
        bound.listen(512)
        fresh.rename(path)
    except OSError as error:
        bound.close()
        raise StartError(
            f"cannot make the socket {path}: {error.strerror}", hint="set SCHEDULER_SOCKET to a directory of yours"
        ) from None
    return bound


def _check_place(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except OSError:
        return
    if not stat.S_ISSOCK(mode):
        raise StartError(f"{path} exists and is no socket", hint="remove it, or set SCHEDULER_SOCKET")
    probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with contextlib.closing(probe):
        try:
            probe.connect(os.fspath(path))
        except OSError:
            return
    raise StartError(f"another daemon serves {path}", hint="stop it, or set SCHEDULER_SOCKET")
