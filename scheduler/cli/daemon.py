"""The daemon as schedctl sees it: JSON over HTTP."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import quote, urlencode

from scheduler.cli.dial import dial
from scheduler.cli.text import visible
from scheduler.core.errors import InvalidInput, NotFound, Refused, SchedulerError, Unavailable

TIMEOUT = 30.0
"""Seconds without an answer after which the daemon counts as hung."""


class Daemon:
    """Requests, answered as parsed JSON. Problems come back as the errors they were made from; a daemon that cannot be
    reached is Unavailable, saying where it was looked for, and so is whatever else answers in its place.

    `clean`: texts in the answers have no character that a terminal would act upon."""

    def __init__(self, socket_path: str | None, environ: Mapping[str, str], *, clean: bool = False) -> None:
        self._line = dial(socket_path, environ)
        self._clean = clean

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

    def stream(
        self, path: str, headers: Mapping[str, str], *, timeout: float
    ) -> tuple[http.client.HTTPResponse, socket.socket]:
        """An answer that goes on, and the socket that it comes through; the caller closes both. `timeout`: seconds for
        which it may be silent."""
        with self._reaching(timeout):
            connection = self._line.connection(timeout)
            # The connection forgets its socket when the answer ends with it.
            through = connection.sock
            try:
                response = self._ask(connection, "GET", path, None, headers)
                if response.status >= 400:
                    raise error_of(response.status, response.read())
            except BaseException:
                through.close()
                connection.close()
                raise
            return response, through

    @property
    def place(self) -> str:
        """Where it is."""
        return self._line.place

    def _send(
        self, method: str, path: str, body: Any, headers: Mapping[str, str], timeout: float
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        with self._reaching(timeout), closing(self._line.connection(timeout)) as connection:
            response = self._ask(connection, method, path, body, headers)
            return response.status, response.headers, response.read()

    def _ask(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: Any, headers: Mapping[str, str]
    ) -> http.client.HTTPResponse:
        payload = None if body is None else json.dumps(body).encode()
        sent = {**self._line.headers, **headers}
        if payload is not None:
            sent["Content-Type"] = "application/json"
        connection.request(method, self._line.prefix + path, body=payload, headers=sent)
        response = connection.getresponse()
        if not self._line.is_ours(response.headers):
            raise self._foreign()
        return response

    @contextmanager
    def _reaching(self, timeout: float) -> Iterator[None]:
        """Says what went wrong between here and there."""
        line = self._line
        try:
            yield
        except TimeoutError:
            raise Unavailable(
                f"the daemon at {line.place} has not answered for {timeout:.0f}s", hint="its log may say why"
            ) from None
        except (http.client.RemoteDisconnected, http.client.IncompleteRead, OSError) as error:
            cut = isinstance(error, http.client.IncompleteRead)
            raise Unavailable(
                f"the daemon at {line.place} hung up {'in the middle of its' if cut else 'without an'} answer",
                hint="it may be restarting; try again",
            ) from None
        except http.client.HTTPException:
            raise self._foreign() from None

    def _foreign(self) -> Unavailable:
        return Unavailable(
            f"what answers at {self._line.place} is not schedulerd",
            hint="say where the daemon is with --socket, SCHEDULER_SOCKET or SCHEDCTL_URL",
        )


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
    kinds: dict[int, type[SchedulerError]] = {
        404: NotFound,
        401: Refused,
        403: Refused,
        409: Refused,
        400: InvalidInput,
    }
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
