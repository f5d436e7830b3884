"""kill -9 while webhooks come in: what was answered 2xx is there, and has one run for each job that it concerns."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import random
import re
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
import uvloop

from tests.crash.world import World
from tests.long import LONG

pytestmark = [pytest.mark.crash, pytest.mark.timeout(400), pytest.mark.xdist_group("load")]

SECRET = "nobody-knows"
KILLS, BETWEEN = (20, 3_000) if LONG else (4, 200)
"""How often it is killed, and after how many answers."""
SENDERS = 64
SOURCE = """
defaults: {timezone: UTC, queue: parked}
queues: {parked: {concurrency: 1}}
sources:
  shop:
    signature: {scheme: hmac, header: X-Signature, secrets: [{env: SHOP_SECRET}]}
    event: {id: id, type: type, subject: about}
jobs:
"""
ONE = """
  every: {on_event: shop, command: "true"}
"""
SEVERAL = f"""{ONE}
  ordered: {{on_event: {{source: shop, order: subject}}, command: "true"}}
  some: {{on_event: {{source: shop, types: [even]}}, command: "true"}}
"""


class Sender:
    """Sends one event after the other, as a provider does: what is not answered it sends again, or (one in four)
    never more."""

    def __init__(self, path: Path, number: int) -> None:
        self._path = str(path)
        self._number = number
        self._chance = random.Random(number)
        self._connection: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self.stopped = False
        self.sent: set[str] = set()
        self.answered: set[str] = set()
        self.strange: list[int] = []

    async def send_all(self) -> None:
        count = 0
        while not self.stopped:
            count += 1
            name = f"e{self._number}-{count}"
            self.sent.add(name)
            await self._send(name, _request(name, count))
        self._hang_up()

    async def _send(self, name: str, request: bytes) -> None:
        while not self.stopped:
            try:
                async with asyncio.timeout(10):
                    status = await self._ask(request)
            except (OSError, EOFError):
                self._hang_up()
                await asyncio.sleep(0.02)
                if self._chance.random() < 0.25:
                    return
                continue
            if status == 202:
                self.answered.add(name)
            elif status != 503:
                self.strange.append(status)
            if status != 503:
                return

    async def _ask(self, request: bytes) -> int:
        if self._connection is None:
            self._connection = await asyncio.open_unix_connection(self._path)
        reader, writer = self._connection
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: *(\d+)", head)
        assert length is not None
        await reader.readexactly(int(length[1]))
        return int(head[9:12])

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection[1].close()
            self._connection = None


class Senders:
    """Many of them, in a thread."""

    def __init__(self, path: Path) -> None:
        self._all = [Sender(path, number) for number in range(SENDERS)]
        self._thread = threading.Thread(target=uvloop.run, args=(self._send(),))

    async def _send(self) -> None:
        await asyncio.gather(*(one.send_all() for one in self._all))

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        for one in self._all:
            one.stopped = True
        self._thread.join(30)

    def count(self) -> int:
        """How many were answered."""
        return sum(len(one.answered) for one in self._all)

    @property
    def answered(self) -> set[str]:
        return set().union(*(one.answered for one in self._all))

    @property
    def sent(self) -> set[str]:
        return set().union(*(one.sent for one in self._all))

    @property
    def strange(self) -> list[int]:
        return [status for one in self._all for status in one.strange]


def _request(name: str, count: int) -> bytes:
    body = json.dumps({"id": name, "type": _kind(count), "about": f"s{count % 7}", "pad": "x" * 600}).encode()
    signature = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    head = f"X-Signature: {signature}\r\nContent-Length: {len(body)}"
    return f"POST /webhooks/shop HTTP/1.1\r\nHost: localhost\r\n{head}\r\n\r\n".encode() + body


def _kind(count: int) -> str:
    return "even" if count % 2 == 0 else "odd"


@pytest.mark.parametrize(
    ("database", "jobs"),
    [("sqlite", SEVERAL), ("postgresql", SEVERAL), ("sqlite", ONE)],
    ids=["sqlite", "postgresql", "fast"],
)
def test_what_was_answered_is_there_and_has_its_runs(
    request: pytest.FixtureRequest, tmp_path: Path, database: str, jobs: str
) -> None:
    url = request.getfixturevalue("fresh_postgres_place").url if database == "postgresql" else ""
    settings = {"SCHEDULER_QUEUES": "default", "SHOP_SECRET": SECRET}
    if url:
        settings["SCHEDULER_LEASE"] = "5s"
    world = World(tmp_path, "ingest", url, **settings)
    world.config.write_text(SOURCE + jobs)
    world.start()
    senders = Senders(world.state / "schedctl.sock")
    chance = random.Random(database)
    senders.start()
    try:
        for _ in range(KILLS):
            _wait_for(senders, senders.count() + 1)
            before, since = senders.count(), time.monotonic()
            _wait_for(senders, before + BETWEEN)
            threading.Event().wait(chance.uniform(0, 0.2))
            print(f"{database}: {(senders.count() - before) / (time.monotonic() - since):.0f}/s")
            world.kill()
            world.start()
    finally:
        senders.stop()
        world.stop()
    stored = {row[0]: row[1] for row in world._rows("SELECT id, type FROM events")}
    runs = Counter(world._rows("SELECT job, key FROM runs WHERE job <> '_canary'"))

    assert not senders.strange
    assert len(senders.answered) > KILLS * BETWEEN
    assert senders.answered <= stored.keys() <= senders.sent
    assert runs == Counter(
        (job, f"event:shop:{name}")
        for name, kind in stored.items()
        for job in ("every", "ordered", "some")
        if f"  {job}:" in jobs and (job != "some" or kind == "even")
    )


def _wait_for(senders: Senders, answers: int) -> None:
    patience = time.monotonic() + 30
    while senders.count() < answers:
        assert time.monotonic() < patience, "too little was answered within 30 seconds"
        threading.Event().wait(0.005)
