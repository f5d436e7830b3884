"""Who asks: found out by the outermost layer of the app, before anything is done."""

from __future__ import annotations

from functools import partial
from http.cookies import CookieError, SimpleCookie

import structlog
from anyio import to_thread
from starlette.types import ASGIApp, Receive, Scope, Send

from scheduler.core.access import Caller, Gate, Token
from scheduler.core.errors import Unavailable
from scheduler.web.answers import RETRY_AFTER, Problem

log = structlog.get_logger("web")

LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})
READING = frozenset({"GET", "HEAD"})
COOKIE = "schedulerd_session"
OPEN_PATHS = frozenset({"/healthz", "/readyz"})
"""Told to everybody who reaches the address: probes have no token, and ask by all kinds of names."""
SIGN_IN = "/signin"
MOST_STRANGERS = 32
"""Requests of callers without a token that are served at once; further ones are told to come back."""


class Guard:
    """Puts a `Caller` into the scope, or refuses; what goes on for long asks `scope["holds"]` whether it would still be
    let in.

    The Unix socket's mode is its auth: who comes in there may do everything. Over TCP a bearer token, or the cookie
    that a browser got for one, says what its holder may do. Without either one may read facts, from this machine only
    and only if the Host header names it, so that no web page reaches the daemon through a name of its own.

    It is also the net below everything: an exception inside becomes one line in the log."""

    def __init__(self, app: ASGIApp, gate: Gate, *, trusted: bool) -> None:
        self._app = app
        self._gate = gate
        self._trusted = trusted
        self._strangers = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        try:
            caller = await self._caller(scope)
            if isinstance(caller, Problem):
                await caller(scope, receive, send)
            elif caller.local or caller.role is not None:
                await self._serve(scope, receive, send, caller)
            elif self._strangers >= MOST_STRANGERS:
                busy = Problem(503, "too many requests without a token", headers={"Retry-After": RETRY_AFTER})
                await busy(scope, receive, send)
            else:
                self._strangers += 1
                try:
                    await self._serve(scope, receive, send, caller)
                finally:
                    self._strangers -= 1
        except Exception:
            # The client has its 500 already; whatever the server would do further is to print this once more.
            log.exception("request_failed", method=scope["method"], route=getattr(scope.get("route"), "path", None))

    async def _serve(self, scope: Scope, receive: Receive, send: Send, caller: Caller) -> None:
        scope["caller"] = caller
        scope["holds"] = partial(self._holds, scope)
        await self._app(scope, receive, send)

    async def _holds(self, scope: Scope) -> bool:
        """Not any more when the token was revoked or has expired, or may do something else now."""
        return bool(await self._caller(scope) == scope["caller"])

    async def _caller(self, scope: Scope) -> Caller | Problem:
        client = scope.get("client")
        if self._trusted:
            return Caller(client[0] if client else "somebody", local=True)
        bearer = bearer_of(scope)
        if bearer is not None:
            token = await self._find(bearer)
            if token is None:
                return _unknown("this token is not known here: it was revoked, has expired, or never was")
            return Caller(f"token:{token.name}", token.role)
        cookie = session_of(scope)
        if cookie is not None and (token := await self._find(cookie)) is not None:
            if scope["method"] not in READING and not _same_origin(scope):
                return Problem(403, "a page of another origin may not act here", hint="use a token")
            return Caller(f"web:{token.name}", token.role)
        return _stranger(scope, client[0] if client else "")

    async def _find(self, secret: str) -> Token | None:
        token = self._gate.recall(secret)
        if self._gate.stale(missed=token is None):
            try:
                await to_thread.run_sync(self._gate.refresh)
            except Unavailable:
                return token  # What was known a moment ago is better than to lock everybody out.
            token = self._gate.recall(secret)
        return token


def _stranger(scope: Scope, client: str) -> Caller | Problem:
    """Somebody without a token, who may read facts; or why not even that."""
    path, reading = scope["path"], scope["method"] in READING
    if reading and path in OPEN_PATHS:
        return Caller("somebody")
    if not _loopback(client):
        return Caller("somebody") if path == SIGN_IN else _unknown("from another machine everything needs a token")
    if _host(scope) not in LOCAL_HOSTS:
        return Problem(
            403,
            "without a token this address serves only Host localhost or 127.0.0.1",
            hint="use http://localhost, a token, or the Unix socket",
        )
    return Caller("somebody") if reading or path == SIGN_IN else _unknown("acting over TCP needs a token")


def _unknown(why: str) -> Problem:
    hint = "`schedctl token create NAME --role operate` makes one; or use the Unix socket, as schedctl does"
    return Problem(401, why, hint=hint, headers={"WWW-Authenticate": "Bearer"})


def _loopback(client: str) -> bool:
    return client.startswith("127.") or client in ("::1", "::ffff:127.0.0.1")


def bearer_of(scope: Scope) -> str | None:
    """The token of the Authorization header; empty for a header that holds none."""
    values = _headers(scope, b"authorization")
    if not values:
        return None
    scheme, _, secret = values[0].partition(" ")
    return secret.strip() if len(values) == 1 and scheme.lower() == "bearer" else ""


def session_of(scope: Scope) -> str | None:
    """The secret of a browser's session, out of its cookie."""
    for value in _headers(scope, b"cookie"):
        cookies: SimpleCookie = SimpleCookie()
        try:
            cookies.load(value)
        except CookieError:
            continue
        if COOKIE in cookies:
            return cookies[COOKIE].value
    return None


def _same_origin(scope: Scope) -> bool:
    """Browsers say where a page that acts comes from. One that does not say so is not believed."""
    origins, hosts = _headers(scope, b"origin"), _headers(scope, b"host")
    if len(origins) != 1 or len(hosts) != 1:
        return False
    return origins[0].lower() in (f"http://{hosts[0].lower()}", f"https://{hosts[0].lower()}")


def _host(scope: Scope) -> str:
    values = _headers(scope, b"host")
    if len(values) != 1:
        return ""
    host = values[0].lower()
    name, colon, port = host.rpartition(":")
    return name if colon and port.isascii() and port.isdigit() else host


def _headers(scope: Scope, wanted: bytes) -> list[str]:
    return [value.decode("latin-1") for name, value in scope["headers"] if name == wanted]
