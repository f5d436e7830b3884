"""kill -9 while webhooks come in: what was answered 2xx is there, and has one run for each job that it concerns."""

from __future__ import annotations

import hashlib
import hmac
import json
import random
import re
import socket
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.crash.world import World
from tests.long import LONG

pytestmark = [pytest.mark.crash, pytest.mark.timeout(400), pytest.mark.xdist_group("load")]

SECRET = "nobody-knows"
KILLS, BETWEEN = (20, 3_000) if LONG else (4, 200)
"""How often it is killed, and after how many answers."""
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
        self._path = str(path)
        self._number = number
        self._chance = random.Random(number)
        self._stopped = threading.Event()
        self.thread = threading.Thread(target=self._send_all)
        self.sent: set[str] = set()
        self.answered: set[str] = set()
        self.strange: list[int] = []
        self._socket: socket.socket | None = None

    def stop(self) -> None:
        self._stopped.set()

    def _send_all(self) -> None:
        count = 0
        while not self._stopped.is_set():
            count += 1
            name = f"e{self._number}-{count}"
            self.sent.add(name)
            self._send_until_answered(name, _request(name, count))
        self._hang_up()

    def _send_until_answered(self, name: str, request: bytes) -> None:
        while not self._stopped.is_set():
            try:
                status = self._ask(request)
            except OSError:
                self._hang_up()
                self._stopped.wait(0.02)
                if self._chance.random() < 0.25:
                    return
                continue
            if status == 202:
                self.answered.add(name)
            elif status != 503:
                self.strange.append(status)
            if status != 503:
                return

    def _ask(self, request: bytes) -> int:
        if self._socket is None:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._socket.settimeout(10)
            self._socket.connect(self._path)
        self._socket.sendall(request)
        got = b""
        while not _whole(got):
            some = self._socket.recv(65536)
            if not some:
                raise ConnectionResetError("closed within an answer")
            got += some
        return int(got[9:12])

    def _hang_up(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _request(name: str, count: int) -> bytes:
    kind = "even" if count % 2 == 0 else "odd"
    body = json.dumps({"id": name, "type": kind, "about": f"s{count % 7}", "pad": "x" * 600}).encode()
    signature = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    head = (
        "POST /webhooks/shop HTTP/1.1",
        "Host: localhost",
        f"X-Signature: {signature}",
        f"Content-Length: {len(body)}",
    )
    return "\r\n".join([*head, "", ""]).encode() + body


def _whole(answer: bytes) -> bool:
    head, end, body = answer.partition(b"\r\n\r\n")
    found = re.search(rb"(?i)content-length: *(\d+)", head)
    return bool(end) and found is not None and len(body) >= int(found[1])


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
            before, since = sum(len(sender.answered) for sender in senders), time.monotonic()
            _until(lambda before=before: sum(len(sender.answered) for sender in senders) > before + BETWEEN)
            threading.Event().wait(chance.uniform(0, 0.2))
            came, took = sum(len(sender.answered) for sender in senders) - before, time.monotonic() - since
            print(f"{database}: {came} answered in {took:.2f} s, {came / took:.0f}/s")
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
    assert len(answered) > KILLS * BETWEEN
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
