"""kill -9 while webhooks come in: what was answered 2xx is there, and has one run for each job that it concerns."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import http.client
import json
import random
import socket
import threading
from collections import Counter
from pathlib import Path

import pytest

from tests.crash.world import World
from tests.long import LONG

pytestmark = [pytest.mark.crash, pytest.mark.timeout(400), pytest.mark.xdist_group("load")]

SECRET = "nobody-knows"
KILLS = 20 if LONG else 4
SENDERS = 16
CONFIG = """
defaults: {timezone: UTC, queue: parked}
queues: {parked: {concurrency: 1}}
sources:
  shop:
    signature: {scheme: hmac, header: X-Signature, secrets: [{env: SHOP_SECRET}]}
    event: {id: id, type: type, subject: about}
jobs:
  every: {on_event: shop, command: "true"}
  ordered: {on_event: {source: shop, order: subject}, command: "true"}
  some: {on_event: {source: shop, types: [even]}, command: "true"}
"""


class Sender:
    """Sends one event after the other, as a provider does: what is not answered it sends again, or (one in four)
    never more."""

    def __init__(self, path: Path, number: int) -> None:
        self._path = path
        self._number = number
        self._chance = random.Random(number)
        self._stopped = threading.Event()
        self.thread = threading.Thread(target=self._send_all)
        self.sent: set[str] = set()
        self.answered: set[str] = set()
        self.strange: list[int] = []
        self._connection = http.client.HTTPConnection("localhost", timeout=10)

    def stop(self) -> None:
        self._stopped.set()

    def _send_all(self) -> None:
        with contextlib.closing(self._connection) as connection:
            self._send_each(connection)

    def _send_each(self, connection: http.client.HTTPConnection) -> None:
        count = 0
        while not self._stopped.is_set():
            count += 1
            name = f"e{self._number}-{count}"
            self.sent.add(name)
            while not self._stopped.is_set():
                try:
                    if connection.sock is None:
                        self._connect(connection)
                    if self._send(connection, name, count):
                        break
                except (OSError, http.client.HTTPException):
                    connection.close()
                    self._stopped.wait(0.02)
                    if self._chance.random() < 0.25:
                        break

    def _connect(self, connection: http.client.HTTPConnection) -> None:
        connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.sock.settimeout(10)
        connection.sock.connect(str(self._path))

    def _send(self, connection: http.client.HTTPConnection, name: str, count: int) -> bool:
        kind = "even" if count % 2 == 0 else "odd"
        body = json.dumps({"id": name, "type": kind, "about": f"s{count % 7}", "pad": "x" * 600}).encode()
        signature = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
        connection.request("POST", "/webhooks/shop", body, {"X-Signature": signature})
        answer = connection.getresponse()
        answer.read()
        if answer.status == 202:
            self.answered.add(name)
        elif answer.status != 503:
            self.strange.append(answer.status)
        return answer.status != 503


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_what_was_answered_is_there_and_has_its_runs(
    request: pytest.FixtureRequest, tmp_path: Path, database: str
) -> None:
    url = request.getfixturevalue("fresh_postgres_place").url if database == "postgresql" else ""
    settings = {"SCHEDULER_QUEUES": "default", "SHOP_SECRET": SECRET}
    if url:
        settings["SCHEDULER_LEASE"] = "5s"
    world = World(tmp_path, "ingest", url, **settings)
    world.config.write_text(CONFIG)
    world.start()
    senders = [Sender(world.state / "schedctl.sock", number) for number in range(SENDERS)]
    chance = random.Random(database)
    for sender in senders:
        sender.thread.start()
    try:
        for _ in range(KILLS):
            before = sum(len(sender.answered) for sender in senders)
            _until(lambda before=before: sum(len(sender.answered) for sender in senders) > before + 200)
            threading.Event().wait(chance.uniform(0, 0.2))
            world.kill()
            world.start()
    finally:
        for sender in senders:
            sender.stop()
        for sender in senders:
            sender.thread.join(30)
        world.stop()
    answered = set().union(*(sender.answered for sender in senders))
    sent = set().union(*(sender.sent for sender in senders))
    stored = {row[0]: row[1] for row in world._rows("SELECT id, type FROM events")}
    runs = Counter(world._rows("SELECT job, key FROM runs WHERE job <> '_canary'"))

    assert not [status for sender in senders for status in sender.strange]
    assert len(answered) > KILLS * 200
    assert answered <= stored.keys() <= sent
    expected = Counter(
        (job, f"event:shop:{name}")
        for name, kind in stored.items()
        for job in ("every", "ordered", "some")
        if job != "some" or kind == "even"
    )
    assert runs == expected


def _until(condition: object) -> None:
    assert callable(condition)
    for _ in range(3000):
        if condition():
            return
        threading.Event().wait(0.01)
    raise AssertionError("nothing was answered for 30 seconds")
