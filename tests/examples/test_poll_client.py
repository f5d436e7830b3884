"""The example that polls: how often, how long, and when it gives up."""

from __future__ import annotations

import importlib.util
import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from scheduler.core.access import Role
from scheduler.store.store import SqlStore
from tests.databases import Place
from tests.faces import Faces

FILE = Path(__file__).parents[2] / "examples" / "poll_client.py"
RUNNING = (200, {"status": "RUNNING", "progress": 40.0, "message": "half"}, {})
DONE = (200, {"status": "COMPLETED", "progress": None, "message": None}, {})
AWAY = (503, {"title": "unavailable", "status": 503, "detail": "the database is away"}, {})


@pytest.fixture(scope="module")
def poll_client() -> Any:
    spec = importlib.util.spec_from_file_location("poll_client", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Scripted:
    """A server that gives these answers, and then the last one for ever. None: it hangs up without an answer."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, Any, dict[str, str]] | None] = []
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        script = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                script.asked.append((self.command, self.path, dict(self.headers)))
                answer = script.answers.pop(0) if len(script.answers) > 1 else script.answers[0]
                if answer is None:
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                status, body, headers = answer
                text = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                for name, value in {"Content-Length": str(len(text)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(text)

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                self.do_GET()

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self._thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self._thread.join()
        self.server.server_close()


@pytest.fixture
def server() -> Iterator[Scripted]:
    scripted = Scripted()
    yield scripted
    scripted.close()


@pytest.fixture
def slept() -> list[float]:
    return []


@pytest.fixture
def client(poll_client: Any, server: Scripted, slept: list[float]) -> Any:
    return poll_client.Client(
        server.url, "sched_x", sleep=slept.append, uniform=lambda low, high: high, say=lambda text: None
    )


def test_it_looks_every_five_seconds_give_or_take_one(client: Any, server: Scripted, slept: list[float]) -> None:
    server.answers = [RUNNING, RUNNING, RUNNING, DONE]
    assert client.wait("r") == "COMPLETED"
    assert slept == [6.0, 6.0, 6.0]
    assert {path for _, path, _ in server.asked} == {"/v1/runs/r/status"}
    assert {headers["Authorization"] for _, _, headers in server.asked} == {"Bearer sched_x"}


def test_it_waits_longer_after_each_failure_and_starts_anew_after_a_success(
    client: Any, server: Scripted, slept: list[float]
) -> None:
    server.answers = [AWAY, None, (500, b"<html>", {}), (200, b"no json", {}), RUNNING, AWAY, DONE]
    assert client.wait("r") == "COMPLETED"
    assert slept == [1.0, 2.0, 4.0, 8.0, 6.0, 1.0]


def test_it_gives_up_after_five_failures_in_a_row(
    poll_client: Any, client: Any, server: Scripted, slept: list[float]
) -> None:
    server.answers = [AWAY]
    with pytest.raises(poll_client.GivenUp, match=r"failed 5 times in a row.*503: the database is away"):
        client.wait("r")
    assert slept == [1.0, 2.0, 4.0, 8.0]
    assert len(server.asked) == 5


def test_it_waits_as_long_as_the_server_says(client: Any, server: Scripted, slept: list[float]) -> None:
    server.answers = [(429, {"detail": "slowly"}, {"Retry-After": "90"}), (503, b"", {"Retry-After": "soon"}), DONE]
    client.wait("r")
    assert slept == [90.0, 2.0]


def test_what_is_refused_is_not_tried_again(
    poll_client: Any, client: Any, server: Scripted, slept: list[float]
) -> None:
    server.answers = [(409, {"detail": "another payload", "hint": "use a new key"}, {})]
    with pytest.raises(poll_client.Wrong, match=r"another payload \(use a new key\)"):
        client.start("job", 1)
    assert (slept, len(server.asked)) == ([], 1)


def test_a_server_that_does_not_answer_has_failed(poll_client: Any, slept: list[float]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        client = poll_client.Client(url, timeout=0.05, sleep=slept.append, say=lambda text: None)
        with pytest.raises(poll_client.GivenUp, match="timed out"):
            client.wait("r")
    assert slept == [1.0, 2.0, 4.0, 8.0]


def test_asking_again_is_the_same_request(client: Any, server: Scripted) -> None:
    made = {"run_id": "r", "status": "PENDING", "queue_position": 3}
    server.answers = [None, AWAY, (202, made, {})]
    assert client.start("a/b", {"order": 17}) == "r"
    assert {path for _, path, _ in server.asked} == {"/v1/jobs/a%2Fb/runs"}
    assert len({headers["Idempotency-Key"] for _, _, headers in server.asked}) == 1


def test_against_the_daemon(
    poll_client: Any, sqlite_place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    store: SqlStore = sqlite_place.open()
    faces = Faces(store)
    (tmp_path / "token").write_text(faces.gate.create("me", Role.OPERATE, author="test")[1] + "\n")
    monkeypatch.setenv("SCHEDULERD_TOKEN_FILE", str(tmp_path / "token"))
    with faces.served() as served:
        assert served.server.address is not None
        url = "http://{}:{}".format(*served.server.address)
        token = (tmp_path / "token").read_text().strip()
        client = poll_client.Client(url, token, sleep=lambda seconds: (faces.rig.tick(), faces.rig.finish()))
        assert client.wait(client.start("ticket", {"order": 17})) == "COMPLETED"
        assert capsys.readouterr().err.splitlines()[-1] == "COMPLETED"
        assert poll_client.main(["nope", "1", url]) == 2
        assert "no job 'nope'" in capsys.readouterr().err
        assert poll_client.main([]) == poll_client.main(["--help"]) == 2
        assert poll_client.main(["ticket", "{", url]) == 2
        assert poll_client.main(["ticket", "1", "ftp://x"]) == 2
    store.close()
