"""Messages between daemon and supervisor: one JSON object per packet, descriptors beside it.

The socket is a SOCK_SEQPACKET pair: packets keep their bounds, and the end of the peer is an empty read.

    daemon → supervisor   hello{node, state_dir, cgroup}  trust{node, term_at, kill_at}  ping{n}
                          start{run, attempt, node, argv, cwd, env, kill_after, leftovers, user, limits, fds, near}
                          end{run, why, kill_after}  signal{run, signal}  settled{run, attempt}
    supervisor → daemon   ready{pid}  pong{n}
                          failed{run, attempt, stage, errno, what}
                          exited{run, attempt, node, code, signal, why, left, usage, ended_at, began, ended}

`term_at`, `kill_at`, `began` and `ended` are seconds of CLOCK_BOOTTIME, the first two null while the socket
itself is the trust. `near` is the file to be executed if nobody has to wait for its disk, else null. `fds` names
the descriptors that travel with a start, in order, out of `stdin output channel`. Durations are seconds.
"""

from __future__ import annotations

import array
import json
import mmap
import socket
from collections.abc import Iterable, Mapping
from typing import Any

BUFFER = 4 * 1024 * 1024
MOST_FDS = 3

Message = dict[str, Any]

_SO_SNDBUFFORCE = 32
_CONTROL = socket.CMSG_SPACE(MOST_FDS * 4)


class Broken(Exception):
    """The peer is gone or does not speak this protocol."""


def widen(sock: socket.socket) -> int:
    """Raise the send buffer as far as the system lets us; the longest packet in bytes that then always
    fits.
    """
    try:
        sock.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, BUFFER)
    except PermissionError:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
    # The kernel counts its own bookkeeping against the buffer, so half of it is what a packet may have.
    return min(BUFFER, sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) // 2)


def buffer() -> mmap.mmap:
    """Room for the longest packet; memory is used only as far as packets have reached."""
    return mmap.mmap(-1, BUFFER)


def encode(message: Mapping[str, Any]) -> bytes:
    """ASCII JSON; lone surrogates (undecodable bytes of file names) survive the way there and back."""
    return json.dumps(message, separators=(",", ":")).encode("ascii")


def send(sock: socket.socket, packet: bytes, fds: Iterable[int] = ()) -> None:
    """One packet; raises what `sendmsg` raises (BlockingIOError when the buffer is full)."""
    numbers = array.array("i", fds)
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, numbers)] if numbers else []
    sock.sendmsg([packet], rights, socket.MSG_NOSIGNAL)


def receive(sock: socket.socket, buffer: mmap.mmap) -> tuple[Message, list[int]] | None:
    """The next packet and its close-on-exec descriptors; None at the end of the peer.

    Fewer descriptors than the message names arrive when this process has no room for more.
    """
    size, controls, _flags, _address = sock.recvmsg_into([buffer], _CONTROL, socket.MSG_CMSG_CLOEXEC)
    if size == 0:
        return None
    fds = array.array("i")
    for level, kind, data in controls:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
    try:
        message = json.loads(buffer[:size])
    except ValueError as error:
        raise Broken(f"not a message: {error}") from None
    if not isinstance(message, dict):
        raise Broken("not a message: no JSON object")
    return message, list(fds)
