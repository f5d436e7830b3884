"""Where the daemon is, and a connection to it: its Unix socket on this machine, or an address with a token."""

from __future__ import annotations

import errno
import http.client
import os
import socket
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from scheduler.core.errors import InvalidInput, Unavailable

SOCKET_NAME = "schedctl.sock"
SERVER = "schedulerd"
"""What a daemon's answers say about who gives them."""
LONGEST_PATH = 107
"""Bytes that the kernel takes as the path of a Unix socket (unix(7))."""
PATIENCE = 30.0
"""Seconds to wait for a connection, at most."""


class Line(Protocol):
    """A way to a daemon. `place` names it, `prefix` stands before each path, `headers` go with each request."""

    place: str
    prefix: str
    headers: Mapping[str, str]

    def connection(self, timeout: float) -> http.client.HTTPConnection:
        """Connected; `timeout` in seconds for each answer. Raises Unavailable, saying where it was looked."""
        ...

    def is_ours(self, headers: http.client.HTTPMessage) -> bool:
        """Whether an answer with these headers comes from a daemon, as far as they tell."""
        ...


def dial(socket_path: str | None, environ: Mapping[str, str]) -> Line:
    """`socket_path`, else SCHEDCTL_URL, else the places of sockets."""
    url = environ.get("SCHEDCTL_URL")
    if url and not socket_path:
        return Remote(url, environ.get("SCHEDCTL_TOKEN_FILE"))
    return Sockets(socket_path, environ)


class Sockets:
    """The first place that answers is kept for further requests."""

    prefix = ""
    headers: Mapping[str, str] = {}

    def __init__(self, given: str | None, environ: Mapping[str, str]) -> None:
        self._places = places(given, environ)
        self.place = self._places[0]

    def connection(self, timeout: float) -> http.client.HTTPConnection:
        looked = []
        for place in self._places:
            connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            connected.settimeout(min(PATIENCE, timeout))
            try:
                connected.connect(place)
            except (OSError, ValueError) as error:
                connected.close()
                looked.append(f"  {place}: {_why(place, error)}")
                continue
            self.place, self._places = place, [place]
            return _UnixConnection(connected, timeout)
        raise Unavailable(
            "no daemon can be reached; looked at\n" + "\n".join(looked),
            hint="start it (schedulerd), or say where it is with --socket or SCHEDULER_SOCKET",
        )

    def is_ours(self, headers: http.client.HTTPMessage) -> bool:
        return headers.get("Server") == SERVER


class Remote:
    """A daemon's TCP address, or that of a proxy before it. InvalidInput for an address or a token file that cannot be
    used."""

    def __init__(self, url: str, token_file: str | None) -> None:
        parts = urlsplit(url)
        try:
            port = parts.port
        except ValueError:
            port = -1
        if parts.scheme not in ("http", "https") or not parts.hostname or port == -1 or parts.query or parts.fragment:
            shown = url.rpartition("@")[2][:100]
            raise InvalidInput(
                f"SCHEDCTL_URL is no address: {shown}", hint="write https://host or http://127.0.0.1:8780"
            )
        self._secure, self._host, self._port = parts.scheme == "https", parts.hostname, port
        self.place = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"
        self.prefix = parts.path.rstrip("/")
        self.headers: Mapping[str, str] = {"Authorization": f"Bearer {_token(token_file)}"}

    def connection(self, timeout: float) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        connection = kind(self._host, self._port, timeout=min(PATIENCE, timeout))
        try:
            connection.connect()
        except OSError as error:
            raise Unavailable(
                f"{self.place} cannot be reached: {error.strerror or error}", hint="is SCHEDCTL_URL right?"
            ) from None
        connection.sock.settimeout(timeout)
        return connection

    def is_ours(self, headers: http.client.HTTPMessage) -> bool:
        """A proxy puts its own name there."""
        return True


def _token(file: str | None) -> str:
    if not file:
        raise InvalidInput(
            "SCHEDCTL_URL needs SCHEDCTL_TOKEN_FILE, a file that holds a token",
            hint="on the daemon's machine: schedctl token create NAME --role operate",
        )
    try:
        token = Path(file).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise InvalidInput(f"SCHEDCTL_TOKEN_FILE: cannot read {file}: {why}") from None
    if not token.isascii() or not token.isprintable() or not token or " " in token:
        raise InvalidInput(f"SCHEDCTL_TOKEN_FILE: {file} does not hold one token")
    return token


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, connected: socket.socket, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        connected.settimeout(timeout)
        self.sock = connected

    def connect(self) -> None:
        """It is connected already."""


def places(given: str | None, environ: Mapping[str, str]) -> list[str]:
    """Where a daemon's socket may be, in the order in which they are tried. A place that was named is the only one."""
    named = given or environ.get("SCHEDULER_SOCKET")
    if named:
        return [named]
    state = environ.get("XDG_STATE_HOME") or os.path.join(environ.get("HOME", str(Path.home())), ".local", "state")
    folders = ["var", "/run/schedulerd", "/var/lib/schedulerd", os.path.join(state, "schedulerd")]
    return [os.path.join(folder, SOCKET_NAME) for folder in folders]


def _why(place: str, error: OSError | ValueError) -> str:
    if len(os.fsencode(place)) > LONGEST_PATH:
        return f"the path has {len(os.fsencode(place))} bytes, a socket's has at most {LONGEST_PATH}"
    if not isinstance(error, OSError):
        return str(error)
    if error.errno == errno.ENOENT:
        return "no socket there"
    if error.errno == errno.ECONNREFUSED:
        return "a socket, but nobody serves it" if _is_socket(place) else "that is no socket"
    if error.errno in (errno.EACCES, errno.EPERM):
        return "permission denied: you are not in the group that owns it"
    if error.errno == errno.EAGAIN:
        return "too many others wait for it"
    return error.strerror or str(error)


def _is_socket(place: str) -> bool:
    try:
        return stat.S_ISSOCK(os.stat(place).st_mode)
    except OSError:
        return False
