"""A scan by a real daemon: cut short in the middle of a list, and gone on with by the next one."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.crash.world import World
from tests.daemon.conftest import Make
from tests.daemon.waiting import wait_for

EVENTS, SIZE = 60, 10


class Listing(ThreadingHTTPServer):
    """Pages of ten by offset; the third one comes when it may."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Page)
        now = datetime.now(UTC)
        self.events = [
            {"id": f"e{number}", "at": (now - timedelta(minutes=70 - number)).isoformat()} for number in range(EVENTS)
        ]
        self.asked: list[int] = []
        self.may_go_on = threading.Event()


class _Page(BaseHTTPRequestHandler):
    server: Listing

    def do_GET(self) -> None:
        query = parse_qs(urlsplit(self.path).query)
        first, size = int(query.get("cursor", ["0"])[0]), int(query["limit"][0])
        if size == SIZE:
            self.server.asked.append(first)
            if first == 2 * SIZE:
                self.server.may_go_on.wait(60)
        rest = str(first + size) if first + size < EVENTS else None
        body = json.dumps({"data": self.server.events[first : first + size], "next": rest}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # as it is called there
        """Silent."""


@pytest.fixture
def listing() -> Iterator[Listing]:
    with Listing() as server:
        serving = threading.Thread(target=server.serve_forever, daemon=True)
        serving.start()
        yield server
        server.may_go_on.set()
        server.shutdown()
        serving.join()


def config(listing: Listing) -> str:
    url = f"http://127.0.0.1:{listing.server_port}/events"
    options = {"url": url, "items": "data", "cursor": "next", "cursor_param": "cursor", "size": SIZE}
    return json.dumps(
        {
            "defaults": {"timezone": "UTC"},
            "sources": {
                "payments": {
                    "signature": {"scheme": "hmac", "header": "X-Signature", "secrets": [{"env": "NOBODY_SIGNS"}]},
                    "event": {"id": "id", "occurred_at": "at"},
                }
            },
            "jobs": {
                "ticket": {"on_event": {"source": "payments"}, "command": ["true"]},
                "scan": {"compensate": {"source": "payments", "compensator": "http_list", "with": options}},
            },
        }
    )


def test_a_scan_goes_on_after_kill_9(make_world: Make, listing: Listing) -> None:
    world = make_world(config(listing))
    world.start()
    assert world.ask("POST", "/v1/jobs/scan/runs", {})[0] == 202
    wait_for(lambda: listing.asked == [0, 10, 20], 30, "the third page is asked for")
    world.kill()
    listing.may_go_on.set()
    world.start()
    wait_for(lambda: bool(shown(world, "/v1/scans")["reports"]), 30, "the scan has ended")
    (report,) = shown(world, "/v1/scans")["reports"]
    assert (report["complete"], report["listed"], report["injected"]) == (True, EVENTS, EVENTS)
    assert listing.asked == [0, 10, 20, 20, 30, 40, 50]

    def runs() -> list[str]:
        events = shown(world, "/v1/events?limit=1000")["events"]
        assert sorted(one["id"] for one in events) == sorted(one["id"] for one in listing.events)
        assert all(len(one["runs"]) == 1 for one in events)
        return [run["status"] for one in events for run in one["runs"]]

    wait_for(lambda: set(runs()) == {"COMPLETED"}, 30, "all runs of the events have completed")
    assert world.stop() == 0


def shown(world: World, path: str) -> Any:
    return json.loads(world.get(path)[1])
