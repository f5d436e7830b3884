"""The daemon as schedctl sees it: HTTP over its Unix socket."""

from __future__ import annotations

import errno
import http.client
import json
import os
import socket
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from scheduler.cli.text import visible
from scheduler.core.errors import InvalidInput, NotFound, Refused, SchedulerError, Unavailable

SOCKET_NAME = "schedctl.sock"
TIMEOUT = 30.0
"""Seconds without an answer after which the daemon counts as hung."""
SERVER = "schedulerd"
"""What a daemon's answers say about who gives them."""
LONGEST_PATH = 107
"""Bytes that the kernel takes as the path of a Unix socket (unix(7))."""


class Daemon:
    """Requests, answered as parsed JSON. Problems come back as the errors they were made from; a daemon that cannot be
    reached is Unavailable, saying where it was looked for, and so is whatever else answers in its place.

    `clean`: texts in the answers have no character that a terminal would act upon."""

    def __init__(self, socket_path: str | None, environ: Mapping[str, str], *, clean: bool = False) -> None:
        self._given = socket_path
        self._environ = environ
        self._clean = clean
        self._found: str | None = None

    def get(self, path: str, query: Mapping[str, Any] | None = None, *, timeout: float = TIMEOUT) -> Any:
        return self._json("GET", path + query_string(query), None, {}, timeout)

    def post(
        self, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None, timeout: float = TIMEOUT
    ) -> Any:
        return self._json("POST", path, {} if body is None else body, headers or {}, timeout)

    def raw(self, path: str, query: Mapping[str, Any] | None = None) -> tuple[bytes, http.client.HTTPMessage]:
        """The bytes of an answer, and its headers."""
        status, headers, body = self._send("GET", path + query_string(query), None, {}, TIMEOUT)
        if status >= 400:
            raise error_of(status, body)
        return body, headers

    def _json(self, method: str, path: str, body: Any, headers: Mapping[str, str], timeout: float) -> Any:
        status, _, answer = self._send(method, path, body, headers, timeout)
        if status >= 400:
            raise error_of(status, answer)
        try:
            text = answer.decode("utf-8")
            found = json.loads(text)
            # Most answers have nothing to clean, which is seen much faster than by looking into them.
            suspect = self._clean and ("\\" in text or not text.isprintable())
            return cleaned(found) if suspect else found
        except (ValueError, RecursionError):
            raise self._foreign() from None

    def _send(
        self, method: str, path: str, body: Any, headers: Mapping[str, str], timeout: float
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        connection = _UnixConnection(self._connect(), timeout)
        try:
            payload = None if body is None else json.dumps(body).encode()
            sent = {"Content-Type": "application/json", **headers} if payload is not None else dict(headers)
            connection.request(method, path, body=payload, headers=sent)
            response = connection.getresponse()
            if response.headers.get("Server") != SERVER:
                raise self._foreign()
            return response.status, response.headers, response.read()
        except TimeoutError:
            raise Unavailable(
                f"the daemon at {self._found} has not answered for {timeout:.0f}s", hint="its log may say why"
            ) from None
        except (http.client.RemoteDisconnected, http.client.IncompleteRead, OSError) as error:
            cut = isinstance(error, http.client.IncompleteRead)
            raise Unavailable(
                f"the daemon at {self._found} hung up {'in the middle of its' if cut else 'without an'} answer",
                hint="it may be restarting; try again",
            ) from None
        except http.client.HTTPException:
            raise self._foreign() from None
        finally:
            connection.close()

    def _foreign(self) -> Unavailable:
        return Unavailable(
            f"what answers at {self._found} is not schedulerd",
            hint="say where the daemon is with --socket or SCHEDULER_SOCKET",
        )

    def _connect(self) -> socket.socket:
        """The first place that answers is kept for further requests."""
        looked = []
        for place in [self._found] if self._found else places(self._given, self._environ):
            connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            connected.settimeout(TIMEOUT)
            try:
                connected.connect(place)
            except (OSError, ValueError) as error:
                connected.close()
                looked.append(f"  {place}: {_why(place, error)}")
                continue
            self._found = place
            return connected
        raise Unavailable(
            "no daemon can be reached; looked at\n" + "\n".join(looked),
            hint="start it (schedulerd), or say where it is with --socket or SCHEDULER_SOCKET",
        )


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


def query_string(query: Mapping[str, Any] | None) -> str:
    """`?a=1&b=2`; None and empty values are left out, lists repeat their name."""
    pairs = [(name, value) for name, value in (query or {}).items() if value not in (None, "", (), [])]
    return f"?{urlencode(pairs, doseq=True)}" if pairs else ""


def part(name: str) -> str:
    """A name as one part of a path."""
    return quote(name, safe="")


def error_of(status: int, body: bytes) -> SchedulerError:
    """The error that the daemon had when it answered so."""
    try:
        problem = json.loads(body)
        reason, hint = str(problem["detail"]), problem.get("hint")
    except (ValueError, KeyError, TypeError):
        reason, hint = f"the daemon answered with status {status}", None
    kinds: dict[int, type[SchedulerError]] = {404: NotFound, 403: Refused, 409: Refused, 400: InvalidInput}
    kinds |= {413: InvalidInput, 422: InvalidInput, 503: Unavailable}
    return kinds.get(status, SchedulerError)(reason, hint=hint)


def cleaned(value: Any) -> Any:
    """Parsed JSON with every text `visible`."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, list):
        return [cleaned(one) for one in value]
    if isinstance(value, dict):
        return {visible(name): cleaned(one) for name, one in value.items()}
    return value


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
