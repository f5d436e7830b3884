"""Connections of strangers: whatever they send or do not send, the daemon goes on, and its log stays short."""

from __future__ import annotations

import logging
import random
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest
from structlog.testing import capture_logs

from scheduler.web import connection, door
from tests.faces import Faces, Served
from tests.until import until

ASK = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Patience is short."""
    for name, seconds in (("HEAD_SECONDS", 0.3), ("BODY_SECONDS", 0.3), ("LEFTOVER_SECONDS", 0.2)):
        monkeypatch.setattr(connection, name, seconds)
    monkeypatch.setattr("scheduler.web.server.KEEP_ALIVE_SECONDS", 0.3)
    monkeypatch.setattr(door, "LOOK", 0.05)


@pytest.fixture
def few_places(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("scheduler.web.server.places_for", lambda: 20)
    return 20


@pytest.fixture
def served(faces: Faces, request: pytest.FixtureRequest) -> Iterator[Served]:
    for wanted in ("hasty", "few_places"):
        if wanted in request.fixturenames:
            request.getfixturevalue(wanted)
    with faces.served() as found:
        yield found


def tcp(served: Served) -> socket.socket:
    assert served.server.address is not None
    return socket.create_connection(served.server.address, timeout=10)


def unix(served: Served) -> socket.socket:
    connected = socket.socket(socket.AF_UNIX)
    connected.settimeout(10)
    connected.connect(str(served.socket))
    return connected


def read(connected: socket.socket) -> bytes:
    """All that comes until the other end hangs up."""
    answer = b""
    try:
        while part := connected.recv(65536):
            answer += part
    except ConnectionError:
        pass
    return answer


def ask(connected: socket.socket, request: bytes) -> bytes:
    with connected:
        with suppress(ConnectionError):
            connected.sendall(request)
        return read(connected)


def status(answer: bytes) -> int | None:
    return int(answer.split(b" ")[1]) if answer else None


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("connect", [tcp, unix])
def test_who_says_nothing_is_sent_away(served: Served, connect: Any) -> None:
    with connect(served) as idle:
        assert read(idle) == b""


@pytest.mark.usefixtures("hasty")
def test_a_head_that_comes_in_drops(served: Served) -> None:
    with tcp(served) as slow:
        slow.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ")
        answers: list[bytes] = []
        reader = threading.Thread(target=lambda: answers.append(read(slow)))
        reader.start()
        while reader.is_alive():
            try:
                slow.sendall(b"x")
            except OSError:
                break
            reader.join(0.02)
        reader.join(10)
    assert status(answers[0]) == 408
    assert b"application/problem+json" in answers[0]


@pytest.mark.usefixtures("hasty")
def test_a_body_that_does_not_come(served: Served) -> None:
    head = b"POST /v1/jobs/ticket/runs HTTP/1.1\r\nHost: x\r\nContent-Length: 20\r\n\r\n"
    answer = ask(unix(served), head + b'{"payload":')
    assert status(answer) == 408
    assert served.rig.runs() == []


@pytest.mark.usefixtures("hasty")
def test_a_body_that_nobody_wants_any_more(served: Served) -> None:
    answer = ask(tcp(served), b"POST /v1/reload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 20\r\n\r\n{")
    assert status(answer) in (401, 403)


@pytest.mark.usefixtures("hasty")
def test_patience_begins_anew_with_each_request(served: Served) -> None:
    with unix(served) as kept:
        for _ in range(3):
            threading.Event().wait(0.2)
            kept.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            answer = b""
            while not answer.endswith(b"}"):
                part = kept.recv(65536)
                assert part, "it was sent away"
                answer += part


@pytest.mark.usefixtures("hasty")
def test_a_long_answer_is_not_cut(served: Served) -> None:
    """Waiting for the daemon is not the client's fault."""
    assert served.schedctl("run-now", "ticket") == 0
    (run,) = served.rig.runs("ticket")
    answer = ask(
        unix(served), f"GET /v1/runs/{run.id}?wait=1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()
    )
    assert status(answer) == 200


