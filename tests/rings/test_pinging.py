"""One ping over a real socket: what counts as taken, and what is said when it is not."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from scheduler.core.ping import FAIL, START, SUCCESS, Answer, address
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


@contextmanager
def echo(answer: Callable[[str], str]) -> Iterator[str]:
    """A service that refuses everything, in words made of the path and query that it was asked for; its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            data = answer(self.path).encode()
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(404)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def _in_json(path: str) -> str:
    return json.dumps({"status": 404, "path": path})


def _escaped(path: str) -> str:
    return json.dumps({"path": path}).replace("/", "\\/")


@pytest.mark.parametrize("signal", [START, SUCCESS, FAIL, "3"])
@pytest.mark.parametrize("answer", [_in_json, _escaped, "no route to {}".format, "no check {0!r}, {0}".format])
def test_what_the_other_side_repeats_is_masked(answer: Callable[[str], str], signal: str) -> None:
    with echo(answer) as place:
        url = address(f"http://{place}/key-4711/{SECRET}?token=t0ken%2Fvalue", signal, "0198b6a2-3f4e-7c31-9d27")
        problem = Sender("me/1")(url, b"").problem
    assert problem is not None
    assert problem.startswith("it answered 404: ")
    assert "***" in problem
    for part in ("4711", "0d3a", "secret", "t0ken", "value"):
        assert part not in problem


def test_words_that_are_no_secret_stay_whole() -> None:
    with echo(lambda path: f"failed to start; see status.example, not {path}") as place:
        problem = Sender("me/1")(address(f"http://{place}/{SECRET}", START), b"").problem
    assert problem == "it answered 404: failed to start; see status.example, not ***"


@pytest.mark.parametrize("before", range(164, 190, 5))
def test_nor_is_the_beginning_of_it_left_where_an_answer_is_cut(before: int) -> None:
    with echo(lambda path: "x" * before + "http://proxy" + path) as place:
        problem = Sender("me/1")(f"http://{place}/{SECRET}", b"").problem
    assert problem is not None
    assert SECRET[:4] not in problem


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
