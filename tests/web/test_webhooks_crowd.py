"""The same events over many connections at once, into the real inbox."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor

from scheduler.core.event_queries import EventFilter
from scheduler.store.store import SqlStore
from tests.faces import Faces
from tests.long import LONG
from tests.web.hooks import SECRET, body_of, request

EVENTS = 1_000 if LONG else 100
TELLERS = 10
TEXT = """
version: 1
sources:
  payments:
    signature: {scheme: hmac, header: X-Signature, prefix: "sha256=", secrets: [{env: SECRET}]}
    event: {id: event_id, type: event}
jobs:
  ticket: {on_event: {source: payments}, command: [x]}
"""


def test_each_event_is_one_row_and_one_run_however_often_it_is_told_at_once(store: SqlStore) -> None:
    faces = Faces(store, TEXT)
    faces.environ["SECRET"] = SECRET
    faces.rig.inbox.start()
    try:
        with faces.served() as served, ThreadPoolExecutor(TELLERS) as tellers:
            address = served.server.address
            assert address is not None
            answers = list(tellers.map(lambda _: _tell_all(address), range(TELLERS)))
    finally:
        faces.rig.inbox.stop()
    assert [statuses for statuses, _ in answers] == [[202] * EVENTS] * TELLERS
    assert sum(new for _, new in answers) == EVENTS
    runs = faces.rig.runs("ticket")
    assert len(runs) == EVENTS
    assert len({run.key for run in runs}) == EVENTS
    with store.queries() as queries:
        events = queries.events(EventFilter(), 2 * EVENTS).events
    assert len(events) == EVENTS
    assert {one.duplicates for one in events} == {TELLERS - 1}


def _tell_all(address: tuple[str, int]) -> tuple[list[int], int]:
    """Every event over one connection: the answers' statuses, and how many were new."""
    statuses: list[int] = []
    new = 0
    with socket.create_connection(address, timeout=30) as connected:
        for number in range(EVENTS):
            connected.sendall(request(body_of(f"e{number}"), {"Connection": "keep-alive"}))
            answer = b""
            while not answer.endswith(b"}"):
                part = connected.recv(65536)
                assert part, answer
                answer += part
            statuses.append(int(answer.split(b" ")[1]))
            new += answer.endswith(b'"duplicate":false}')
    return statuses, new
