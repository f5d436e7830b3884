"""Starts that fail, each with one sentence that says why."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import Any

import pytest

from scheduler.core.children import ChildUser as User
from scheduler.supervisor import processes
from scheduler.supervisor.diagnose import explain
from scheduler.supervisor.events import SpawnFailed
from tests.supervisor.harness import Harness, wait_until


def why(supervisor: Harness, *argv: str, **more: Any) -> str:
    spec = supervisor.start("r", *argv, **more)
    failed = supervisor.expect(SpawnFailed, "r")
    assert supervisor.output("r") == b""
    return explain(spec, failed)


def script(folder: Path, content: bytes, mode: int = 0o755) -> str:
    path = folder / "script"
    path.write_bytes(content)
    path.chmod(mode)
    return str(path)


def test_not_found_names_command_and_path(supervisor: Harness) -> None:
    assert why(supervisor, "no-such-cmd-xyz") == (
        "command not found: no-such-cmd-xyz is in no directory of PATH=/usr/local/bin:/usr/bin:/bin"
    )


def test_no_such_file(supervisor: Harness, tmp_path: Path) -> None:
    assert why(supervisor, "bin/tool") == f"command not found: there is no file {tmp_path}/bin/tool"


def test_not_executable(supervisor: Harness, tmp_path: Path) -> None:
    path = script(tmp_path, b"#!/bin/sh\n", 0o644)
    assert why(supervisor, path) == f"{path} is not executable (mode 644): chmod +x it or name its interpreter"


def test_not_executable_in_path(supervisor: Harness, tmp_path: Path) -> None:
    path = script(tmp_path, b"#!/bin/sh\n", 0o644)
    assert why(supervisor, "script", env={"PATH": f"{tmp_path}:/nowhere"}).startswith(f"{path} is not executable")


def test_a_directory(supervisor: Harness, tmp_path: Path) -> None:
    assert why(supervisor, str(tmp_path)) == f"{tmp_path} is a directory, not a program"


def test_interpreter_missing(supervisor: Harness, tmp_path: Path) -> None:
    path = script(tmp_path, b"#! /no/such/interp -x\necho\n")
    assert why(supervisor, path) == f"the interpreter /no/such/interp of {path} is missing"


def test_windows_line_ends(supervisor: Harness, tmp_path: Path) -> None:
    path = script(tmp_path, b"#!/bin/sh\r\necho\r\n")
    assert why(supervisor, path) == (
        f'the interpreter "/bin/sh\\r" of {path} is missing: the file has Windows line ends (CRLF)'
    )


def test_no_shebang(supervisor: Harness, tmp_path: Path) -> None:
    path = script(tmp_path, b"echo hello\n")
    assert "has no shebang (#!) line" in why(supervisor, path)


def test_work_directory_missing(supervisor: Harness, tmp_path: Path) -> None:
    gone = f"{tmp_path}/gone"
    assert why(supervisor, "true", cwd=gone) == f"the work directory {gone} does not exist"


def test_work_directory_is_a_file(supervisor: Harness, tmp_path: Path) -> None:
    path = script(tmp_path, b"")
    assert why(supervisor, "true", cwd=path) == f"the work directory {path} is not a directory"


@pytest.mark.skipif(os.geteuid() != 0, reason="NEEDS ROOT: only root may start children as other users")
def test_permission_of_another_user(supervisor: Harness, tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    told = why(supervisor, "true", user=User(65534, 65534))
    assert told == f"the work directory {tmp_path} may not be entered by user 65534"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may become anybody")
def test_becoming_another_user_without_the_right(supervisor: Harness) -> None:
    assert why(supervisor, "true", user=User(1, 1)).startswith("cannot become user 1")


def test_too_large_for_the_kernel(supervisor: Harness) -> None:
    assert "too large" in why(supervisor, "true", "x" * 200_000)


def test_busy_text_file_is_tried_again(supervisor: Harness, tmp_path: Path) -> None:
    path = tmp_path / "program"
    path.write_bytes(Path("/bin/true").resolve().read_bytes())
    path.chmod(0o755)
    with path.open("ab"):
        supervisor.start("waits", str(path))
        supervisor.sh("other", "exit 5")
        # The busy one holds up nobody else.
        assert supervisor.exited("other").code == 5
        assert not supervisor.inbox.qsize()
    assert supervisor.exited("waits").code == 0


def test_a_child_that_cannot_be_executed_yet_holds_nothing_of_the_supervisor(
    supervisor: Harness, tmp_path: Path
) -> None:
    """Or a stalled one would keep the socket open, and a dead supervisor could not be told from a living one."""
    path = tmp_path / "program"
    path.write_bytes(Path("/bin/true").resolve().read_bytes())
    path.chmod(0o755)
    with path.open("ab"):
        supervisor.start("r", str(path))

        def targets() -> list[str]:
            found = []
            # It is still opening and closing some, and one that cannot be spawned was there before.
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                for pid in processes.children_of(supervisor.client.pid):
                    for fd in Path(f"/proc/{pid}/fd").iterdir():
                        found.append(os.readlink(fd).split(":")[0])
            return sorted(found)

        expected = sorted(["/dev/null", str(tmp_path / "r.out"), str(tmp_path / "r.out"), "pipe"])
        wait_until(lambda: targets() == expected)
    assert supervisor.exited("r").code == 0


def test_text_file_busy_for_too_long(supervisor: Harness, tmp_path: Path) -> None:
    path = tmp_path / "program"
    path.write_bytes(Path("/bin/true").resolve().read_bytes())
    path.chmod(0o755)
    with path.open("ab"):
        before = time.monotonic()
        told = why(supervisor, str(path))
    assert told == f"{path} was still open for writing after 2 s (text file busy)"
    assert 1.9 < time.monotonic() - before < 10


def test_a_shell_that_cannot_find_a_command_is_a_result(supervisor: Harness) -> None:
    supervisor.sh("r", "no-such-cmd-xyz")
    assert supervisor.exited("r").code == 127


def test_failures_leave_nothing_and_the_name_is_free_again(supervisor: Harness, tmp_path: Path) -> None:
    for number in range(50):
        supervisor.start(f"f{number}", "no-such-cmd-xyz")
    for number in range(50):
        supervisor.expect(SpawnFailed, f"f{number}")
    fds = Path(f"/proc/{supervisor.client.pid}/fd")
    wait_until(lambda: len(list(fds.iterdir())) < 15)
