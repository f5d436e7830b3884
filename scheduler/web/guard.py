"""Who may do what: the outermost layer of the app."""

from __future__ import annotations

import structlog
from starlette.types import ASGIApp, Receive, Scope, Send

from scheduler.web.answers import Problem

log = structlog.get_logger("web")

LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})
READING = frozenset({"GET", "HEAD"})


class Guard:
    """Lets a trusted caller (the Unix socket: its mode is its auth) do everything. Anybody else may read, and only if
    the Host header names this machine, so that no web page can reach the daemon through a name of its own.

    It is also the net below everything: an exception inside becomes one line in the log."""

    def __init__(self, app: ASGIApp, *, trusted: bool) -> None:
        self._app = app
        self._trusted = trusted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        refusal = None if self._trusted else _refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        try:
            await self._app(scope, receive, send)
        except Exception:
            # The client has its 500 already; whatever the server would do further is to print this once more.
            log.exception("request_failed", method=scope["method"], route=getattr(scope.get("route"), "path", None))


def _refusal(scope: Scope) -> Problem | None:
    if _host(scope) not in LOCAL_HOSTS:
        return Problem(
            403,
            "this address serves only Host localhost or 127.0.0.1",
            hint="use http://localhost, or the Unix socket",
        )
    if scope["method"] not in READING:
        return Problem(403, "over TCP the API only reads", hint="use the Unix socket, as schedctl does")
    return None


def _host(scope: Scope) -> str:
    values = [value for name, value in scope["headers"] if name == b"host"]
    if len(values) != 1:
        return ""
    host: str = values[0].decode("latin-1").lower()
    name, colon, port = host.rpartition(":")
    return name if colon and port.isascii() and port.isdigit() else host
