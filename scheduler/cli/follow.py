"""Following a run: its output as it comes, until it is over."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from scheduler.cli.daemon import cleaned, part
from scheduler.cli.progress import ProgressLine
from scheduler.cli.stream import RunStream, Said
from scheduler.cli.surface import Surface
from scheduler.cli.words import waits
from scheduler.core.errors import SchedulerError, Unavailable

PATIENCE = 60.0
"""Seconds for which a daemon may be away, as in a restart, before following gives up."""
PAUSE = 0.3
"""Seconds between two looks at a run whose stream cannot be had, and between two at its clock."""
OPENS = 5.0
"""Seconds within which a stream says its first word; a proxy that collects what passes lets none through."""
AGAIN = 30.0
"""Seconds after which a stream that could not be had is tried again."""
FINAL = frozenset({"COMPLETED", "FAILED", "CANCELED", "SKIPPED"})


class WaitedTooLong(Exception):
    """The time that somebody wanted to wait is over; the run goes on."""


def follow(
    surface: Surface,
    run: str,
    *,
    attempt: int | None = None,
    deadline: float | None = None,
    tail: int | None = None,
) -> dict[str, Any]:
    """Copies what the run prints to stdout until its status is final, through all attempts; the run as it is then.

    It comes through the run's stream, which is gone on with where it broke off; where none can be had the run is looked
    at again and again. With `attempt`: until that one is over. `deadline`: monotonic seconds, WaitedTooLong after it.
    `tail`: only so many lines of what it has printed so far. On a terminal a line at the bottom says how far the run
    is."""
    watched = _Watched(surface, run, attempt, tail)
    try:
        while True:
            printed = watched.copy()
            if watched.attempt_over:
                seen = watched.look()
                if attempt is None and seen["attempt"] > watched.attempt:
                    watched.begin(seen["attempt"])
                    continue
                if attempt is not None or seen["status"] in FINAL:
                    watched.progress.clear()
                    surface.end_line(watched.last)
                    return seen
                watched.tell(seen)
            if deadline is not None and time.monotonic() >= deadline:
                raise WaitedTooLong
            watched.draw()
            if not printed:
                watched.listen(deadline)
    finally:
        watched.close()


def last_lines(text: bytes, count: int | None) -> bytes:
    """The last `count` lines (None: all)."""
    return text if count is None else b"".join(text.splitlines(keepends=True)[-count:] if count else [])


def wait(
    surface: Surface,
    run: str,
    deadline: float | None = None,
    told: Callable[[dict[str, Any]], None] | None = None,
) -> dict[str, Any]:
    """The run once its status is final, without showing what it prints. `told` is called about once a second with what
    it is until then."""
    watched = _Watched(surface, run)
    longest = 30.0 if told is None else 1.0
    while True:
        left = longest if deadline is None else min(longest, deadline - time.monotonic())
        seen = watched.look(wait=max(1, round(left)))
        if seen["status"] in FINAL:
            return seen
        if told is not None:
            told(seen)
        if deadline is not None and time.monotonic() >= deadline:
            raise WaitedTooLong


class _Watched:
    """A run and how much of its output was shown. A daemon that is away is waited for: the run goes on, and so does
    whoever watches it."""

    def __init__(self, surface: Surface, run: str, attempt: int | None = None, tail: int | None = None) -> None:
        self._surface = surface
        self._tail = tail
        self.progress = ProgressLine(surface, run)
        self._path = f"/v1/runs/{part(run)}"
        self._offset = 0
        self._told = ""
        self._away_since: float | None = None
        self._stream: RunStream | None = None
        self._without_stream_until = 0.0
        self._heard = 0, 0
        """Up to where the stream has told the output: attempt and offset."""
        self._seen: dict[str, Any] | None = None
        self.attempt = attempt or 0
        self.attempt_over = False
        self.last = b""

    def begin(self, attempt: int) -> None:
        """Goes on with the output of another attempt."""
        if self.attempt_over and self._offset:
            self._say(f"— attempt {attempt} —")
        self.attempt, self._offset = attempt, 0

    def draw(self) -> None:
        """Says how far it is, unless that would stand in a line that the run has begun."""
        if self.last in (b"", b"\n"):
            self.progress.draw()

    def listen(self, deadline: float | None) -> None:
        """Writes what the stream brings until it says that the run has changed, or until the deadline. Without a
        stream it is a pause."""
        stream = self._listening()
        while stream is not None:
            if deadline is not None and time.monotonic() >= deadline:
                return
            try:
                said = stream.next(PAUSE)
            except Unavailable as error:
                self._hang_up()
                self._bear(error)
                return
            if said is not None and not self._hear(said):
                return
            if said is None and self._seen is not None:
                self.tell(self._seen)
            self.draw()
        time.sleep(PAUSE)

    def _hear(self, said: Said) -> bool:
        """Whether to go on listening: what was printed could be written, and nothing else has changed."""
        if said.name == "run":
            # What waits is told when it still waits at the next look.
            self._seen = self.progress.run = cleaned(said.data)
            return False
        if said.name != "log":
            return said.name != "end"
        attempt, end, text = said.data["attempt"], said.data["offset"], said.data["text"]
        (of, begin), self._heard = self._heard, (attempt, end)
        if attempt == self.attempt and end <= self._offset:
            return True  # The log was faster.
        body = text.encode()
        whole = "\ufffd" not in text and len(body) == end - begin
        if not whole or not begin <= self._offset or not of == attempt == self.attempt:
            return False  # Bytes that are no text, or lines that were left out: the log has them as they are.
        body, self._offset = body[self._offset - begin :], end
        self._write(body)
        return True

    def _listening(self) -> RunStream | None:
        """The stream, opened if need be; None if there is none to be had, which is said."""
        if self._stream is not None or time.monotonic() < self._without_stream_until:
            return self._stream
        last = f"{self.attempt}.{self._offset}" if self.attempt else ""
        try:
            stream = self._stream = RunStream(self._surface.daemon, f"{self._path}/stream", last)
            self._heard = self.attempt, self._offset
            if stream.next(OPENS) is None:
                raise Unavailable("nothing comes through the stream")
        except SchedulerError as error:
            self._hang_up()
            self._without_stream_until = time.monotonic() + AGAIN
            self._say(f"schedctl: {error.reason}; looking every {PAUSE:g}s instead")
        return self._stream

    def _hang_up(self) -> None:
        if self._stream is not None:
            self._stream.close()
        self._stream = self._seen = self.progress.run = None

    def close(self) -> None:
        self.progress.clear()
        self._hang_up()

    def copy(self) -> bool:
        """Writes what came since the last time; whether there was anything."""
        query = {"attempt": self.attempt, "offset": self._offset} if self.attempt else {}
        try:
            body, headers = self._surface.daemon.raw(f"{self._path}/log", query)
        except Unavailable as error:
            self._bear(error)
            return False
        self._away_since = None
        self.attempt = int(headers["Schedctl-Attempt"])
        self._offset = int(headers["Schedctl-Offset"])
        self.attempt_over = headers["Schedctl-Complete"] == "true"
        if body:
            body, self._tail = last_lines(body, self._tail), None
            self._write(body)
        return bool(body)

    def _write(self, body: bytes) -> None:
        if not body:
            return
        self.progress.clear()
        self._surface.raw(body)
        self.last = body[-1:]

    def look(self, wait: int | None = None) -> dict[str, Any]:
        """The run as it is now; `wait`: after so many seconds, or as soon as it is over."""
        while True:
            try:
                seen = self._surface.daemon.get(self._path, {"wait": wait}, timeout=60)
            except Unavailable as error:
                self._bear(error)
                time.sleep(PAUSE)
                continue
            self._away_since = None
            return dict(seen)

    def tell(self, seen: dict[str, Any]) -> None:
        """Says what a waiting run waits for, once; most waiting is over at the next look and not worth a line."""
        if seen["status"] != "PENDING":
            return
        word = seen["waits_for"] or "ready"
        if self._told == f"{word}?":
            self._say(f"{seen['short_id']}: {waits(seen, self._surface.now())}")
            self._told = word
        elif self._told != word:
            self._told = f"{word}?"

    def _bear(self, error: Unavailable) -> None:
        now = time.monotonic()
        if self._away_since is None:
            self._away_since = now
            self._say(f"schedctl: {error.reason}; trying again")
        if now - self._away_since > PATIENCE:
            raise error

    def _say(self, text: str) -> None:
        self.progress.clear()
        self._surface.say(text)
