"""The supervisor: one thread, one poll, one socket, and a dead man's switch.

It serves one daemon and one node. When the socket closes, or the trust that the daemon extends runs out, it
ends everything below itself, leaves the exits that the daemon had not settled in a file, and exits.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import sys
import time
from collections import deque
from typing import Any

from scheduler.supervisor import linux, wire
from scheduler.supervisor.run import Run, failed
from scheduler.supervisor.runs import Runs

EXITS_FILE = "exits.jsonl"
MOMENT = 0.005  # seconds for which starts go first, while others have news
KILL_AFTER_CLOSE = 5.0  # seconds from the end of the socket to SIGKILL
_LOOK_AT_TRUST = 1.0  # seconds; a poll does not count suspend, so it must not last longer than this
_FOREVER = (float("inf"), float("inf"))


class Supervisor:
    """Owns the children of one daemon. `run` returns when nothing is left below it and nobody is above it."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        sock.setblocking(False)
        wire.widen(sock)
        self._buffer = wire.buffer()
        self._poll = select.epoll()
        self._poll.register(sock, select.EPOLLIN)
        self._woken = _wake_on_child_exit()
        self._poll.register(self._woken, select.EPOLLIN)
        self._runs = Runs(self._report, self._watch, self._poll.unregister)
        self._telling: dict[int, Run] = {}
        self._starts: deque[tuple[dict[str, Any], list[int]]] = deque()
        self._out: deque[bytes] = deque()
        self._unsettled: dict[tuple[str, int], dict[str, Any]] = {}
        self._node: str | None = None
        self._state_dir = ""
        self._trust: tuple[float, float] | None = None
        self._listening = True
        self._speaking = True
        self._full = False
        self._dying = False
        self._killing_at = float("inf")  # CLOCK_BOOTTIME, while dying

    def run(self) -> None:
        """Serve until the switch falls and everything has ended."""
        while not (self._dying and self._runs.empty):
            events = self._poll.poll(self._patience())
            for number, event in events:
                if number == self._sock.fileno():
                    if event & select.EPOLLOUT:
                        self._flush()
                    if event & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR) and self._listening:
                        self._listen()
                elif number == self._woken.fileno():
                    self._drain_wakeups()
                    self._runs.reap(time.monotonic())
                elif number in self._telling:
                    self._runs.told(self._telling[number])
            self._start_some()
            self._runs.tick(time.monotonic())
            self._check_trust()
        self._flush()
        self._leave_exits()

    def _patience(self) -> float | None:
        if self._starts:
            return 0
        now = time.monotonic()
        waits = [] if (due := self._runs.next_due()) is None else [due - now]
        if self._dying:
            waits.append(min(_LOOK_AT_TRUST, self._killing_at - linux.boottime()))
        elif self._trust not in (None, _FOREVER) and not self._runs.idle:
            waits.append(min(_LOOK_AT_TRUST, self._trust[0] - linux.boottime()))
        # At least a millisecond, or the last instant before something is due would be spent spinning.
        return max(0.001, min(waits)) if waits else None

    def _listen(self) -> None:
        """Take everything that has arrived; answer pings at once, keep starts for between two polls."""
        while True:
            try:
                received = wire.receive(self._sock, self._buffer)
            except BlockingIOError:
                return
            except (OSError, wire.Broken):
                received = None
            if received is None:
                self._listening = False
                # Without EPOLLIN the end of the peer would still be reported, for ever.
                self._poll.unregister(self._sock)
                if not self._dying:
                    self._die(min(linux.boottime() + KILL_AFTER_CLOSE, self._trust_kills_at()))
                return
            message, fds = received
            kind = message.get("type")
            if kind == "start":
                self._starts.append((message, fds))
                continue
            for fd in fds:
                os.close(fd)
            self._obey(kind, message)

    def _obey(self, kind: Any, message: dict[str, Any]) -> None:
        if kind == "ping":
            self._send({"type": "pong", "n": message["n"]})
        elif kind == "hello" and self._node is None:
            self._node, self._state_dir = message["node"], message["state_dir"]
            if message.get("cgroup"):
                self._runs.use_cgroups(message["cgroup"])
            self._send({"type": "ready", "pid": os.getpid()})
        elif kind == "trust" and message["node"] == self._node:
            until = message["term_at"], message["kill_at"]
            self._trust = _FOREVER if None in until else until
        elif kind == "end":
            self._end(message)
        elif kind == "signal":
            self._runs.signal(message["run"], message["signal"])
        elif kind == "settled":
            self._unsettled.pop((message["run"], message["attempt"]), None)

    def _end(self, message: dict[str, Any]) -> None:
        for index, (order, fds) in enumerate(self._starts):
            if order["run"] == message["run"]:
                del self._starts[index]
                self._never_started(order, fds, message["why"])
                return
        self._runs.end(message["run"], message["why"], message["kill_after"], time.monotonic())

    def _start_some(self) -> None:
        """A few of those that wait, then whoever has news is heard again."""
        until = time.monotonic() + MOMENT
        while self._starts:
            self._start(*self._starts.popleft())
            if time.monotonic() >= until:
                return

    def _start(self, order: dict[str, Any], numbers: list[int]) -> None:
        fds = dict(zip(order["fds"], numbers, strict=False))
        try:
            refusal = self._refusal(order, fds)
            if refusal:
                self._report(failed(order, "refused", 0, refusal))
            else:
                self._runs.start(order, fds)
        finally:
            for fd in numbers:
                os.close(fd)

    def _refusal(self, order: dict[str, Any], fds: dict[str, int]) -> str | None:
        if self._dying:
            return "the supervisor is ending everything"
        if order["node"] != self._node:
            return f"this supervisor serves node {self._node}, not {order['node']}"
        if self._trust is None or linux.boottime() >= self._trust[0]:
            return "its daemon does not vouch for this node at present"
        if order["run"] in self._runs:
            return "the run is alive already"
        if len(fds) < len(order["fds"]):
            return "the supervisor has too many open files"
        return None

    def _never_started(self, order: dict[str, Any], fds: list[int], why: str) -> None:
        for fd in fds:
            os.close(fd)
        message: dict[str, Any] = {
            "type": "exited",
            "code": None,
            "signal": None,
            "why": why,
            "left": 0,
            "usage": {},
        }
        message |= {name: order[name] for name in ("run", "attempt", "node")}
        now = linux.boottime()
        self._report(message | {"ended_at": time.time(), "began": now, "ended": now})

    def _check_trust(self) -> None:
        now = linux.boottime()
        if self._dying:
            if now >= min(self._killing_at, self._trust_kills_at()):
                self._runs.kill_all(time.monotonic())
                self._killing_at = now + 0.05
        elif self._trust is not None and now >= self._trust[0] and not self._runs.idle:
            self._die(self._trust[1])

    def _trust_kills_at(self) -> float:
        return float("inf") if self._trust is None else self._trust[1]

    def _die(self, killing_at: float) -> None:
        """The switch falls: TERM to everything now, KILL at that instant of CLOCK_BOOTTIME. No way back."""
        self._dying = True
        self._killing_at = killing_at
        self._trust = None
        while self._starts:
            self._never_started(*self._starts.popleft(), why="lost")
        self._runs.end_all("lost", max(0.0, killing_at - linux.boottime()), time.monotonic())

    def _report(self, message: dict[str, Any]) -> None:
        if message["type"] == "exited":
            self._unsettled[message["run"], message["attempt"]] = message
        self._send(message)

    def _send(self, message: dict[str, Any]) -> None:
        if self._speaking:
            self._out.append(wire.encode(message))
            if len(self._out) == 1:
                self._flush()

    def _flush(self) -> None:
        full = False
        while self._out and self._speaking and not full:
            try:
                wire.send(self._sock, self._out[0])
                self._out.popleft()
            except BlockingIOError:
                full = True
            except OSError:
                self._speaking = False
        if self._listening and full != self._full:
            self._full = full
            self._poll.modify(self._sock, select.EPOLLIN | (select.EPOLLOUT if full else 0))

    def _watch(self, fd: int, run: Run) -> None:
        self._telling[fd] = run
        self._poll.register(fd, select.EPOLLIN)

    def _drain_wakeups(self) -> None:
        try:
            while self._woken.recv(4096):
                pass
        except BlockingIOError:
            pass

    def _leave_exits(self) -> None:
        """The one touch of a disk, when there is nothing left that could be kept waiting."""
        if not self._unsettled or not self._state_dir:
            return
        # Begins with a line end, because a former write may have been cut short.
        text = "".join("\n" + json.dumps(message) for message in self._unsettled.values()) + "\n"
        path = os.path.join(self._state_dir, EXITS_FILE)
        try:
            with open(path, "ab", opener=_for_the_owner) as file:
                file.write(text.encode("ascii"))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            runs = ", ".join(run for run, _ in self._unsettled)
            _complain(f"how these runs ended is not known to the next daemon: {runs}: {path}: {error.strerror}")


