"""One ping over a real socket: what counts as taken, and what is said when it is not."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from datetime import timedelta

import pytest

from scheduler.core.ping import Answer
from scheduler.observe.pinging import Sender
from tests.rings.healthchecks import Healthchecks, healthchecks

SECRET = "0d3a5f8e-very-secret"


@pytest.fixture
def service() -> Iterator[Healthchecks]:
    with healthchecks(limit=4_000) as made:
        yield made


def test_taken(service: Healthchecks) -> None:
    check = service.check()
    assert Sender("me/1")(service.ping_url(check), "höhö\n".encode()) == Answer(limit=4_000)
    (heard,) = service.heard
    assert (heard.body.decode(), heard.method, heard.agent) == ("höhö\n", "POST", "me/1")


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        (f"/{SECRET}", "it answered 404: not found"),
        ("/{code}/256", "it answered 400: invalid url format"),
        ("/{code}?rid=7", "it answered 400: invalid uuid format"),
    ],
)
def test_refused(service: Healthchecks, path: str, reason: str) -> None:
    answer = Sender("me/1")(service.url + path.format(code=service.check().code), b"")
    assert answer.problem == reason
    assert service.heard == []


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [
        ("reset", "the connection broke: RemoteDisconnected"),
        ("silent", "no answer within 0.2 s"),
        (502, "it answered 502: busy"),
    ],
)
def test_in_trouble(service: Healthchecks, trouble: str | int, reason: str) -> None:
    service.fall(trouble)
    assert Sender("me/1", 0.2)(service.ping_url(service.check()), b"x").problem == reason


def test_nobody_there() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        answer = Sender("me/1")(f"http://127.0.0.1:{taken.getsockname()[1]}/{SECRET}", b"")
    assert answer.problem == "it cannot be reached: Connection refused"


@pytest.mark.parametrize(
    "url",
    [
        f"http://name.invalid/{SECRET}",
        f"http://[::1/{SECRET}",
        f"http://127.0.0.1:port/{SECRET}",
        f"http://a b/{SECRET}",
    ],
)
def test_no_url_occurs_in_what_is_said(url: str) -> None:
    problem = Sender("me/1", 2.0)(url, b"").problem
    assert problem is not None
    assert "secret" not in problem


def test_it_asks_to_be_left_alone() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(20)

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(
                    b"HTTP/1.1 429 Too Many\r\nRetry-After: 90\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                )

        thread = threading.Thread(target=answer)
        thread.start()
        found = Sender("me/1")(f"http://127.0.0.1:{server.getsockname()[1]}/x", b"")
        thread.join()
    assert found == Answer("it answered 429", not_sooner=timedelta(seconds=90))
