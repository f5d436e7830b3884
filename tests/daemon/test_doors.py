"""Where a daemon lets whom in."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from contextlib import closing

from tests.daemon.conftest import Make
from tests.daemon.test_start import JOBS, refused
from tests.daemon.waiting import wait_for


def get(port: int, path: str, **headers: str) -> tuple[int, str]:
    """The status, and the cookie that the answer sets."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    with closing(connection):
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status, (answer.getheader("set-cookie") or "").partition(";")[0]


def test_an_address_that_others_reach_needs_a_token(make_world: Make) -> None:
    world = make_world(JOBS)
    said = refused(world, SCHEDULER_LISTEN="0.0.0.0:0")
    assert "listening on 0.0.0.0 is refused" in said
    assert "schedctl token create" in said
    world.start()
    status, body = world.ask("POST", "/v1/tokens", {"name": "prometheus", "role": "read"})
    assert status == 201
    assert world.stop() == 0
    world.settings["SCHEDULER_LISTEN"] = "0.0.0.0:0"
    world.start()
    wait_for(lambda: '"event": "started"' in world.tail(), 10, "the log says where the daemon listens")
    port = int(re.findall(r"http://127.0.0.1:(\d+)", world.tail())[-1])
    secret = json.loads(body)["secret"]
    assert get(port, "/v1/generations", Authorization=f"Bearer {secret}")[0] == 200
    assert get(port, "/v1/generations")[0] == 401


def test_who_starts_it_at_a_terminal_gets_a_link(make_world: Make) -> None:
    world = make_world(JOBS, SCHEDULER_LOG_FORMAT="auto")
    master, slave = pty.openpty()
    world.daemon = subprocess.Popen(
        [sys.executable, "-m", "scheduler.daemon"], env=world.environment(), stdout=slave, stderr=slave
    )
    os.close(slave)
    seen, until, found = b"", time.monotonic() + 30, None
    while found is None:
        assert time.monotonic() < until, seen
        if select.select([master], [], [], 0.1)[0]:
            seen += os.read(master, 65536)
        found = re.search(rb"(http://127\.0\.0\.1:(\d+)(/signin\?code=[\w-]+))\r?\n", seen)
    port, link = int(found[2]), found[3].decode()
    status, cookie = get(port, link)
    assert status == 200
    assert get(port, "/v1/configuration", Cookie=cookie)[0] == 200
    assert get(port, link)[0] == 401
    os.close(master)
    assert world.stop() == 0


def test_nobody_else_does(make_world: Make) -> None:
    world = make_world(JOBS, SCHEDULER_LOG_FORMAT="auto")
    world.start()
    assert "signin" not in world.tail()


HOOKS = """
version: 1
sources:
  shop:
    signature: {scheme: hmac, header: X-Signature, secrets: [{env: SHOP_SECRET}]}
    event: {id: id}
jobs:
  ticket: {on_event: {source: shop}, command: ["true"]}
"""


def test_webhooks_have_an_address_of_their_own(make_world: Make) -> None:
    """What was answered 2xx is there after the next start, and a second telling changes nothing."""
    world = make_world(HOOKS, SCHEDULER_WEBHOOK_LISTEN="0.0.0.0:0", SHOP_SECRET="known-to-both")
    body = b'{"id": "e1"}'
    signed = hmac.new(b"known-to-both", body, hashlib.sha256).hexdigest()

    def post(port: int) -> tuple[int, bool]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        with closing(connection):
            connection.request("POST", "/webhooks/shop", body, {"X-Signature": signed})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())["duplicate"]

    def port() -> int:
        wait_for(lambda: '"event": "started"' in world.tail(), 10, "the log says where webhooks are received")
        return int(re.findall(r'"webhooks": "http://127.0.0.1:(\d+)"', world.tail())[-1])

    world.start()
    first = port()
    assert post(first) == (202, False)
    assert get(first, "/v1/jobs")[0] == 404
    assert get(first, "/healthz")[0] == 200
    assert world.stop() == 0
    world.start()
    wait_for(lambda: port() != first, 10, "it listens anew")
    assert post(port()) == (202, True)
    status, shown = world.ask("GET", "/v1/events/shop/e1")
    assert (status, json.loads(shown)["duplicates"]) == (200, 1)
    assert [run["job"] for run in json.loads(shown)["runs"]] == ["ticket"]
