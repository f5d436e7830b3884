"""`schedctl exec`: real commands in real processes, told to a real server, or to none."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from types import TracebackType

import pytest

from scheduler.core.access import Role
from scheduler.core.errors import DatabaseAway
from scheduler.core.model import Run, Status
from scheduler.core.sign import Noted, Sign
from scheduler.store.store import SqlStore
from tests.cli.terminal import Terminal
from tests.faces import Faces, Served
from tests.until import until

TEXT = """
defaults: {timezone: UTC}
jobs:
  backup: {external: true, schedule: "0 2 * * *"}
  ours: {schedule: "0 2 * * *", command: [x]}
"""
SCHEDCTL = [sys.executable, "-c", "from scheduler.cli.main import main; main()"]
PYTHON = [sys.executable, "-c"]


class Started(subprocess.Popen[bytes]):
    """Does not outlive a test that fails."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is not None:
            self.kill()
        super().__exit__(kind, error, at)


class Host:
    """A machine somewhere, with a token of role ping. `environ` is what its cron gives."""

    def __init__(self, served: Served, token: Path) -> None:
        assert served.server.address is not None
        self.served = served
        self.environ = {
            "PATH": os.environ["PATH"],
            "SCHEDCTL_URL": f"http://127.0.0.1:{served.server.address[1]}",
            "SCHEDCTL_TOKEN_FILE": str(token),
        }

    def start(self, *command: str, options: Sequence[str] = (), job: str = "backup", **how: object) -> Started:
        words = [*SCHEDCTL, "exec", *options, job, "--", *command]
        given: dict[str, object] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": self.environ, **how}
        return Started(words, **given)  # type: ignore[call-overload,no-any-return]

    def run(self, *command: str, data: bytes | None = None, **how: object) -> tuple[int, bytes, bytes]:
        """Exit code, stdout, stderr."""
        stdin = subprocess.DEVNULL if data is None else subprocess.PIPE
        with self.start(*command, stdin=stdin, **how) as process:  # type: ignore[arg-type]
            out, err = process.communicate(data, 60)
        return process.returncode, out, err

    def ended(self) -> Run:
        """The only run, once it is over."""
        until(lambda: [run.status.final for run in self.served.rig.runs()] == [True])
        return self.served.rig.runs()[0]

    def tail(self) -> bytes:
        with self.served.rig.store.queries() as queries:
            output = queries.output(self.ended().id)
        return b"" if output is None else output.tail


