"""A connection that gives up on a server of which nothing is heard any more.

The server's own time-outs need a server that can be heard, and those of TCP end where a proxy or balancer answers in
its name: what is behind it may have gone for ever."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any, TypeVar

import psycopg
from psycopg.rows import TupleRow

T = TypeVar("T")

SILENCE = 5.0
"""Seconds without a byte from the server: more than it takes to end a statement by itself (dialects.base.PATIENCE)."""


class LastAnswer(psycopg.Cursor[TupleRow]):
    """Of several statements that are sent as one it has the answer to the last."""

    def execute(self, *args: Any, **options: Any) -> LastAnswer:
        super().execute(*args, **options)
        while self.nextset():
            pass
        return self


class BoundedConnection(psycopg.Connection[TupleRow]):
    """Raises OperationalError, and is closed, when the server has been silent for `silence` seconds though an answer is
    due (None: waits for ever). Whether what was asked took place is then not known."""

    silence: float | None = SILENCE

    def wait(self, gen: Generator[Any, Any, T], *args: Any, **kwargs: Any) -> T:
        return super().wait(gen if self.silence is None else self._bounded(gen, self.silence), *args, **kwargs)

    def _bounded(self, gen: Generator[Any, Any, T], silence: float) -> Generator[Any, Any, T]:
        """Whoever drives it looks in again every tenth of a second while nothing can be read or written."""
        heard = time.monotonic()
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if ready:
                    heard = time.monotonic()
                elif time.monotonic() - heard > silence:
                    self.pgconn.finish()
                    raise psycopg.OperationalError(f"no answer from the server for {silence:g} s")
                wanted = gen.send(ready)
        except StopIteration as end:
            done: T = end.value
            return done
