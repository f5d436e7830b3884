"""Following a run through its stream: nobody asks while nothing happens, and every byte arrives once."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.cli import follow
from scheduler.cli.daemon import Daemon
from scheduler.cli.stream import RunStream
from scheduler.core.model import Run
from scheduler.core.outcome import Failed
from tests.cli.background import Background
from tests.engine.rig import failed
from tests.faces import Served
from tests.until import until

Captured = pytest.CaptureFixture[bytes]


class Following(Background):
    """`schedctl logs -f`."""

    def __init__(self, served: Served) -> None:
        (self.run,) = served.rig.runs("ticket")
        self._served = served
        super().__init__(served, "logs", "-f", self.run.id)

    def print(self, text: bytes) -> None:
        self._served.faces.live[self.run.id] += text

    def end(self, outcome: Failed | None = None) -> None:
        self._served.rig.executor.finish(self.run.id, *([] if outcome is None else [outcome]))
        self._served.rig.tick(seconds=1)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of all answers that were read as a whole."""
    paths: list[str] = []
    send = Daemon._send

    def noted(self: Daemon, method: str, path: str, *rest: Any) -> Any:
        paths.append(path)
        return send(self, method, path, *rest)

    monkeypatch.setattr(Daemon, "_send", noted)
    return paths


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """With which ids streams were opened."""
    ids: list[str] = []
    stream = Daemon.stream

    def noted(self: Daemon, path: str, headers: Any, *, timeout: float) -> Any:
        ids.append(headers.get("Last-Event-ID", ""))
        return stream(self, path, headers, timeout=timeout)

    monkeypatch.setattr(Daemon, "stream", noted)
    return ids


@pytest.fixture
def running(served: Served, capfdbinary: Captured) -> Run:
    served.schedctl("run-now", "ticket")
    served.rig.tick()
    (run,) = served.rig.runs("ticket")
    served.faces.live[run.id] = b"one\n"
    return run


def test_what_comes_through_the_stream_is_not_asked_for(
    served: Served, running: Run, asked: list[str], opened: list[str]
) -> None:
    following = Following(served)
    following.until(b"one")
    until(lambda: opened == ["1.4"])
    following.print(b"two\n")
    following.until(b"two")
    before = len(asked)
    for number in range(5):
        following.print(b"line %d\n" % number)
        following.until(b"line %d\n" % number)
    assert len(asked) == before
    following.end()
    following.join()
    assert following.codes == [0]
    # The double of the executor keeps what it says a run has printed.
    assert following.out.startswith(b"one\ntwo\nline 0\n")
    assert following.out.count(b"line 3") == 1


@pytest.mark.parametrize(
    "odd", [b"\xff\xfe\x00\n", b"\xf0\x9f\x98x\n", "\ufffd whole\n".encode(), "zwölf 😀\n".encode()]
)
def test_bytes_arrive_as_they_are(served: Served, running: Run, odd: bytes) -> None:
    following = Following(served)
    following.until(b"one\n")
    following.print(odd)
    following.until(odd)
    following.print(b"last\n")
    following.until(b"last\n")
    assert following.out == b"one\n" + odd + b"last\n"
    following.end()
    following.join()


def test_a_stream_that_breaks_off_is_gone_on_with(
    served: Served, running: Run, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    streams: list[RunStream] = []
    begin = RunStream.__init__

    def noted(self: RunStream, *given: Any) -> None:
        begin(self, *given)
        streams.append(self)

    monkeypatch.setattr(RunStream, "__init__", noted)
    following = Following(served)
    following.until(b"one")
    until(lambda: streams)
    following.print(b"two\n")
    following.until(b"two")
    streams[0].close()
    following.until(b"broke off; trying again")
    until(lambda: len(opened) == 2)
    assert opened[1] == "1.8"
    following.print(b"three\n")
    following.until(b"three")
    assert following.out == b"one\ntwo\nthree\n"
    following.end()
    following.join()
    assert following.codes == [0]


def test_who_gets_no_stream_looks_and_says_so(served: Served, running: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduler.web.events.Hub.full", True)
    following = Following(served)
    following.until(b"too many streams are open on this node; looking every 0.3s instead\n")
    following.print(b"two\n")
    following.until(b"two")
    following.end()
    following.join()
    assert following.codes == [0]
    assert following.err.count(b"too many streams") == 1


def test_a_stream_that_brings_nothing_is_not_waited_for(
    served: Served, running: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As through a proxy that collects what passes."""
    monkeypatch.setattr(follow, "OPENS", 0.0)
    monkeypatch.setattr("scheduler.cli.stream._events", lambda lines: iter(list(lines)[:0]))
    following = Following(served)
    following.until(b"nothing comes through the stream; looking every 0.3s instead\n")
    following.print(b"two\n")
    following.until(b"two")
    following.end()
    following.join()
    assert following.codes == [0]


def test_attempts_are_followed_and_what_a_run_waits_for_is_told(served: Served, running: Run) -> None:
    following = Following(served)
    following.until(b"one\n")
    following.end(failed())
    following.until(b"retries in")
    served.rig.tick(minutes=2)
    assert served.rig.run(running.id).attempt == 2
    following.until("— attempt 2 —".encode())
    following.end()
    following.join()
    assert following.codes == [0]
    assert b"COMPLETED" in following.err
