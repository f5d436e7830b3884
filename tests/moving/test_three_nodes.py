"""docs/operations.md: from one machine with SQLite to three nodes, by the five commands that stand there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from tests.daemon.instants import JOBS, started
from tests.daemon.waiting import wait_for
from tests.docs.markdown import DOCS, ROOT, commands, sections
from tests.moving import machine

HEADING = "From one machine with SQLite to three nodes on PostgreSQL"
COMMANDS = commands(sections((DOCS / "operations.md").read_text("utf-8"), 2)[HEADING])
HOSTS = ("one", "two", "three")


@pytest.fixture
def hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Path]]:
    """Machines with schedulerd on them; what still runs there at the end is killed."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, does in {
        "systemctl": "-m tests.moving.machine systemctl",
        "ssh": "-m tests.moving.machine ssh",
        "schedctl": "-c 'import sys; from scheduler.cli.main import main; sys.exit(main())'",
    }.items():
        (programs / name).write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} {does} "$@"\n')
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    # Not below tmp_path: the path of a socket has no room for so long a name.
    with tempfile.TemporaryDirectory(prefix="moving-") as folder:
        found = {name: Path(folder) / name for name in HOSTS}
        for root in found.values():
            machine.state(root).mkdir(parents=True)
        yield found
        for root in found.values():
            if (root / "pid").exists():
                with suppress(ProcessLookupError):
                    os.kill(int((root / "pid").read_text()), signal.SIGKILL)


def typed(command: str, root: Path) -> str:
    """Typed on that machine, in a checkout: `/` is its folder, there and wherever ssh leads."""
    command = command.replace("-C / ", '-C "$ROOT" ').replace(" /etc/", ' "$ROOT"/etc/')
    done = subprocess.run(
        ["/bin/sh", "-ec", command],
        cwd=ROOT,
        env=machine.surroundings(root),
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def test_there_are_five() -> None:
    assert len(COMMANDS) == 5


@pytest.mark.timeout(240)
def test_nothing_is_lost_or_doubled_on_the_way(hosts: dict[str, Path], tmp_path: Path, empty_postgres_url: str) -> None:
    one, file = hosts["one"], tmp_path / "instants"
    (one / "etc/schedulerd/credentials").mkdir(parents=True)
    (one / "etc/schedulerd/jobs.yaml").write_text(JOBS.format(file=file))
    (one / "etc/schedulerd/credentials/database-url").write_text(empty_postgres_url + "\n")
    typed("systemctl start schedulerd", one)
    wait_for(lambda: len(started(file)) >= 3, 20, "the job runs")

    said = [typed(command, one) for command in COMMANDS]
    assert "numbers and audits agree" in said[1]
    reached = len(started(file))

    def schedctl(host: str, *words: str) -> object:
        socket = machine.state(hosts[host]) / "schedctl.sock"
        return json.loads(typed(f"SCHEDULER_SOCKET={socket} schedctl {' '.join(words)} -o json", hosts[host]))

    for host in HOSTS:
        nodes = schedctl(host, "nodes")
        assert isinstance(nodes, list | dict)
        rows = nodes if isinstance(nodes, list) else nodes["nodes"]
        assert [node["state"] for node in rows].count("live") == 3, nodes
    wait_for(lambda: len(started(file)) >= reached + 3, 30, "the job runs on")
    # The machine that all began with is not special.
    assert machine.stop(one) == 0
    reached = len(started(file))
    wait_for(lambda: len(started(file)) >= reached + 3, 30, "the others go on without it")
    audit = schedctl("three", "audit")
    assert isinstance(audit, dict)
    assert audit["clean"], audit
    assert machine.stop(hosts["two"]) == machine.stop(hosts["three"]) == 0

    assert max(started(file).values()) == 1
    with psycopg.connect(empty_postgres_url) as connection:
        ran = connection.execute("SELECT scheduled_for FROM runs WHERE job <> '_canary'").fetchall()
        skipped = connection.execute("SELECT first, last FROM skips WHERE job <> '_canary'").fetchall()
    covered = Counter(round(at.timestamp()) for (at,) in ran if at is not None)
    for first, last in skipped:
        covered.update(range(round(first.timestamp()), round(last.timestamp()) + 1))
    assert max(covered.values()) == 1
    assert sorted(covered) == list(range(min(covered), max(covered) + 1))