@pytest.mark.usefixtures("few_places")
def test_a_crowd_that_says_nothing_shuts_nobody_out(served: Served) -> None:
    with ExitStack() as stack:
        for _ in range(60):
            stack.enter_context(tcp(served))
        assert status(ask(tcp(served), ASK)) == 200
        assert status(ask(unix(served), ASK)) == 200


@pytest.mark.usefixtures("few_places")
def test_those_who_are_served_keep_their_places(served: Served) -> None:
    assert served.schedctl("run-now", "ticket") == 0
    (run,) = served.rig.runs("ticket")
    wait = f"GET /v1/runs/{run.id}?wait=3 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()
    with ExitStack() as stack:
        waiting = [stack.enter_context(unix(served)) for _ in range(20)]
        for one in waiting:
            one.sendall(wait)
        (face,) = [one for one in served.server._faces if one.name == "socket"]
        until(lambda: [one.silent_since for one in face.door._inside] == [None] * 20)
        assert status(ask(unix(served), ASK)) == 503
        assert status(ask(tcp(served), ASK)) == 200
        assert {status(read(one)) for one in waiting} == {200}
    assert status(ask(unix(served), ASK)) == 200


def test_an_answer_that_nobody_takes(served: Served, faces: Faces, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "STALL_SECONDS", 0.3)
    monkeypatch.setattr(door, "LOOK", 0.05)
    assert served.schedctl("run-now", "ticket") == 0
    (run,) = served.rig.runs("ticket")
    faces.rig.tick()
    faces.live[run.id] = b"x" * (8 << 20)
    with unix(served) as greedy:
        greedy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        greedy.sendall(f"GET /v1/runs/{run.id}/log HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        (face,) = [one for one in served.server._faces if one.name == "socket"]
        until(lambda: len(face.door) == 1)
        until(lambda: len(face.door) == 0)
        assert len(read(greedy)) < 8 << 20


@pytest.mark.parametrize("path", ["/webhooks/nobody", "/v1/nowhere"])
def test_who_takes_no_answers_is_asked_nothing_more(served: Served, path: str) -> None:
    """They would all be kept for them."""
    one = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nX: {'y' * 8_000}\r\n\r\n".encode()
    with tcp(served) as connected:
        connected.settimeout(1)
        with pytest.raises(TimeoutError):
            connected.sendall(one * 20_000)


def test_so_many_requests_may_be_ahead_of_their_answers_and_no_more(served: Served) -> None:
    one = b"GET /v1/nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n"
    last = one.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    assert ask(tcp(served), one * connection.MOST_AHEAD + last).count(b"HTTP/1.1 404 ") == connection.MOST_AHEAD + 1
    large = one.replace(b"Host", b"X: " + b"y" * 5_000 + b"\r\nHost")
    assert ask(tcp(served), large * 60 + last).count(b"HTTP/1.1 404 ") == 61
    refused = ask(tcp(served), one * (connection.MOST_AHEAD + 2))
    assert (status(refused), refused.count(b"HTTP/1.1 ")) == (400, 1)


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 20_000 + b"\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 500_000,
    ],
    ids=["path", "headers", "endless"],
)
def test_a_head_has_its_limit(served: Served, request_bytes: bytes) -> None:
    assert status(ask(unix(served), request_bytes)) in (431, None)


def test_a_head_that_begins_in_the_chunk_of_a_body_has_its_limit_too(served: Served) -> None:
    first = b"POST /v1/nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\n"
    second = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 70_000
    with tcp(served) as connected:
        connected.sendall(first)
        connected.sendall(b"body" + second)
        connected.sendall(b"\r\nConnection: close\r\n\r\n")
        assert b"HTTP/1.1 431 " in read(connected)


def test_another_protocol_is_not_spoken(served: Served) -> None:
    """The request is answered as HTTP, and nothing further is read as if it were."""
    upgrade = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    answer = ask(tcp(served), upgrade)
    assert (status(answer), b"connection: close" in answer) == (200, True)


