"""A database that is away when the daemon starts is waited for; one that can never be reached is not."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from contextlib import closing, suppress
from pathlib import Path

import psycopg.conninfo
import pytest

from tests.crash.world import World
from tests.daemon.conftest import Make
from tests.daemon.test_start import JOBS, refused
from tests.daemon.waiting import wait_for
from tests.databases import Place


class Forwarder:
    """A TCP port that leads to the server's Unix socket, for as long as it is open."""

    def __init__(self, target: str, port: int) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", port))
        self._pairs: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.socket(socket.AF_UNIX)
                far.connect(self._target)
                self._pairs += [near, far]
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=_copy, args=(one, other), daemon=True).start()

    def close(self) -> None:
        self._listener.close()
        for one in self._pairs:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


def _copy(one: socket.socket, other: socket.socket) -> None:
    with suppress(OSError):
        while data := one.recv(65536):
            other.sendall(data)
    with suppress(OSError):
        other.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def parts(fresh_postgres_place: Place) -> dict[str, str]:
    return dict(psycopg.conninfo.conninfo_to_dict(fresh_postgres_place.url))


def launch(world: World) -> None:
    """Without waiting until it is ready."""
    with world.log.open("ab") as log:
        world.daemon = subprocess.Popen(
            [sys.executable, "-m", "scheduler.daemon"], env=world.environment(), stdout=log, stderr=log
        )


def answer(world: World, path: str) -> tuple[int, dict[str, object]]:
    try:
        status, body = world.get(path)
    except OSError:
        return 0, {}
    return status, json.loads(body)


@pytest.fixture
def away(make_world: Make, parts: dict[str, str]) -> tuple[World, int]:
    """A daemon whose database server is not there yet, and the port where it will be."""
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
    url = f"postgresql://{parts['user']}@127.0.0.1:{port}/{parts['dbname']}"
    world = make_world(JOBS, SCHEDULER_DATABASE_URL=url)
    launch(world)
    wait_for(lambda: "connection" in str(answer(world, "/readyz")[1]), 20, "the daemon says what it waits for")
    return world, port


def test_it_waits_says_so_and_starts_when_the_server_answers(away: tuple[World, int], parts: dict[str, str]) -> None:
    world, port = away
    assert answer(world, "/healthz")[0] == 200
    assert answer(world, "/readyz")[0] == 503
    status, problem = answer(world, "/v1/jobs")
    assert (status, "the daemon is starting" in str(problem["detail"])) == (503, True)
    assert "database_awaited" in world.tail()
    assert world.daemon is not None
    assert world.daemon.poll() is None
    folder = parts["host"]
    with closing(Forwarder(f"{folder}/.s.PGSQL.{parts.get('port', '5432')}", port)):
        wait_for(lambda: answer(world, "/readyz")[0] == 200, 30, "the daemon is ready")
        assert answer(world, "/v1/jobs")[0] == 200
        assert world.stop() == 0


def test_it_can_be_stopped_while_it_waits(away: tuple[World, int]) -> None:
    world, _ = away
    assert world.stop(timeout=20) == 0
    assert not (world.state / "schedctl.sock").exists()


def test_a_daemon_that_waits_has_its_place(away: tuple[World, int]) -> None:
    world, _ = away
    assert world.daemon is not None
    assert f"in use by the daemon with pid {world.daemon.pid}" in refused(world)


@pytest.mark.parametrize(
    ("part", "hint"), [("dbname", "create the database"), ("user", "create the role")], ids=["database", "user"]
)
def test_what_is_plainly_wrong_is_not_waited_for(make_world: Make, parts: dict[str, str], part: str, hint: str) -> None:
    wrong = {**parts, part: "nobody_made_it"}
    url = f"postgresql://{wrong['user']}@/{wrong['dbname']}?host={wrong['host']}&port={wrong.get('port', '5432')}"
    said = refused(make_world(JOBS, SCHEDULER_DATABASE_URL=url))
    assert '"nobody_made_it" does not exist' in said
    assert hint in said


def test_a_file_that_is_no_database_is_not_waited_for(make_world: Make, tmp_path: Path) -> None:
    world = make_world(JOBS)
    world.state.mkdir()
    (world.state / "scheduler.db").write_bytes(b"something else entirely\n" * 1000)
    said = refused(world)
    assert "not an SQLite database" in said
