"""Reading /proc, signalling without mistaking anybody, and marks."""

from __future__ import annotations

import builtins
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scheduler.supervisor import processes
from scheduler.supervisor.marks import Marks
from tests.supervisor.harness import wait_until

ROOT = str(Path(__file__).parents[2])


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "600"])
    yield process
    process.kill()
    process.wait()


def test_a_name_with_parentheses_and_blanks(tmp_path: Path) -> None:
    path = tmp_path / "a) S 1 ("
    path.symlink_to("/bin/sleep")
    process = subprocess.Popen([str(path), "600"])
    wait_until(lambda: b"a) S 1 (" in Path(f"/proc/{process.pid}/stat").read_bytes())
    found = processes.read(process.pid)
    assert found
    assert (found.parent, found.session, found.dead) == (os.getpid(), os.getsid(0), False)
    process.kill()
    process.wait()
    assert processes.read(process.pid) is None


def test_a_reused_number_is_not_signalled(sleeper: subprocess.Popen[bytes]) -> None:
    found = processes.read(sleeper.pid)
    assert found
    stale = processes.Process(found.pid, found.parent, found.group, found.session, found.started - 1, "S", 1)
    assert not processes.send(stale, signal.SIGKILL)
    assert sleeper.poll() is None
    assert processes.send(found, signal.SIGKILL)
    assert sleeper.wait() == -signal.SIGKILL
    assert not processes.send(found, signal.SIGKILL)


@pytest.mark.parametrize("listed", [True, False])
def test_children_with_and_without_the_kernels_list(
    sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch, listed: bool
) -> None:
    def without(path: Any, *rest: Any, **more: Any) -> Any:
        if str(path).endswith("/children"):
            raise FileNotFoundError(path)
        return builtins.open(path, *rest, **more)

    if not listed:
        monkeypatch.setattr(processes, "_KERNEL_LISTS_CHILDREN", False)
        monkeypatch.setattr(processes, "open", without, raising=False)
    assert sleeper.pid in processes.children_of(os.getpid())
    assert processes.children_of(sleeper.pid) == []
    assert [process.pid for process in processes.below([sleeper.pid])] == [sleeper.pid]
    assert sleeper.pid in [process.pid for process in processes.below([os.getpid()])]


MARKS = """
import os, resource, sys
sys.path.insert(0, sys.argv[1])
hard = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_MSGQUEUE, (hard // 2, hard))
from scheduler.supervisor.marks import Marks
from scheduler.supervisor.processes import mark_of
marks = Marks()
first, second = marks.take(), marks.take()
own = marks.slot_of(mark_of(os.getpid()))
marks.give_back(first)
again = marks.take()
marks.put_on(second)
print(first, second, again, own, marks.slot_of(mark_of(os.getpid())), marks.slot_of(None), marks.slot_of(10**9))
"""


@pytest.mark.parametrize(
    ("hard", "seen"),
    [(819200, "2"), (3, "2"), (2, "None"), (0, "None")],
)
def test_marks(hard: int, seen: str) -> None:
    command = [sys.executable, "-I", "-S", "-c", MARKS, ROOT, str(hard)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout.split() == ["1", "2", "1", "None", seen, "None", "None"]


def test_marks_below_an_unlimited_hard_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = [resource.RLIM_INFINITY, resource.RLIM_INFINITY]
    monkeypatch.setattr(resource, "getrlimit", lambda _kind: tuple(limit))
    monkeypatch.setattr(resource, "setrlimit", lambda _kind, limits: limit.__setitem__(slice(None), limits))
    marks = Marks()
    marks.put_on(marks.take())
    assert limit[0] > 1 << 30
    assert limit[1] == resource.RLIM_INFINITY
    assert marks.slot_of(limit[0]) == 1