HEAD = b"Host: localhost\r\n"
MALFORMED = [
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET /\x00 HTTP/1.1\r\n" + HEAD + b"\r\n",
    b"GET /\xff\xfe HTTP/1.1\r\n" + HEAD + b"\r\n",
    b"GET http://[:x/ HTTP/1.1\r\n" + HEAD + b"\r\n",
    b"GET http://host HTTP/1.1\r\n" + HEAD + b"\r\n",
    b"CONNECT host:443 HTTP/1.1\r\n" + HEAD + b"\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nBad Header: x\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\n: x\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: \xff\xfe\r\n\r\n",
    b"POST /v1/reload HTTP/1.1\r\n" + HEAD + b"Content-Length: -1\r\n\r\n",
    b"POST /v1/reload HTTP/1.1\r\n" + HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
    b"POST /v1/reload HTTP/1.1\r\n" + HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST /v1/reload HTTP/1.1\r\n" + HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"POST /v1/reload HTTP/1.1\r\n" + HEAD + b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFFFFF\r\n",
    b"POST /v1/nowhere HTTP/1.1\r\n" + HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhelloXX",
    b"GET /v1/jobs HTTP/1.1\r\n" + HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"GET /v1/jobs HTTP/1.1\r\n" + HEAD + b"\r\nGARBAGE\r\n\r\n",
    b"GET /v1/runs?wait=1 HTTP/1.1\r\n" + HEAD + b"\r\n" + b"\x00" * 100,
]


@pytest.mark.usefixtures("hasty")
def test_what_is_no_http_is_a_short_answer_and_no_traceback(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG), capture_logs() as logs:
        for request_bytes in MALFORMED:
            for connect in (tcp, unix):
                answer = ask(connect(served), request_bytes)
                assert answer[:9] in (b"", b"HTTP/1.1 "), request_bytes
                assert b" 500 " not in answer[:20], request_bytes
        assert status(ask(unix(served), ASK)) == 200
    assert [record for record in caplog.records if record.exc_info or record.levelno >= logging.WARNING] == []
    assert {one["event"] for one in logs} <= {"request_refused"}
    assert len(logs) <= 2


def test_any_bytes_whatever(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    """Good requests with some bytes changed, left out or added."""
    chance = random.Random(7)
    good = [request_bytes for request_bytes in MALFORMED if len(request_bytes) > 30] + [
        ASK,
        b"GET /v1/jobs HTTP/1.1\r\n" + HEAD + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        b"GET /v1/jobs HTTP/1.1\r\n" + HEAD + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\r\n",
        b"POST /v1/reload HTTP/1.1\r\n" + HEAD + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}",
        b"POST /v1/jobs/none/runs HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}",
    ]
    with caplog.at_level(logging.DEBUG), capture_logs() as logs:
        for _ in range(300):
            mutant = bytearray(chance.choice(good))
            for _ in range(chance.randint(0, 3)):
                place = chance.randrange(len(mutant))
                mutant[place : place + chance.randint(0, 2)] = chance.randbytes(chance.randint(0, 2))
            with chance.choice((tcp, unix))(served) as connected:
                connected.sendall(mutant)
                connected.shutdown(socket.SHUT_WR)
                answer = connected.recv(65536) if chance.random() < 0.9 else b""
            assert b" 500 " not in answer[:20], bytes(mutant)
        assert status(ask(unix(served), ASK)) == 200
    assert [record for record in caplog.records if record.exc_info or record.levelno >= logging.WARNING] == []
    assert "request_failed" not in {one["event"] for one in logs}


def test_trouble_that_comes_again_and_again_is_said_once_a_minute() -> None:
    now = [0.0]
    with capture_logs() as logs:
        one = door.Door("tcp", 1)
        one._seldom._clock = lambda: now[0]
        for _ in range(1000):
            one._trouble(None, {"message": "accept", "exception": OSError(24, "Too many open files")})  # type: ignore[arg-type]
        now[0] = 61.0
        one._trouble(None, {"message": "accept"})  # type: ignore[arg-type]
    assert [(line["event"], line["times"]) for line in logs] == [
        ("connection_trouble", 1),
        ("connection_trouble", 1000),
    ]


@pytest.mark.parametrize(("limit", "places"), [(20, 16), (1024, 256), (1 << 20, 512), (-1, 512)])
def test_places_leave_descriptors_for_the_daemon(limit: int, places: int) -> None:
    assert door.places_for(limit) == places
