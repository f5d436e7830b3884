from __future__ import annotations

import asyncio
import errno
import http.client
import os
import pwd
import socket
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from scheduler.core.errors import StartError
from scheduler.web.server import WebServer
from scheduler.web.sockets import bind_tcp, bind_unix
from tests.faces import Faces, Served


@pytest.fixture
def served(faces: Faces) -> Iterator[Served]:
    with faces.served() as found:
        yield found


def ask(path: Path, request: bytes, *, hang_up: bool = False) -> bytes:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(10)
        client.connect(str(path))
        client.sendall(request)
        if hang_up:
            client.shutdown(socket.SHUT_WR)
        answer = b""
        while part := client.recv(65536):
            answer += part
        return answer


def test_the_socket_is_for_owner_and_group(served: Served) -> None:
    assert stat.S_IMODE(served.socket.stat().st_mode) == 0o660


def test_who_acts_on_the_socket_is_known_by_the_kernel(served: Served) -> None:
    body = b'{"payload": 1}'
    head = f"POST /v1/jobs/ticket/runs HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    assert b"202 Accepted" in ask(served.socket, head.encode() + body)
    (run,) = served.rig.runs("ticket")
    assert run.author == pwd.getpwuid(os.getuid()).pw_name


def test_an_answer_over_tcp_does_not_wait_for_an_acknowledgement(served: Served) -> None:
    """Else each would take 40 ms."""
    assert served.server.address is not None
    connection = http.client.HTTPConnection(*served.server.address, timeout=10)
    connection.request("GET", "/healthz")
    connection.getresponse().read()
    (face,) = [one for one in served.server._faces if one.name == "tcp"]
    (inside,) = face.door._inside
    bound = inside.transport.get_extra_info("socket")  # type: ignore[attr-defined]
    assert bound.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
    connection.close()


def test_no_answer_is_kept_or_guessed_at(served: Served) -> None:
    answer = ask(served.socket, b"GET /v1/tokens HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert b"\r\ncache-control: no-store\r\n" in answer
    assert b"\r\nx-content-type-options: nosniff\r\n" in answer


def test_tcp_reads_and_does_not_act(served: Served) -> None:
    assert served.server.address is not None
    connection = http.client.HTTPConnection(*served.server.address, timeout=10)
    connection.request("GET", "/v1/jobs")
    answer = connection.getresponse()
    assert (answer.status, len(answer.read()) > 0) == (200, True)
    connection.request("POST", "/v1/jobs/ticket/runs")
    answer = connection.getresponse()
    assert answer.status == 401
    answer.read()
    connection.close()


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\x00 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /v1/reload HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /v1/reload HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\nzz\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /v1/jobs HTTP/1.1\r\n" + b"X: y\r\n" * 20_000 + b"\r\n",
    ],
    ids=range(7),
)
def test_what_is_no_http_is_refused_and_the_server_goes_on(served: Served, request_bytes: bytes) -> None:
    try:
        answer = ask(served.socket, request_bytes, hang_up=True)
    except (BrokenPipeError, ConnectionResetError):
        answer = b""
    assert not answer or answer.split(b" ")[1][:1] == b"4"
    assert b"200 OK" in ask(served.socket, b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")


def test_stop_removes_the_socket_and_lets_a_waiting_request_finish(faces: Faces) -> None:
    with socket.socket(socket.AF_UNIX) as waiting:
        waiting.settimeout(10)
        with faces.served() as served:
            assert served.schedctl("run-now", "ticket") == 0
            (run,) = served.rig.runs("ticket")
            waiting.connect(str(served.socket))
            waiting.sendall(f"GET /v1/runs/{run.id}?wait=1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
            assert served.schedctl("list") == 0  # Who comes later and is answered: so the one before is inside.
            path = served.socket
        assert not path.exists()
        assert waiting.recv(65536).startswith(b"HTTP/1.1 200")


def test_stop_does_not_hang_on_a_client_that_never_asks(faces: Faces) -> None:
    begun = time.monotonic()
    with faces.served() as served, socket.socket(socket.AF_UNIX) as idle:
        idle.connect(str(served.socket))
        idle.sendall(b"GET /v1/jobs HTTP/1.1\r\n")
        served.server.stop()
    assert time.monotonic() - begun < 8


def test_who_comes_while_the_server_stops_does_not_hold_it_up(faces: Faces, monkeypatch: pytest.MonkeyPatch) -> None:
    with faces.served() as served, socket.socket(socket.AF_UNIX) as late:
        assert served.schedctl("list") == 0
        late.settimeout(10)
        (face,) = [one for one in served.server._faces if one.name == "socket"]
        ticks = face.server.on_tick

        async def come_between(counter: int) -> bool:
            over = await ticks(counter)
            if over:
                late.connect(str(served.socket))
                await asyncio.sleep(0)  # It is accepted, and known when the server has begun to stop.
            return over

        monkeypatch.setattr(face.server, "on_tick", come_between)
        begun = time.monotonic()
        served.server.stop()
        assert time.monotonic() - begun < 3
        assert b"503 Service Unavailable" in late.recv(65536)


def test_a_stale_socket_is_replaced_and_a_live_one_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("s.sock")
    bind_unix(path).close()
    assert path.is_socket()
    live = bind_unix(path)
    with pytest.raises(StartError, match="another daemon serves"):
        bind_unix(path)
    live.close()
    assert sorted(os.listdir()) == ["s.sock"]


def test_what_is_no_socket_is_not_removed(tmp_path: Path) -> None:
    path = tmp_path / "s.sock"
    path.write_text("precious")
    with pytest.raises(StartError, match="no socket"):
        bind_unix(path)
    assert path.read_text() == "precious"


def test_a_path_that_is_too_long_is_told(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="bytes, the system takes 103"):
        bind_unix(tmp_path / ("x" * 120))


def test_a_folder_that_is_not_there_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StartError, match="cannot make the socket"):
        bind_unix(Path("missing/s.sock"))


def test_a_port_in_use_is_told(tmp_path: Path) -> None:
    with bind_tcp("127.0.0.1", 0) as taken, pytest.raises(StartError, match=r"cannot listen on 127\.0\.0\.1"):
        bind_tcp("127.0.0.1", taken.getsockname()[1])


@pytest.mark.parametrize(
    ("why", "told", "remedy"),
    [
        (OSError(errno.EADDRNOTAVAIL, "x (while attempting to bind on x)"), "Cannot assign", "of this machine"),
        (OSError(errno.EACCES, "x (while attempting to bind on x)"), "Permission denied", "a port from 1024 on"),
        (
            OSError(errno.EADDRINUSE, "x (while attempting to bind on x)"),
            "Address already in use",
            "stop what holds it",
        ),
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "Name or service", "of this machine"),
    ],
    ids=["address", "low", "taken", "name"],
)
def test_an_address_that_cannot_be_had_is_told_with_what_helps(
    monkeypatch: pytest.MonkeyPatch, why: OSError, told: str, remedy: str
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise why

    monkeypatch.setattr(socket, "create_server", refuse)
    with pytest.raises(StartError) as caught:
        bind_tcp("192.0.2.1", 80)
    assert caught.value.reason.startswith(f"cannot listen on 192.0.2.1:80: {told}")
    assert "attempting" not in caught.value.reason
    assert remedy in str(caught.value.hint)


def test_open_leaves_nothing_behind_when_it_fails(faces: Faces, tmp_path: Path) -> None:
    reading, acting = faces.apps()
    server = WebServer(reading, acting, ("127.0.0.1", 0), tmp_path / ("x" * 120))
    with pytest.raises(StartError):
        server.open()
    server.stop()
