"""What strangers on the internet may reach: webhooks, pings, and whether somebody is there."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.types import ASGIApp, Receive, Scope, Send

from scheduler.web.connection import AtHand
from scheduler.web.ping_words import PREFIX as PINGS
from scheduler.web.webhook_answers import ready, refusal
from scheduler.web.webhooks import PREFIX as WEBHOOKS


class Branch:
    """Requests whose path begins as one of `beside` says go there, all others to `rest`."""

    def __init__(self, beside: Mapping[str, ASGIApp], rest: ASGIApp) -> None:
        self._beside = beside
        self._rest = rest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await (app_at(self._beside, scope["path"]) or self._rest)(scope, receive, send)

    def at_hand(self, scope: Scope, body: bytes) -> bool:
        return taken_at_hand(self._beside, scope, body)


class Outside:
    """The address that serves webhooks and pings alone. Until there are `apps` their senders are asked to try again."""

    def __init__(self) -> None:
        self.apps: Mapping[str, ASGIApp] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        path = scope["path"]
        app = app_at(self.apps, path)
        if app is not None:
            await app(scope, receive, send)
        elif path.startswith((WEBHOOKS, PINGS)) and not self.apps:
            await refusal(503).send(scope, send)
        elif path == "/healthz" and scope["method"] in ("GET", "HEAD"):
            await ready(200, b'{"status":"ok"}').send(scope, send)
        else:
            await refusal(404).send(scope, send)

    def at_hand(self, scope: Scope, body: bytes) -> bool:
        return taken_at_hand(self.apps, scope, body)


def taken_at_hand(apps: Mapping[str, ASGIApp], scope: Scope, body: bytes) -> bool:
    """Whether one of these apps answers this whole request (connection.AtHand)."""
    at_hand: AtHand | None = getattr(app_at(apps, scope["path"]), "at_hand", None)
    return at_hand is not None and at_hand(scope, body)


def app_at(apps: Mapping[str, ASGIApp], path: str) -> ASGIApp | None:
    """The app at the first of these beginnings of paths."""
    for prefix, app in apps.items():
        if path.startswith(prefix):
            return app
    return None
