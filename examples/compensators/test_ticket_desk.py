"""The template's test: `pytest test_ticket_desk.py` in the environment of schedulerd, with pytest installed."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from compensators import registry
from scheduler.core.compensator import Compensator
from scheduler.testing.compensators import CompensatorContract, World

FOLDER = str(Path(__file__).parent)
NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


class Desk(World):
    """A desk with fifty closed tickets over some hours, two of them in each second that has any."""

    def __init__(self) -> None:
        self.tickets: list[dict[str, Any]] = []
        for number in range(1, 51):
            closed = NOON - timedelta(minutes=10 * (number // 2))
            self.tickets.append({"number": number, "closed_at": closed.isoformat(), "title": "done"})
        self.scopes = ["tickets:read"]
        self.forgotten: set[int] = set()
        self.key = "the-key"
        self.away = False

    def answer(self, path: str, query: Mapping[str, list[str]], key: str | None) -> tuple[int, Any]:
        if self.away:
            return 403, {"error": "maintenance"}  # 503 would be waited for, half a minute
        if key != f"Bearer {self.key}":
            return 401, {"error": "no such key"}
        if path == "/account":
            return 200, {"scopes": self.scopes}
        since = datetime.fromtimestamp(int(query["since"][0]), UTC)
        after = int(query.get("after", ["0"])[0])
        if after in self.forgotten:
            return 410, {"error": "no such cursor"}
        newer = [one for one in self.tickets if self._closed(one) > since and (one.get("number") or 99) > after]
        page = newer[: int(query["limit"][0])]
        return 200, {"tickets": page, "after": page[-1]["number"] if len(newer) > len(page) else None}

    def _closed(self, ticket: Mapping[str, Any]) -> datetime:
        return datetime.fromisoformat(ticket["closed_at"])

    # What the contract asks of a world; all but the first two may be left out.

    def compensator(self) -> Compensator:
        options = {"url": self.url, "key": "the-key", "size": 20}
        return registry.build("ticket_desk", options, {}, [FOLDER])

    def events(self) -> Mapping[str, datetime]:
        return {f"closed-{one['number']}": self._closed(one) for one in self.tickets if one["number"]}

    def secrets(self) -> tuple[str, ...]:
        return ("the-key",)

    def webhook(self, event: str) -> Any:
        return next(one for one in self.tickets if event == f"closed-{one['number']}")

    def refuse(self) -> None:
        self.key = "another"

    def go_away(self) -> None:
        self.away = True

    def forget_cursors(self) -> None:
        self.forgotten = {one["number"] for one in self.tickets}
        self.tickets = [{**one, "number": one["number"] + 1000} for one in self.tickets]

    def poison(self) -> None:
        self.tickets.append({"number": None, "closed_at": NOON.isoformat()})

    def distrust(self) -> None:
        self.scopes = []

    def __enter__(self) -> Desk:
        desk = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                status, document = desk.answer(parts.path, parse_qs(parts.query), self.headers.get("Authorization"))
                data = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                """Nobody reads it."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


class TestTicketDesk(CompensatorContract):
    @pytest.fixture
    def world(self) -> Iterator[World]:
        with Desk() as desk:
            yield desk


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
