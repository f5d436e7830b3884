"""What strangers on the internet may reach: webhooks, and whether somebody is there."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from scheduler.web.webhook_answers import ready, refusal
from scheduler.web.webhooks import PREFIX


class Branch:
    """Requests for `/webhooks/` go to `webhooks`, all others to `rest`."""

    def __init__(self, webhooks: ASGIApp, rest: ASGIApp) -> None:
        self._webhooks = webhooks
        self._rest = rest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await (self._webhooks if scope["path"].startswith(PREFIX) else self._rest)(scope, receive, send)


class Outside:
    """The address that serves webhooks alone. Until there is `webhooks` their senders are asked to try again."""

    def __init__(self) -> None:
        self.webhooks: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        path = scope["path"]
        if path.startswith(PREFIX):
            if self.webhooks is not None:
                await self.webhooks(scope, receive, send)
            else:
                await refusal(503).send(scope, send)
        elif path == "/healthz" and scope["method"] in ("GET", "HEAD"):
            await ready(200, b'{"status":"ok"}').send(scope, send)
        else:
            await refusal(404).send(scope, send)