@pytest.fixture(autouse=True)
def hears_hangups() -> Iterator[None]:
    """Whoever runs the tests may have been started with nohup, which lasts for all that is started from there."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture
def served(store: SqlStore) -> Iterator[Served]:
    with Faces(store, TEXT).served() as found:
        yield found


@pytest.fixture
def host(served: Served, tmp_path: Path) -> Host:
    token = tmp_path / "token"
    token.write_text(served.faces.gate.create("db7", Role.PING, author="ana")[1])
    return Host(served, token)


@pytest.mark.parametrize(
    ("script", "code", "status"),
    [("exit 0", 0, Status.COMPLETED), ("exit 3", 3, Status.FAILED), ("exit 255", 255, Status.FAILED)],
)
def test_the_code_is_its_own_and_is_told(host: Host, script: str, code: int, status: Status) -> None:
    assert host.run("sh", "-c", f"echo out; echo err >&2; {script}") == (code, b"out\n", b"err\n")
    run = host.ended()
    assert (run.status, run.exit_code, run.author) == (status, code, "ping:db7")
    assert run.key.startswith("ping:")
    assert run.took is not None
    assert sorted(host.tail().splitlines()) == [b"err", b"out"]


def test_signals_that_end_it_are_128_and_their_number(host: Host) -> None:
    assert host.run("sh", "-c", "kill -9 $$")[0] == 137
    assert host.ended().exit_code == 137


@pytest.mark.parametrize(("word", "code"), [("no-such-program-anywhere", 127), ("./plain", 126)])
def test_what_cannot_be_started_is_told_too(host: Host, word: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("exit 0\n")
    found, out, err = host.run(word, cwd=tmp_path)
    assert (found, out) == (code, b"")
    assert f"cannot run {word}".encode() in err
    assert host.ended().exit_code == code
    assert b"cannot run" in host.tail()


def test_a_script_without_a_first_line_runs_as_in_a_shell(host: Host, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text('echo "$1"\n')
    script.chmod(0o755)
    assert host.run(str(script), "a b")[:2] == (0, b"a b\n")


def test_options_and_arguments_are_the_commands(host: Host) -> None:
    echo = [*PYTHON, "import sys; print(sys.argv[1:])"]
    assert host.run(*echo, "--help", "-o", "json", "--", "")[1] == b"['--help', '-o', 'json', '--', '']\n"
    words = [*SCHEDCTL, "exec", "backup", *echo, "-v"]
    assert subprocess.run(words, env=host.environ, capture_output=True, check=True).stdout == b"['-v']\n"


def test_bytes_environment_folder_and_descriptors_pass_through(host: Host, tmp_path: Path) -> None:
    data = bytes(range(256)) * 4_000
    assert host.run("cat", data=data) == (0, data, b"")
    script = "import os; print(os.getcwd(), os.environ['A'], os.read(int(os.environ['FD']), 9), os.umask(0))"
    read, write = os.pipe()
    os.write(write, b"inherited")
    host.environ |= {"A": "b", "FD": str(read)}
    _, out, _ = host.run(*PYTHON, script, cwd=tmp_path, pass_fds=(read,), umask=0o027)
    os.close(read)
    os.close(write)
    assert out.decode() == f"{tmp_path} b b'inherited' {0o027}\n"


@pytest.mark.parametrize(
    "locale", [{}, {"LANG": "C"}, {"LC_CTYPE": "C"}, {"LC_ALL": "C"}, {"LANG": "C.UTF-8"}], ids=str
)
def test_the_environment_is_the_one_that_we_were_given(host: Host, locale: dict[str, str]) -> None:
    """An interpreter without a locale gives one to itself, and to what it starts."""
    host.environ |= {**locale, "EMPTY": "", "LINES": "a\nb"}
    _, out, _ = host.run("env", "-0")
    given = {os.fsencode(f"{name}={value}") for name, value in host.environ.items()}
    assert set(out.split(b"\0")) - {b""} == given


def test_of_an_empty_environment_nothing_is_made() -> None:
    script = "import os; from scheduler.cli.wrapped import Wrapped; Wrapped(['/usr/bin/env'], os.environ, 9).run(print)"
    assert subprocess.run([*PYTHON, script], env={}, capture_output=True, check=True).stdout == b"\n"


def test_a_command_without_a_locale_takes_bytes_as_they_are(host: Host, tmp_path: Path) -> None:
    (tmp_path / "latin1").write_bytes(b"caf\xe9\n")
    words = ["env", "-i", *(f"{name}={value}" for name, value in host.environ.items()), *SCHEDCTL]
    words += ["exec", "backup", "--", "grep", "caf.$", "latin1"]
    assert subprocess.run(words, cwd=tmp_path, capture_output=True, check=False).stdout == b"caf\xe9\n"


def test_signals_are_as_they_would_be_without_us(host: Host) -> None:
    code = [sys.executable, "-S", "-c", "import os; print(open('/proc/self/status').read())"]
    plain = subprocess.run(code, env=host.environ, capture_output=True, check=True).stdout.decode()
    through = host.run(*code)[1].decode()
    assert _dispositions(through) == _dispositions(plain)


def _dispositions(status: str) -> list[int]:
    """Blocked and ignored signals, but for 32 and 33, which belong to the C library."""
    found = dict(line.split(":\t") for line in status.splitlines() if ":\t" in line)
    return [int(found[name], 16) & ~(0b11 << 31) for name in ("SigBlk", "SigIgn")]


def test_stdout_and_stderr_in_one_keep_their_order(host: Host) -> None:
    script = "import os\nfor n in range(200):\n os.write(1 + n % 2, b'%d\\n' % n)"
    _, out, _ = host.run(*PYTHON, script, stderr=subprocess.STDOUT)
    wanted = b"".join(b"%d\n" % n for n in range(200))
    assert out == wanted
    assert host.tail() == wanted


def test_the_last_lines_of_much_are_told(host: Host) -> None:
    code, out, _ = host.run(*PYTHON, "print('x' * 100_000); print('the last line')")
    assert (code, len(out)) == (0, 100_015)
    tail = host.tail()
    assert tail.endswith(b"xxx\nthe last line\n")
    assert tail.startswith(b"[... 90115 bytes left out ...]\n")


def test_whoever_reads_no_more_is_felt_by_the_command(host: Host) -> None:
    process = host.start("sh", "-c", "while echo y; do :; done", stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    process.stdout.read(10)
    process.stdout.close()
    assert process.wait(30) in (141, 1, 2)
    assert host.ended().status is Status.FAILED


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGQUIT])
def test_signals_are_passed_on(host: Host, number: signal.Signals) -> None:
    script = (
        "import os, signal\n"
        f"signal.signal({number:d}, lambda *_: (os.write(1, b'got it\\n'), os._exit(9)))\n"
        "os.write(1, b'ready\\n')\nwhile True: signal.pause()"
    )
    with host.start(*PYTHON, script) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        assert process.stdout.read() == b"got it\n"
        assert process.wait(30) == 9
    assert host.ended().exit_code == 9


def test_nohup_stays_in_force(host: Host) -> None:
    script = "import os, signal; os.kill(os.getpid(), 1); print(signal.getsignal(1) == signal.SIG_IGN)"
    words = ["nohup", *SCHEDCTL, "exec", "backup", "--", *PYTHON, script]
    found = subprocess.run(words, env=host.environ, capture_output=True, stdin=subprocess.DEVNULL, check=True)
    assert found.stdout == b"True\n"


def test_the_start_is_told_while_it_runs(host: Host) -> None:
    with host.start("cat", stdin=subprocess.PIPE, options=["-v"]) as process:
        until(lambda: host.served.rig.statuses() == ["RUNNING"])
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(30) == 0
        assert process.stderr is not None
        (run,) = host.served.rig.runs()
        assert process.stderr.read().decode().splitlines() == [
            f"schedctl exec: backup: run {run.id}",
            "schedctl exec: backup: told how it ended",
        ]
    assert host.ended().status is Status.COMPLETED


def test_what_is_left_behind_prints_on_and_nobody_waits_for_it(host: Host) -> None:
    read, write = os.pipe()
    script = (
        f"import os\nif os.fork() == 0:\n os.read({read}, 9); os.write(1, b'later\\n'); os._exit(0)\n"
        "os.write(1, b'now\\n'); os._exit(0)"
    )
    with host.start(*PYTHON, script, pass_fds=(read,)) as process:
        os.close(read)
        assert process.wait(30) == 0
        assert host.ended().status is Status.COMPLETED
        assert process.stdout is not None
        assert process.stdout.readline() == b"now\n"
        os.write(write, b"go\n")
        os.close(write)
        assert process.stdout.read() == b"later\n"


# ------------------------------------------------------------ without a daemon


@pytest.fixture
def nobody(host: Host) -> Iterator[Host]:
    """An address that takes connections and never answers."""
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        host.environ["SCHEDCTL_URL"] = f"http://127.0.0.1:{silent.getsockname()[1]}"
        yield host


def test_a_daemon_that_is_silent_changes_nothing_of_the_command(nobody: Host) -> None:
    with nobody.start("sh", "-c", "trap '' TERM; echo done; exit 4") as process:
        assert process.stdout is not None
        begun = time.monotonic()
        assert process.stdout.readline() == b"done\n"
        assert time.monotonic() - begun < 5
        process.send_signal(signal.SIGTERM)  # Whoever does not want to wait for the end to be told.
        assert process.wait(10) == 4
        assert process.stderr is not None
        assert b"the daemon was not told how this run ended" in process.stderr.read()


@pytest.mark.parametrize(
    ("environ", "says"),
    [
        ({"SCHEDCTL_URL": "http://127.0.0.1:1"}, "cannot be reached"),
        ({"SCHEDCTL_URL": "nonsense"}, "SCHEDCTL_URL is no address"),
        ({"SCHEDCTL_TOKEN_FILE": "/no/such/file"}, "cannot read /no/such/file"),
        ({"SCHEDCTL_URL": "", "SCHEDULER_SOCKET": "/no/such.sock"}, "no daemon can be reached"),
    ],
)
def test_nowhere_to_tell_it(host: Host, environ: dict[str, str], says: str) -> None:
    host.environ |= environ
    code, out, err = host.run("sh", "-c", "echo done; exit 4")
    assert (code, out) == (4, b"done\n")
    assert says in err.decode()
    assert host.served.rig.runs() == []


def test_a_daemon_that_comes_back_hears_the_end_and_when_it_was(host: Host) -> None:
    refused = threading.Event()
    with host.start("cat", stdin=subprocess.PIPE) as process:
        until(lambda: host.served.rig.statuses() == ["RUNNING"])
        signs = host.served.rig.signs
        take = signs.take

        def take_later(sign: Sign) -> Noted:
            if not refused.is_set():
                refused.set()
                raise DatabaseAway("away")
            return take(sign)

        signs.take = take_later  # type: ignore[method-assign]
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(30) == 0
        assert refused.is_set()
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert host.ended().status is Status.COMPLETED


@pytest.mark.parametrize(("job", "says"), [("nobody", "there is no such job: nobody"), ("ours", "ours runs here")])
def test_what_is_refused_is_said_once_and_at_once(host: Host, job: str, says: str) -> None:
    begun = time.monotonic()
    code, out, err = host.run("sh", "-c", "echo done; exit 4", job=job)
    assert (code, out, says in err.decode(), err.count(b"\n")) == (4, b"done\n", True, 1)
    assert time.monotonic() - begun < 15


def test_a_wrong_token_is_said(host: Host, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("sched_wrong")
    code, _, err = host.run("true")
    assert (code, b"knows no such token" in err) == (0, True)


# ------------------------------------------------------------ on a terminal


def test_on_a_terminal_the_command_has_the_terminal(host: Host) -> None:
    script = (
        "import os, sys; print(*map(os.isatty, (0, 1, 2)), os.get_terminal_size().columns)\n"
        "input('name? '); print('hi')"
    )
    terminal = Terminal([*SCHEDCTL, "exec", "backup", "--", *PYTHON, script], host.environ, columns=93)
    terminal.until("True True True 93")
    terminal.until("name? ")
    terminal.type("ana\n")
    terminal.until("hi")
    assert terminal.end() == 0
    assert host.ended().status is Status.COMPLETED
    assert host.tail() == b""


def test_ctrl_c_reaches_the_command_once(host: Host) -> None:
    script = (
        "import signal, sys\nsignal.pthread_sigmask(signal.SIG_BLOCK, [2])\nprint('ready', flush=True)\n"
        "seen = [signal.sigtimedwait([2], wait) for wait in (20, 0.5)]\n"
        "print('seen', len(list(filter(None, seen))))\nsys.exit(5)"
    )
    terminal = Terminal([*SCHEDCTL, "exec", "backup", "--", *PYTHON, script], host.environ)
    terminal.until("ready")
    terminal.interrupt()
    terminal.until("seen 1")
    assert terminal.end() == 5
    assert host.ended().exit_code == 5


def test_ctrl_c_is_for_those_whom_the_terminal_sends_it(host: Host) -> None:
    """One that left the group of the terminal hears nothing of it, as without us."""
    script = (
        "import os, signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [2])\nos.setpgid(0, 0)\n"
        "print('ready', flush=True)\nprint('heard', signal.sigtimedwait([2], 1))"
    )
    terminal = Terminal([*SCHEDCTL, "exec", "backup", "--", *PYTHON, script], host.environ)
    terminal.until("ready")
    terminal.interrupt()
    terminal.until("heard None")
    assert terminal.end() == 0


def test_many_at_once(host: Host) -> None:
    found: list[int] = []

    def one(number: int) -> None:
        found.append(host.run("sh", "-c", f"exit {number}")[0])

    threads = [threading.Thread(target=one, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(found) == [0, 1, 2, 3]
    until(lambda: sorted(str(run.exit_code) for run in host.served.rig.runs()) == ["0", "1", "2", "3"])
