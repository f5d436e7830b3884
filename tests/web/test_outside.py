"""The address for webhooks alone, and what senders hear while the daemon starts."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from scheduler.core.errors import StartError
from scheduler.web.front import Front
from scheduler.web.outside import Branch, Outside
from scheduler.web.server import WebServer
from scheduler.web.webhooks import PREFIX
from tests.web.client import client_of
from tests.web.hooks import Answered, Hooks, ask, body_of, request


@contextmanager
def opened(outside: Any) -> Iterator[WebServer]:
    with tempfile.TemporaryDirectory(prefix="outside") as folder:
        socket = Path(folder) / "s.sock"
        where = ("127.0.0.1", 0)
        server = WebServer(outside, outside, None, socket, grace=1.0, receiving=outside, webhook_listen=where)
        server.open()
        server.start()
        try:
            yield server
        finally:
            server.stop()


def get(server: WebServer, path: str, method: str = "GET") -> Answered:
    assert server.webhook_address is not None
    return ask(server.webhook_address, request(b"", method=method, path=path))


def test_nothing_but_webhooks_and_health() -> None:
    hooks, outside = Hooks(), Outside()
    outside.apps = {PREFIX: hooks.app}
    with opened(outside) as server:
        assert server.address is None
        assert server.webhook_address is not None
        assert ask(server.webhook_address, request(body_of())).status == 202
        assert get(server, "/healthz").json == {"status": "ok"}
        assert get(server, "/healthz", "HEAD").status == 200
        assert get(server, "/webhooks/payments").status == 200
        for path in (
            "/",
            "/v1/jobs",
            "/v1/status",
            "/metrics",
            "/readyz",
            "/openapi.json",
            "/signin",
            "/healthz/",
            "/webhooks",
        ):
            assert get(server, path).status == 404, path
        assert get(server, "/healthz", "POST").status == 404
    assert len(hooks.inbox.events) == 1


def test_senders_that_come_before_the_daemon_is_there_are_asked_to_come_again() -> None:
    with opened(Outside()) as server:
        for path in ("/webhooks/payments", "/ping/key/job/start"):
            early = get(server, path, "POST")
            assert (early.status, early.headers["retry-after"]) == (503, "2")
        assert get(server, "/healthz").status == 200


def test_on_the_common_address_a_sender_hears_no_reason() -> None:
    front = Front("9.9", lambda: "the database away.example:5432 does not answer")
    with client_of(front) as client:
        for path in ("/webhooks/payments", "/ping/key/job"):
            early = client.post(path)
            assert (early.status_code, early.headers["retry-after"], "away.example" in early.text) == (503, "2", False)
        assert "away.example" in client.get("/v1/jobs").text


def test_the_common_address_serves_both() -> None:
    hooks = Hooks()

    async def rest(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 418, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    with client_of(Branch({PREFIX: hooks.app}, rest)) as client:
        assert client.get("/webhooks/payments").status_code == 200
        assert client.get("/webhooksX").status_code == 418


def test_a_port_in_use_names_its_own_setting() -> None:
    with opened(Outside()) as server, tempfile.TemporaryDirectory(prefix="outside") as folder:
        second = WebServer(
            Outside(),
            Outside(),
            None,
            Path(folder) / "s.sock",
            receiving=Outside(),
            webhook_listen=server.webhook_address,
        )
        with pytest.raises(StartError, match="SCHEDULER_WEBHOOK_LISTEN"):
            second.open()
        assert list(Path(folder).iterdir()) == []
