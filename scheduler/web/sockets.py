"""Listening sockets: a TCP address, and a Unix socket whose mode is its lock."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
from pathlib import Path

from scheduler.core.errors import StartError

SOCKET_MODE = 0o660
BACKLOG = 512
"""Connections that wait to be accepted."""
LONGEST_PATH = 107
"""Bytes that the kernel takes as the path of a Unix socket."""
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


def is_local(host: str) -> bool:
    """Whether only processes of this machine reach that address."""
    return host in _LOOPBACK


def bind_tcp(host: str, port: int, setting: str = "SCHEDULER_LISTEN") -> socket.socket:
    """A listening socket. StartError with the address and the remedy, which is to change `setting`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        bound = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error.strerror)
        raise StartError(f"cannot listen on {host}:{port}: {reason}", hint=_remedy(error, setting)) from None
    # Connections inherit it. asyncio sets it only where a socket was made with the number of the protocol, and without
    # it each answer waits 40 ms for the other end to acknowledge its head.
    bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return bound


def _remedy(error: OSError, setting: str) -> str:
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        return f"write an address of this machine into {setting}; 0.0.0.0 stands for all of them"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"choose a port from 1024 on with {setting}, or let this user open lower ones"
    return f"choose another port with {setting}, or stop what holds it"


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
        bound.listen(BACKLOG)
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
