"""The journal of systemd in its own protocol (https://systemd.io/JOURNAL_NATIVE_PROTOCOL/): each value of a line
becomes a field that `journalctl JOB_NAME=…` finds, instead of text."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import socket
import struct
from collections.abc import Mapping, MutableMapping
from typing import Any, TextIO

SOCKET = "/run/systemd/journal/socket"
PRIORITIES = {"critical": 2, "error": 3, "warning": 4, "info": 6, "debug": 7}
IDENTIFIER = "schedulerd"
PATIENCE = 1.0
"""Seconds that a line may wait for a journal that does not read."""

_APART = frozenset({"timestamp", "level", "event", "exception"})


def goes_to_journal(environ: Mapping[str, str], stream: TextIO) -> bool:
    """Whether what is written there lands in the journal anyway, as JOURNAL_STREAM says (systemd.exec(5))."""
    try:
        about = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return environ.get("JOURNAL_STREAM") == f"{about.st_dev}:{about.st_ino}"


def to_fields(logger: Any, method: str, event: MutableMapping[str, Any]) -> bytes:
    """A processor of structlog: the last one. MESSAGE is for people, PRIORITY as syslog has it; every other value has
    its own field, in capitals."""
    level = str(event.get("level", method))
    more = {name: value for name, value in event.items() if name not in _APART}
    words = [str(event.get("event", "")), *(f"{name}={_text(value)}" for name, value in more.items())]
    message = " ".join(words)
    if "exception" in event:
        message += f"\n{event['exception']}"
    fields = {
        "MESSAGE": message,
        "PRIORITY": str(PRIORITIES.get(level, 5)),
        "SYSLOG_IDENTIFIER": IDENTIFIER,
        "EVENT": str(event.get("event", "")),
        **{_name(name): _text(value) for name, value in more.items()},
    }
    return b"".join(_field(name, value) for name, value in fields.items())


class Journal:
    """Sends lines to SOCKET; one that cannot be sent is written to `fallback`, which lands in the journal as text."""

    def __init__(self, fallback: TextIO) -> None:
        self._fallback = fallback
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.settimeout(PATIENCE)

    def send(self, fields: bytes) -> None:
        try:
            self._socket.sendto(fields, SOCKET)
        except OSError:
            message = fields.split(b"\n", 1)[0].removeprefix(b"MESSAGE=")
            if message == b"MESSAGE":  # Of several lines: its length, then they.
                (length,) = struct.unpack_from("<Q", fields, len(b"MESSAGE\n"))
                message = fields[len(b"MESSAGE\n") + 8 :][:length]
            self._fallback.write(message.decode("utf-8", "replace") + "\n")
            self._fallback.flush()

    debug = info = warning = error = critical = msg = send

    def close(self) -> None:
        self._socket.close()


def as_text(logger: Any, method: str, fields: bytes) -> str:
    """For the machinery of `logging`, which takes texts only; JournalHandler makes bytes of it again."""
    return fields.decode("latin-1")


class JournalHandler(logging.Handler):
    """The lines of libraries that use `logging`; its formatter must give `as_text`."""

    def __init__(self, journal: Journal) -> None:
        super().__init__()
        self.journal = journal

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(Exception):
            self.journal.send(self.format(record).encode("latin-1"))


def _name(name: str) -> str:
    """As the journal takes names: at most 64 capitals, digits and underscores, a letter first."""
    return re.sub(r"[^A-Z0-9_]", "_", name.upper()).lstrip("_0123456789")[:64] or "FIELD"


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, default=str, ensure_ascii=False)


def _field(name: str, value: str) -> bytes:
    data = value.encode("utf-8", "replace")
    if b"\n" in data:
        return name.encode() + b"\n" + struct.pack("<Q", len(data)) + data + b"\n"
    return name.encode() + b"=" + data + b"\n"
