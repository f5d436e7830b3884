"""The daemon's side of the socket."""

from __future__ import annotations

import contextlib
import errno
import itertools
import logging
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from scheduler.core.children import ChildSpec
from scheduler.core.errors import InvalidInput, StartError, SupervisorAway
from scheduler.supervisor import linux, processes, wire
from scheduler.supervisor.events import Event, Exited, SpawnFailed, SupervisorGone
from scheduler.supervisor.orphans import end_orphans

_log = logging.getLogger(__name__)

_PROGRAM = str(Path(__file__).with_name("__main__.py"))
_READY_WITHIN = 20.0  # seconds for a fresh interpreter on a loaded machine
_SEND_WITHIN = 5.0  # seconds that a call may wait for a supervisor that does not read


class SupervisorClient:
    """One supervisor process and the conversation with it; one object serves one process, ever.

    `on_event` is called from one reader thread, in order; it must not block and what it raises is logged.
    Every method may be called from any thread; all but `open`, `close` and `kill` raise SupervisorAway when
    the supervisor is gone or has not read for 5 s.
    """

    def __init__(
        self,
        node: str,
        state_dir: Path,
        on_event: Callable[[Event], None],
        *,
        lock_fds: tuple[int, ...] = (),
        cgroup: str | None = None,
    ) -> None:
        self.node = node
        self.state_dir = state_dir
        self._on_event = on_event
        self._lock_fds = lock_fds
        self._cgroup = cgroup
        self._numbers = itertools.count(1)
        self._sending = threading.Lock()
        self._ready = threading.Event()
        self._gone = threading.Event()
        self._answered_at = time.monotonic()
        self._answered = 0
        self._asked_at = 0.0
        self._unanswered_since: float | None = None

    def open(self) -> SupervisorClient:
        """Start the process and wait until it listens; StartError if it does not.

        Call it from the main thread: a stopped supervisor is woken when the thread that started it ends.
        The calling process becomes a subreaper, so that whatever a killed supervisor leaves falls to it.
        """
        linux.become_subreaper()
        if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
            # Inherited from whoever started the daemon; the kernel would throw exit statuses away.
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-X", "utf8", _PROGRAM, *map(str, [theirs.fileno(), *self._lock_fds])],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno(), *self._lock_fds],
                # The daemon's environment holds secrets; an unusual interpreter may need its libraries.
                env={name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ},
            )
        process = processes.read(self._process.pid)
        self._since = process.started if process else 0
        self._sock = ours
        self._longest = wire.widen(ours)
        ours.setblocking(False)
        threading.Thread(target=self._read, name="supervisor-reader", daemon=True).start()
        self._send(
            {
                "type": "hello",
                "node": self.node,
                "state_dir": str(self.state_dir.absolute()),
                "cgroup": self._cgroup,
            }
        )
        if not self._ready.wait(_READY_WITHIN) or self._gone.is_set():
            self.kill()
            raise StartError("the supervisor process did not come up")
        return self

    @property
    def pid(self) -> int:
        """The supervisor's process id."""
        return self._process.pid

    @property
    def gone(self) -> bool:
        """The process has ended and been reaped."""
        return self._gone.is_set()

    @property
    def answered_at(self) -> float:
        """Monotonic time of the last message from the supervisor (of its start, before the first)."""
        return self._answered_at

    @property
    def answered(self) -> int:
        """The number of the last ping that was answered, 0 before the first."""
        return self._answered

    def start(
        self,
        spec: ChildSpec,
        *,
        output_fd: int,
        stdin_fd: int | None = None,
        channel_fd: int | None = None,
        near: str | None = None,
    ) -> None:
        """Ask for a child; exactly one event follows, `SpawnFailed` or `Exited`.

        `near` is the path of what will be executed, if nobody has to wait for that and for the work directory.

        stdin is /dev/null unless given; a channel becomes descriptor 3 of the child. The descriptors stay
        the caller's, who may close them at once. InvalidInput for what is too large to be sent or contains NUL.
        """
        fds = {"stdin": stdin_fd, "output": output_fd, "channel": channel_fd}
        given = {name: fd for name, fd in fds.items() if fd is not None}
        message = {
            "type": "start",
            "run": spec.run,
            "attempt": spec.attempt,
            "node": spec.node,
            "argv": list(spec.argv),
            "cwd": spec.cwd,
            "env": dict(spec.env),
            "kill_after": spec.kill_after,
            "leftovers": spec.leftovers,
            "user": spec.user and [spec.user.uid, spec.user.gid, list(spec.user.groups)],
            "limits": asdict(spec.limits),
            "fds": list(given),
            "near": near,
        }
        if not spec.argv or not spec.argv[0]:
            raise InvalidInput("the command is empty")
        if not os.path.isabs(spec.cwd):
            raise InvalidInput(f"the work directory {spec.cwd!r} is not absolute")
        if any("\0" in text for text in (*spec.argv, spec.cwd, *spec.env, *spec.env.values())):
            raise InvalidInput("command, work directory and environment cannot contain NUL")
        if any("=" in name or not name for name in spec.env):
            raise InvalidInput("the name of an environment variable cannot be empty or contain '='")
        self._send(message, list(given.values()))

    def end(self, run: str, why: str, kill_after: float) -> None:
        """TERM now, KILL after `kill_after` seconds, to everything of the run; then `Exited` follows.

        `why` (timeout, cancel, lost, replaced, drain …) is what the exit then means. Nothing happens if the
        run is over already; its `Exited` is on the way.
        """
        self._send({"type": "end", "run": run, "why": why, "kill_after": kill_after})

    def signal(self, run: str, number: int) -> None:
        """Send a signal to the main process alone."""
        self._send({"type": "signal", "run": run, "signal": int(number)})

    def trust(self, term_at: float | None, kill_at: float | None) -> None:
        """Extend the trust: TERM and KILL for everything at these instants of CLOCK_BOOTTIME, in seconds.

        None, None = as long as this socket lives. Until the first call every start is refused.
        """
        self._send({"type": "trust", "node": self.node, "term_at": term_at, "kill_at": kill_at})

    def settled(self, run: str, attempt: int) -> None:
        """The exit of this attempt is recorded; without this the exits file tells it to the next daemon."""
        self._send({"type": "settled", "run": run, "attempt": attempt})

    def ping(self) -> int:
        """Ask for an answer, which moves `answered_at` and, at last, `answered` to the number returned."""
        number = next(self._numbers)
        self._asked_at = time.monotonic()
        if self._unanswered_since is None:
            self._unanswered_since = self._asked_at
        self._send({"type": "ping", "n": number})
        return number

    @property
    def silent_for(self) -> float:
        """Seconds for which it was asked again and again and said nothing. Time in which nobody asked, because this
        process was stopped or the machine slept, is no silence of the supervisor's."""
        since = self._unanswered_since
        return 0.0 if since is None else self._asked_at - since

    def kill(self) -> None:
        """SIGKILL to a supervisor that is silent. `SupervisorGone` follows; what it owned falls to us."""
        self._process.kill()

    def replace(self, *, node: str | None = None, kill_after: float = 5.0) -> SupervisorClient:
        """Kill this supervisor if it still lives, end and reap all it left, open a fresh one (main thread).

        Runs that had no `Exited` when this returns are lost: nothing of them lives any more.
        """
        self.kill()
        self._gone.wait()
        end_orphans(since=self._since, kill_after=kill_after)
        return SupervisorClient(
            node or self.node, self.state_dir, self._on_event, lock_fds=self._lock_fds, cgroup=self._cgroup
        ).open()

    def close(self, timeout: float = 15.0) -> bool:
        """Ask it to end everything (TERM, KILL after 5 s) and to exit; events go on. False if it stayed."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_WR)
        return self._gone.wait(timeout)

    def _send(self, message: dict[str, Any], fds: Sequence[int] = ()) -> None:
        packet = wire.encode(message)
        if len(packet) > self._longest:
            raise InvalidInput(
                f"command and environment take {len(packet):,} bytes; at most {self._longest:,} fit",
                hint="pass large data in a file",
            )
        until = time.monotonic() + _SEND_WITHIN
        with self._sending:
            while True:
                try:
                    wire.send(self._sock, packet, fds)
                    return
                except BlockingIOError:
                    if time.monotonic() > until:
                        raise SupervisorAway("the supervisor does not read") from None
                except OSError as error:
                    if error.errno in (errno.ENOBUFS, errno.ENOMEM, errno.EMSGSIZE):
                        raise SupervisorAway(
                            f"no memory for a message of {len(packet):,} bytes to the supervisor"
                        ) from None
                    # Too many descriptors are on their way; the supervisor is taking them.
                    if error.errno != errno.ETOOMANYREFS or time.monotonic() > until:
                        raise SupervisorAway("the supervisor is gone") from None
                time.sleep(0.005)

    def _read(self) -> None:
        buffer = wire.buffer()
        reason = "its socket closed"
        readable = select.poll()
        readable.register(self._sock, select.POLLIN)
        while True:
            readable.poll()
            try:
                received = wire.receive(self._sock, buffer)
            except BlockingIOError:
                continue
            except (OSError, wire.Broken) as error:
                reason, received = str(error), None
            if received is None:
                break
            self._answered_at = time.monotonic()
            self._unanswered_since = None
            event = _event(received[0])
            if event is not None:
                self._tell(event)
            elif received[0]["type"] == "ready":
                self._ready.set()
            elif received[0]["type"] == "pong":
                self._answered = received[0]["n"]
        status = self._process.wait()
        with self._sending:
            self._sock.close()
        self._gone.set()
        self._ready.set()
        self._tell(SupervisorGone(self._process.pid, f"{reason}, status {status}"))

    def _tell(self, event: Event) -> None:
        try:
            self._on_event(event)
        except Exception:
            _log.exception("handling %s failed", event)


def _event(message: wire.Message) -> Event | None:
    kind = message["type"]
    values = {name: value for name, value in message.items() if name != "type"}
    if kind == "failed":
        return SpawnFailed(**values)
    if kind == "exited":
        return Exited(**values)
    return None