def _for_the_owner(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _complain(text: str) -> None:
    """The last words, where the daemon's log goes, if anybody is there."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            os.write(sys.stderr.fileno(), f"supervisor: {text}\n".encode())


def _wake_on_child_exit() -> socket.socket:
    """A socket that becomes readable after children have exited."""
    woken, waker = socket.socketpair()
    woken.setblocking(False)
    waker.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    signal.set_wakeup_fd(waker.detach(), warn_on_full_buffer=False)
    return woken


def main(fd: int) -> None:
    """Serve on this descriptor, one end of a SOCK_SEQPACKET pair.

    The process follows its socket and nothing else: every signal that can be is
    blocked, but for SIGCHLD.
    """
    os.setsid()
    os.chdir("/")
    linux.become_subreaper()
    # A stopped supervisor must wake when its daemon dies.
    linux.signal_on_parent_death(signal.SIGCONT)
    # Children inherit what is ignored; here all of it is blocked.
    for number in signal.valid_signals():
        if signal.getsignal(number) in (signal.SIG_IGN, signal.default_int_handler):
            signal.signal(number, signal.SIG_DFL)
    faults = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT}
    signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals() - faults - {signal.SIGCHLD, signal.SIGCONT})
    os.set_inheritable(fd, False)
    Supervisor(socket.socket(fileno=fd)).run()
