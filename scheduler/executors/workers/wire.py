"""Messages between daemon and worker over a stream socket: four bytes of length, big-endian, then a JSON object."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any

Message = dict[str, Any]

READY: Message = {"ready": True}
"""The first that a worker says: from now on it serves."""
CHANNEL_FD = 3
"""The descriptor under which a worker finds its end."""
BEREFT = 113
"""With this code a worker exits that cannot answer any more, because its run closed what it answers over."""
CLOSED_OURS = "it closed file descriptors that it had not opened, among them the one over which it answers"
"""What the code of a run did, in words."""
LONGEST = 256 * 1024 * 1024
_LENGTH = struct.Struct(">I")


_encode = json.JSONEncoder(separators=(",", ":")).encode
_encode_strictly = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


class Broken(Exception):
    """The peer does not speak this protocol."""


def no_room(error: OSError) -> Message:
    """What a worker answers instead of beginning, because the disk takes no files."""
    return {"disk": [error.errno, error.filename]}


def pack(message: Message, *, strict: bool = False) -> bytes:
    """One message; lone surrogates (bytes of the environment that are no UTF-8) survive the way. What is no JSON raises
    as `json.dumps` does; NaN and the like do so too if it is `strict`."""
    data = (_encode_strictly if strict else _encode)(message).encode("ascii")
    return _LENGTH.pack(len(data)) + data


class Unpacker:
    """Makes messages of whatever pieces arrive."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, piece: bytes) -> Iterator[Message]:
        """Every message that is complete with this piece; Broken for what cannot be one."""
        self._data += piece
        while len(self._data) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._data)
            if length > LONGEST:
                raise Broken(f"a message of {length} bytes")
            end = _LENGTH.size + length
            if len(self._data) < end:
                return
            data = bytes(self._data[_LENGTH.size : end])
            del self._data[:end]
            yield json.loads(data)
