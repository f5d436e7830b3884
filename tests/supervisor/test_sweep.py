"""What a starting daemon finds running."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from scheduler.supervisor import linux
from scheduler.supervisor.sweep import sweep
from tests.supervisor.harness import alive, token, wait_until

# A sweep looks at the whole machine, so that tests in other processes must not share these.
RUN, OTHER = str(uuid.uuid4()), str(uuid.uuid4())


class Started:
    def __init__(self) -> None:
        self.processes: list[subprocess.Popen[bytes]] = []

    def __call__(self, run: str | None, script: str) -> None:
        env = {"PATH": os.environ["PATH"]} | ({} if run is None else {"SCHED_RUN_ID": run})
        self.processes.append(subprocess.Popen(["/bin/sh", "-c", script], env=env, start_new_session=True))


@pytest.fixture
def start() -> Iterator[Started]:
    started = Started()
    yield started
    for process in started.processes:
        process.kill()
        process.wait()


def since() -> float:
    """Long before any process of this test."""
    return linux.boottime() - 60


def ready(mark: str, count: int) -> None:
    def sleeping() -> bool:
        names = [Path(f"/proc/{pid}/comm").read_text() for pid in alive(mark)]
        return names.count("sleep\n") == count

    wait_until(sleeping)


def test_only_processes_of_the_runs_are_ended(start: Started) -> None:
    ours, others = token(), token()
    start(RUN, f"exec sleep {ours}")
    start(RUN, f"env -u SCHED_RUN_ID sleep {ours} & wait")
    start(OTHER, f"exec sleep {others}")
    start(None, f"exec sleep {others}")
    ready(ours, 2)
    ready(others, 2)
    ended = sweep({RUN}, since=since())
    assert ended == 3
    assert alive(ours) == []
    assert len(alive(others)) == 2


def test_what_ignores_term_is_killed(start: Started) -> None:
    mark = token()
    start(RUN, f"trap '' TERM; sleep {mark} & wait")
    ready(mark, 1)
    assert sweep({RUN}, since=since(), kill_after=0.3) >= 1
    assert alive(mark) == []


def test_what_is_older_than_the_former_daemon_is_not_of_it(start: Started) -> None:
    mark = token()
    start(RUN, f"exec sleep {mark}")
    ready(mark, 1)
    assert sweep({RUN}, since=linux.boottime() + 60) == 0
    assert sweep({RUN}, since=None) == 0
    assert sweep(set(), since=since()) == 0
    assert len(alive(mark)) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="NEEDS ROOT: another user's process is needed")
def test_other_users_are_left_alone_unless_named(start: Started) -> None:
    mark = token()
    start(RUN, f"exec setpriv --reuid 65534 --clear-groups sleep {mark}")
    ready(mark, 1)
    assert sweep({RUN}, since=since()) == 0
    assert sweep({RUN}, since=since(), users=[65534]) == 1
    assert alive(mark) == []


def test_a_daemon_inside_a_run_does_not_end_itself() -> None:
    text = (
        "import os, sys; sys.path.insert(0, sys.argv[1])\n"
        "from scheduler.supervisor.sweep import sweep\n"
        "print(sweep({os.environ['SCHED_RUN_ID']}, since=0.0))"
    )
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    done = subprocess.run(
        ["/bin/sh", "-c", '"$@"; exit $?', "sh", sys.executable, "-c", text, root],
        env={"SCHED_RUN_ID": RUN, "PATH": os.environ["PATH"]},
        stdout=subprocess.PIPE,
        check=True,
    )
    assert done.stdout == b"0\n"
