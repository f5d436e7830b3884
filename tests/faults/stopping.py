"""`python -m tests.faults.stopping FOLDER`: a daemon that stops or dies at a given point of a transaction.

It notes in `FOLDER/points` each kind of point that it passes, once: after a statement that locks rows, before and after
a commit. When `FOLDER/stop` names one of them and a signal, it sends itself that signal the next time it gets there,
and removes the file. With the signal 0 it goes on when `FOLDER/go` is there, or after a second."""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event
from sqlalchemy.engine.default import DefaultDialect

from scheduler.daemon import main

_LOCKS = re.compile(r"(?:^|\(|\)\s*)(INSERT INTO|UPDATE|DELETE FROM)\s+(\w+)", re.IGNORECASE)
_HOLDS = re.compile(r"\bFROM\s+(\w+).*\b(FOR (?:NO KEY )?(?:UPDATE|SHARE|KEY SHARE))\b", re.IGNORECASE | re.DOTALL)


def points_of(statement: str) -> list[str]:
    """What this statement locks rows by; one that begins with WITH may do so in several ways."""
    text = statement.strip()
    if changes := _LOCKS.findall(text):
        return [f"{word.upper()} {table}" for word, table in changes]
    if found := _HOLDS.search(text):
        return [f"SELECT {found[1]} {found[2].upper()}"]
    return []


class Stopping:
    def __init__(self, folder: Path) -> None:
        self._points = folder / "points"
        self._stop = folder / "stop"
        self._go = folder / "go"
        self._seen: set[str] = set()

    def executed(self, connection: Any, cursor: Any, statement: str, *_more: Any) -> None:
        for point in points_of(statement):
            connection.info["locks"] = True
            self.at(f"after {point}")

    def committed(self, connection: Any, commit: Callable[[], None]) -> None:
        locks = connection.info.pop("locks", False)
        if locks:
            self.at("before COMMIT")
        commit()
        if locks:
            self.at("after COMMIT")

    def rolled_back(self, connection: Any) -> None:
        connection.info.pop("locks", None)

    def at(self, point: str) -> None:
        if point not in self._seen:
            self._seen.add(point)
            with self._points.open("a") as file:
                file.write(point + "\n")
        if not self._stop.exists():
            return
        wanted, _, number = self._stop.read_text().rpartition(" ")
        if wanted == point:
            self._stop.unlink(missing_ok=True)
            if int(number):
                os.kill(os.getpid(), int(number))
            else:
                self._wait()

    def _wait(self) -> None:
        until = time.monotonic() + 1.0
        while not self._go.exists() and time.monotonic() < until:
            threading.Event().wait(0.005)


def listen(stopping: Stopping) -> None:
    commit = DefaultDialect.do_commit

    def do_commit(self: DefaultDialect, connection: Any) -> None:
        stopping.committed(connection, partial(commit, self, connection))

    DefaultDialect.do_commit = do_commit  # type: ignore[method-assign]
    event.listen(Engine, "after_cursor_execute", stopping.executed)
    event.listen(Engine, "rollback", stopping.rolled_back)


if __name__ == "__main__":
    listen(Stopping(Path(sys.argv[1])))
    sys.exit(main([]))
