"""Hints between nodes by PostgreSQL's NOTIFY (core.hints.Ear).

They are not sent in the transactions that make them true: a commit that notifies excludes every other such commit of
the whole server while it waits for the disk, which would take away what commits gain from each other
(src/backend/commands/async.c, PreCommit_Notify). So they follow the commit, gathered, on the connection that listens.

A pooler that gives the server's connection away after each transaction cannot be listened through. It is known by the
number of the server process: the pooler tells its client another one than the server does. One that hides even that is
found by a word that is sent over another connection and does not arrive."""

from __future__ import annotations

import random
import secrets
import select
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, cast

import psycopg
import structlog
from psycopg.pq import PGnotify
from sqlalchemy.exc import SQLAlchemyError

from scheduler.core.hints import ALL, LISTENING, POLLING, Heard, Hearing, Said
from scheduler.store.dialects.postgresql import ALONE, PostgresDatabase

log = structlog.get_logger("store")

CHANNEL = "schedulerd"
PAUSE = 0.05
"""Seconds between two messages of a node: what there is to say meanwhile is said together."""
PROOF = 3.0
"""Seconds within which the word that proves the connection has to come."""
FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0
"""Seconds until a connection that was lost is tried again: twice as long each time, and up to half as long again."""
POOLED_WAIT = 600.0
"""Seconds until it is looked again whether there still is a pooler."""

POOLED = "a pooler is between this node and the server"
UNPROVEN = "a word sent over another connection did not arrive: is there a pooler in transaction mode?"


class PostgresEar:
    """One thread and one connection, besides those of the pool. Nothing is said or heard while it polls."""

    def __init__(self, database: PostgresDatabase, said: Said, heard: Heard) -> None:
        self._database = database
        self._said = said
        self._heard = heard
        self._stopped = threading.Event()
        self._rung = threading.Event()
        self._bell, self._clapper = socket.socketpair()
        self._clapper.setblocking(False)
        self._bell.setblocking(False)
        self._hearing = Hearing(POLLING, "it is about to connect")
        self._next = 0.0
        self._own = 0
        self._thread = threading.Thread(target=self._run, name="listen", daemon=True)

    @property
    def hearing(self) -> Hearing:
        return self._hearing

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._strike()
        if self._thread.is_alive():
            self._thread.join(1.0)  # It may be connecting to a server that does not answer; nobody waits for that.
        else:
            self._close()

    def ring(self) -> None:
        if not self._rung.is_set():
            self._rung.set()
            self._strike()

    def _strike(self) -> None:
        try:
            self._clapper.send(b"!")
        except OSError:
            return  # It is full of strokes that were not heard yet.

    # ------------------------------------------------------------ the thread

    def _run(self) -> None:
        try:
            self._connect_again_and_again()
        finally:
            self._close()

    def _close(self) -> None:
        self._bell.close()
        self._clapper.close()

    def _connect_again_and_again(self) -> None:
        failures = 0
        while not self._stopped.is_set():
            try:
                with self._connected() as connection:
                    why = self._deafness(connection)
                    if why is None:
                        failures = 0
                        self._become(Hearing(LISTENING))
                        self._heard(ALL)  # Whatever was said while nobody listened here.
                        self._listen(connection)
                        continue
                wait = POOLED_WAIT
            except Exception as error:
                if not isinstance(error, psycopg.Error | SQLAlchemyError | OSError):
                    log.exception("hints_failed")
                why = f"the connection for hints failed: {_line(error)}"
                wait = min(LONGEST_WAIT, FIRST_WAIT * 2**failures)
                failures = min(failures + 1, 10)
            self._become(Hearing(POLLING, why))
            self._stopped.wait(wait * random.uniform(1.0, 1.5))  # noqa: S311 -- spreads nodes, is no secret

    def _become(self, hearing: Hearing) -> None:
        if hearing != self._hearing:
            self._hearing = hearing
            log.info("hints", state=hearing.state, detail=hearing.why)

    @contextmanager
    def _connected(self) -> Iterator[psycopg.Connection[Any]]:
        pooled = self._database.engine.raw_connection()
        pooled.detach()  # Its place in the pool is free again.
        try:
            with closing(cast("psycopg.Connection[Any]", pooled.dbapi_connection)) as connection:
                connection.rollback()
                connection.autocommit = True
                connection.prepare_threshold = None  # Nobody looks here who answers.
                yield connection
        finally:
            pooled.invalidate()  # Closing it would roll back on what may be broken, and complain.

    def _deafness(self, connection: psycopg.Connection[Any]) -> str | None:
        """Why nothing would be heard on this connection; None: it listens."""
        told = connection.info.backend_pid
        if _pid(connection) != told:
            return POOLED  # Before LISTEN, which would stay behind on a connection that others get.
        self._own = told
        connection.execute(f"LISTEN {CHANNEL}")
        token = f"proof {secrets.token_hex(8)}"
        with self._database.engine.connect().execution_options(**ALONE) as other:
            other.exec_driver_sql("SELECT pg_notify(%s, %s)", (CHANNEL, token))
        until = time.monotonic() + PROOF
        while (left := until - time.monotonic()) > 0 and not self._stopped.is_set():
            if any(one.payload == token for one in connection.notifies(timeout=left, stop_after=1)):
                return None
        return UNPROVEN

    def _listen(self, connection: psycopg.Connection[Any]) -> None:
        """Until it is stopped, or the connection breaks (psycopg.Error)."""
        connection.add_notify_handler(lambda one: self._take(one.pid, one.payload))
        poll = select.poll()
        poll.register(connection.fileno(), select.POLLIN)
        poll.register(self._bell.fileno(), select.POLLIN)
        while not self._stopped.is_set():
            wait = self._say(connection)
            poll.poll(None if wait is None else wait * 1000)
            self._drain_bell()
            connection.pgconn.consume_input()
            while (one := connection.pgconn.notifies()) is not None:
                self._take(one.be_pid, _text(one))
        self._next = 0.0
        self._say(connection)

    def _say(self, connection: psycopg.Connection[Any]) -> float | None:
        """Says what there is to say, unless the last time was only just now; the seconds until it may be said."""
        if not self._rung.is_set():
            return None
        left = self._next - time.monotonic()
        if left > 0:
            return left
        self._rung.clear()
        words = self._said()
        self._next = time.monotonic() + PAUSE
        if words:
            connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, ",".join(sorted(words))))
        return None

    def _drain_bell(self) -> None:
        try:
            while self._bell.recv(256):
                pass
        except BlockingIOError:
            return

    def _take(self, pid: int, payload: str) -> None:
        words = ALL.intersection(payload.split(","))
        if words and pid != self._own:
            self._heard(words)


def _pid(connection: psycopg.Connection[Any]) -> int:
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    assert row is not None
    return int(row[0])


def _text(one: PGnotify) -> str:
    return one.extra.decode(errors="replace")


def _line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
