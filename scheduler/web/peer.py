"""Who is at the other end of a Unix socket, as the kernel knows it."""

from __future__ import annotations

import pwd
import socket
import struct

_CREDENTIALS = struct.Struct("3i")


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
