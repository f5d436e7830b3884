"""What is served at an address: at first only that the daemon is starting, then the app."""

from __future__ import annotations

from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send

from scheduler.web.answers import RETRY_AFTER, Answer, Problem
from scheduler.web.connection import AtHand
from scheduler.web.ping_words import PREFIX as PINGS
from scheduler.web.webhook_answers import refusal
from scheduler.web.webhooks import PREFIX as WEBHOOKS


class Front:
    """Passes requests to `app` once there is one. Before that `/healthz` is 200, `/readyz` is 503 with `reason()`, and
    everything else is a 503 that says so."""

    def __init__(self, version: str, reason: Callable[[], str | None]) -> None:
        self.app: ASGIApp | None = None
        self._version = version
        self._reason = reason

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.app is not None:
            await self.app(scope, receive, send)
        elif scope["type"] == "http" and scope["path"].startswith((WEBHOOKS, PINGS)):
            await refusal(503).send(scope, send)
        elif scope["type"] == "http":
            await self._early(scope["path"])(scope, receive, send)

    def at_hand(self, scope: Scope, body: bytes) -> bool:
        at_hand: AtHand | None = getattr(self.app, "at_hand", None)
        return at_hand is not None and at_hand(scope, body)

    def _early(self, path: str) -> Answer:
        why = self._reason()
        if path == "/healthz":
            return Answer({"status": "ok", "version": self._version})
        if path == "/readyz":
            checks = {"start": "not finished", "database": why or "ok"}
            return Answer({"status": "not ready", "checks": checks}, status_code=503)
        return Problem(
            503,
            "the daemon is starting" + (f": {why}" if why else ""),
            hint="try again in a moment; its log says what it waits for",
            headers={"Retry-After": RETRY_AFTER},
        )
