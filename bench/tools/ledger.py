"""The daemon's ledger, read with plain SQL by another connection: what it shows is durable."""

from __future__ import annotations

import sqlite3
import threading
import time
from bisect import bisect_left
from pathlib import Path
from typing import Any

import psycopg


class Ledger:
    """`url` empty: the SQLite file of that state directory."""

    def __init__(self, state: Path, url: str = "") -> None:
        self._postgres: psycopg.Connection[Any] | None = None
        self._sqlite: sqlite3.Connection | None = None
        if url:
            self._postgres = psycopg.connect(url, autocommit=True)
        else:
            # Autocommit, so that every query sees what is committed by then.
            self._sqlite = sqlite3.connect(
                f"file:{state / 'scheduler.db'}?mode=ro", uri=True, isolation_level=None, check_same_thread=False
            )

    def value(self, query: str) -> Any:
        """The one value that the query gives."""
        if self._postgres is not None:
            row = self._postgres.execute(query.encode()).fetchone()
        else:
            assert self._sqlite is not None
            row = self._sqlite.execute(query).fetchone()
        return None if row is None else row[0]

    def last(self) -> int:
        """The number of the newest run; 0 if there is none. Costs one look into an index."""
        return int(self.value("SELECT max(seq) FROM runs") or 0)

    def runs(self, where: str = "1 = 1") -> int:
        """Without those of the canary, which nobody asked for."""
        return int(self.value(f"SELECT count(*) FROM runs WHERE job <> '_canary' AND ({where})"))

    def close(self) -> None:
        for connection in (self._postgres, self._sqlite):
            if connection is not None:
                connection.close()


class Arrivals:
    """Notes from when on each new run can be read from the ledger, within 4 ms."""

    STEP = 0.004

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.base = ledger.last()
        self._seen: list[tuple[int, float]] = []
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._look, name="arrivals")
        self._thread.start()

    def _look(self) -> None:
        known = self.base
        while not self._end.wait(self.STEP):
            last = self._ledger.last()
            if last > known:
                known = last
                self._seen.append((last, time.time()))

    def known(self) -> int:
        """How many there are so far."""
        return self._seen[-1][0] - self.base if self._seen else 0

    def stop(self) -> list[float]:
        """When each run appeared, in seconds since 1970."""
        self._end.set()
        self._thread.join()
        numbers = [number for number, _ in self._seen]
        return [
            self._seen[bisect_left(numbers, one)][1] for one in range(self.base + 1, (numbers or [self.base])[-1] + 1)
        ]
