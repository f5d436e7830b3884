"""A store as one node sees it: with the clock of its database, and with the faults that a test asks for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any

from scheduler.core.errors import DatabaseAway
from scheduler.core.look import Glance, Look
from scheduler.store.store import SqlStore


class Door:
    """`away`: nothing can be reached. `broken_commits`: so many of the next transactions are rolled back at their end,
    `lost_answers`: so many are committed, but nobody hears of it. `begun` is called first of all."""

    def __init__(self, store: SqlStore, now: Callable[[], datetime]) -> None:
        self._store = store
        self._now = now
        self.kind = store.kind
        self.away = False
        self.broken_commits = 0
        self.lost_answers = 0
        self.writes = 0
        self.begun: Callable[[], None] = lambda: None

    @contextmanager
    def held(self) -> Iterator[threading.Event]:
        """Whoever begins to write in this block waits for its end; the event says that somebody does."""
        entered, over = threading.Event(), threading.Event()

        def wait() -> None:
            entered.set()
            assert over.wait(20)

        self.begun = wait
        try:
            yield entered
        finally:
            over.set()

    @contextmanager
    def begin(self) -> Iterator[Any]:
        self._reach()
        self.begun()
        with self._store.begin() as tx:
            yield replace(tx, now=self._now())
            if self.broken_commits:
                self.broken_commits -= 1
                raise DatabaseAway("the connection broke before the commit")
        self.writes += 1
        if self.lost_answers:
            self.lost_answers -= 1
            raise DatabaseAway("the connection broke after the commit")

    def read(self) -> AbstractContextManager[Any]:
        self._reach()
        return self._store.read()

    def queries(self) -> AbstractContextManager[Any]:
        self._reach()
        return self._store.queries()

    def db_status(self) -> Any:
        return self._store.db_status()

    def look(self, node: str, generation: int, last: Look | None = None) -> Look:
        self._reach()
        return replace(self._store.look(node, generation, last), now=self._now())

    def glance(self, node: str) -> Glance:
        self._reach()
        return replace(self._store.glance(node), now=self._now())

    def now(self) -> datetime:
        return self._now()

    def _reach(self) -> None:
        if self.away:
            raise DatabaseAway("the database is away")
