"""The process itself: streams that are closed, full or read by nobody; and what else may sit at the socket's path."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faces import Served
from tests.until import until

SCHEDCTL = f"{sys.executable} -c 'from scheduler.cli.main import main; main()'"
SCHEDULERD = f"{sys.executable} -c 'import sys; from scheduler.daemon import main; sys.exit(main())'"


def shell(line: str, cwd: Path, **environ: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a line in bash; a traceback is a failure."""
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {line}"],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, **environ},
        check=False,
        timeout=60,
    )
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def place(served: Served) -> str:
    return str(served.socket)


@pytest.mark.parametrize(
    ("redirection", "code", "said"),
    [
        ("2>&-", 0, None),
        ("2>/dev/full", 0, None),
        ("<&-", 0, None),
        (">&-", 1, "schedctl: stdout is closed, the answer is lost\n"),
        ("<&- >&-", 1, "schedctl: stdout is closed, the answer is lost\n"),
        ("<&- >&- 2>&-", 1, ""),
        (">/dev/full", 1, "schedctl: the answer cannot be written: No space left on device\n"),
        ("| head -0", 0, None),
    ],
)
def test_streams_that_fail(place: str, tmp_path: Path, redirection: str, code: int, said: str | None) -> None:
    for verb in ("list", "show -o json", "--help"):
        found, out, err = shell(f"{SCHEDCTL} {verb} {redirection}", tmp_path, SCHEDULER_SOCKET=place)
        assert found == code, verb
        if said is None:
            assert out or "head" in redirection, verb
        else:
            assert out == "", verb
            assert said in err, verb


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full"])
def test_what_cannot_be_said_changes_no_exit_code(place: str, tmp_path: Path, redirection: str) -> None:
    for arguments, code in (("describe nobody", 4), ("nonsense", 2), ("list --socket nowhere", 3)):
        assert shell(f"{SCHEDCTL} {arguments} {redirection}", tmp_path, SCHEDULER_SOCKET=place)[0] == code


def test_a_closed_stdin_is_an_empty_one(tmp_path: Path) -> None:
    code, out, _ = shell(f"{SCHEDCTL} check - <&-", tmp_path)
    assert (code, "the file is empty" in out) == (1, True)
    assert shell(f"{SCHEDCTL} run-now a --payload @- <&-", tmp_path)[0] == 2


@pytest.mark.parametrize("redirection", ["<&- >&- 2>&-", ">&- 2>/dev/full"])
def test_a_daemon_without_streams_says_78_for_a_bad_file(tmp_path: Path, redirection: str) -> None:
    (tmp_path / "jobs.yaml").write_text("jobs: [")
    line = f"{SCHEDULERD} --state-dir state --listen 127.0.0.1:0 {redirection}"
    assert shell(line, tmp_path) == (78, "", "")


def test_a_daemon_without_streams_works(tmp_path: Path) -> None:
    """Otherwise descriptors 0 to 2 would be files and sockets of it, and what a library prints would go there."""
    (tmp_path / "jobs.yaml").write_text("jobs: {a: {command: 'echo hello'}}")
    with tempfile.TemporaryDirectory(prefix="s") as folder:
        place = Path(folder) / "schedctl.sock"
        script = "import sys; from scheduler.daemon import main; sys.exit(main())"
        daemon = subprocess.Popen(
            [sys.executable, "-c", script, "--state-dir", folder, "--listen", "127.0.0.1:0"],
            cwd=tmp_path,
            preexec_fn=lambda: os.closerange(0, 3),
        )
        try:
            until(lambda: shell(f"{SCHEDCTL} list", tmp_path, SCHEDULER_SOCKET=str(place))[0] != 3, 30)
            code, out, err = shell(f"{SCHEDCTL} run-now a --wait", tmp_path, SCHEDULER_SOCKET=str(place))
            assert (code, out) == (0, "hello\n"), err
            assert {os.readlink(f"/proc/{daemon.pid}/fd/{number}") for number in range(3)} == {"/dev/null"}
        finally:
            daemon.terminate()
            assert daemon.wait(30) == 0


@contextmanager
def answering(answer: bytes) -> Iterator[str]:
    """A Unix socket at which everybody gets these bytes, and then the end."""
    with (
        tempfile.TemporaryDirectory(prefix="s") as folder,
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as bound,
    ):
        bound.bind(f"{folder}/s")
        bound.listen()

        def serve() -> None:
            while True:
                try:
                    met, _ = bound.accept()
                except OSError:
                    return
                with met, contextlib.suppress(OSError):
                    met.recv(1 << 16)
                    met.sendall(answer)
                    met.shutdown(socket.SHUT_WR)
                    while met.recv(1 << 16):
                        pass

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"{folder}/s"
        finally:
            bound.shutdown(socket.SHUT_RDWR)
            thread.join(10)


OURS = b"HTTP/1.1 200 OK\r\nServer: schedulerd\r\nContent-Length: %d\r\n\r\n%s"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"", "hung up without an answer"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "is not schedulerd"),
        (b"\x00\xff\x1b[31m" * 100, "is not schedulerd"),
        (b"HTTP/1.1 200 OK\r\nServer: nginx\r\nContent-Length: 2\r\n\r\n{}", "is not schedulerd"),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "is not schedulerd"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1000, "is not schedulerd"),
        (OURS % (5, b"hello"), "is not schedulerd"),
        (OURS % (2, b"\xff\xfe"), "is not schedulerd"),
        (OURS % (200_000, b"[" * 200_000), "is not schedulerd"),
        (OURS % (500, b'{"jobs": ['), "hung up in the middle of its answer"),
    ],
)
@pytest.mark.parametrize("verb", ["list", "logs a", "run-now a"])
def test_whatever_answers_is_no_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], answer: bytes, said: str, verb: str
) -> None:
    from scheduler.cli.main import run
    from scheduler.cli.surface import Surface

    with answering(answer) as place:
        assert run(verb.split(), Surface({"SCHEDULER_SOCKET": place})) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert "\x1b" not in err


def test_places_that_are_no_sockets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from scheduler.cli.main import run
    from scheduler.cli.surface import Surface

    (tmp_path / "file").write_text("")
    for place, said in (
        (str(tmp_path / "file"), "that is no socket"),
        (str(tmp_path), "that is no socket"),
        (str(tmp_path / "file" / "below"), "Not a directory"),
        (f"/{'x' * 200}", "the path has 201 bytes, a socket's has at most 107"),
    ):
        assert run(["list"], Surface({"SCHEDULER_SOCKET": place})) == 3
        assert said in capsys.readouterr().err
