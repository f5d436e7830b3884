"""Moves a ledger into another database: every row of every table, in batches, to be gone on with when interrupted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from sqlalchemy import (
    Connection,
    Integer,
    Table,
    TableClause,
    Text,
    column,
    delete,
    func,
    insert,
    select,
    table,
    text,
)

from scheduler.core.errors import Refused
from scheduler.store import tables as t
from scheduler.store.dialects.base import Database
from scheduler.store.moved import COPYING, MOVED, named_value
from scheduler.store.schema import HEAD, OLDEST_RELEASE_KEY, revision_of
from scheduler.store.store import faults_told, prepare
from scheduler.store.types import FreeText, JsonText

BATCH = 1000
SMALL_BATCHES = {"event_bodies": 64, "outputs": 16, "payloads": 100, "rejects": 64, "runs": 500, "scan_asides": 64}
"""Of rows that may be large: a batch is in memory at once."""
LIVE_WITHIN = timedelta(seconds=30)

Progress = Callable[[str, int, int], None]
"""Table, rows that are there by now, rows in all."""


class Transfer:
    """From `source`, which no daemon uses, to `target`, which is empty or holds the beginning of the same transfer. In
    this order: `begin`, `copy`, `compare`, `finish`; a `target` that is not finished is refused by every daemon."""

    def __init__(self, source: Database, target: Database) -> None:
        self._source = source
        self._target = target
        self._tables = [one for one in t.metadata.sorted_tables if one is not t.installation]

    def begin(self, release: str) -> bool:
        """Prepares the target; whether it goes on with what was begun before. Refused for a source that is in use or
        of another schema, and for a target with anything else in it."""
        with _reading(self._source) as old:
            self._check_source(old)
        with faults_told(self._target):
            prepare(self._target, release)
        with self._writing() as new:
            begun = named_value(new, COPYING)
            if begun is None:
                self._refuse_content(new)
                new.execute(insert(t.installation), {"key": COPYING, "value": self._source.place()})
            elif begun != self._source.place():
                raise Refused(
                    f"{self._target.place()} holds part of a copy of {begun}",
                    hint="go on with that one, or name a database that is empty",
                )
        return begun is not None

    def copy(self, progress: Progress) -> int:
        """Copies what is not there yet; the number of rows that are there then."""
        with _reading(self._source) as old:
            total = sum(self._copy_table(old, one, progress) for one in self._tables)
            for one in self._tables:
                if _is_counted(one):
                    last = _counter(old, one, self._source.kind)
                    with self._writing() as new:
                        _set_counter(new, one, self._target.kind, last)
        return total

    def compare(self) -> list[str]:
        """What differs in the numbers of rows, in words."""
        with _reading(self._source) as old, _reading(self._target) as new:
            pairs = [(one.name, _count(old, one), _count(new, one)) for one in self._tables]
        return [f"{name}: {there} rows instead of {wanted}" for name, wanted, there in pairs if there != wanted]

    def finish(self) -> None:
        """From now on daemons may use the target, and not the source, which remembers where its ledger went."""
        own = (OLDEST_RELEASE_KEY, COPYING, MOVED)
        with _reading(self._source) as old:
            rows = old.execute(select(t.installation).where(t.installation.c.key.not_in(own))).mappings()
            values = [dict(row) for row in rows]
        with self._writing() as new:
            new.execute(delete(t.installation).where(t.installation.c.key != OLDEST_RELEASE_KEY))
            if values:
                new.execute(insert(t.installation), values)
            new.execute(text("ANALYZE"))
        with faults_told(self._source), self._source.writing() as old:
            old.execute(delete(t.installation).where(t.installation.c.key == MOVED))
            old.execute(insert(t.installation), {"key": MOVED, "value": self._target.place()})

    # ------------------------------------------------------------ parts

    def _check_source(self, old: Connection) -> None:
        revision = revision_of(old)
        if revision != HEAD:
            raise Refused(
                f"{self._source.place()} has schema {revision or 'none'}, this release copies {HEAD}",
                hint="start this release's daemon on it once, stop it, and copy then",
            )
        # A SQLite file has a lock, which says it at once.
        if self._source.kind == "sqlite":
            return
        live = select(t.nodes).where(t.nodes.c.state.in_(["live", "stopping"])).order_by(t.nodes.c.beat_at.desc())
        node = old.execute(live.limit(1)).first()
        if node is not None and self._source.now() - node.beat_at < LIVE_WITHIN:
            raise Refused(
                f"{self._source.place()} is in use by the daemon with pid {node.pid} on {node.host}",
                hint=f"stop it; one that was killed counts for {LIVE_WITHIN.total_seconds():g} s",
            )

    def _refuse_content(self, new: Connection) -> None:
        filled = [one.name for one in self._tables if _count(new, one)]
        if filled:
            raise Refused(
                f"{self._target.place()} is not empty: there are rows in {', '.join(sorted(filled))}",
                hint="name a database that nobody has used",
            )

    def _copy_table(self, old: Connection, one: Table, progress: Progress) -> int:
        plain, size, wanted = _plain(one), SMALL_BATCHES.get(one.name, BATCH), _count(old, one)
        with _reading(self._target) as new:
            there = _count(new, one)
        # The source does not change, and each batch is committed whole: what is there is the beginning.
        rest = select(plain).order_by(*(plain.c[key.name] for key in one.primary_key)).offset(there)
        with old.execute(rest, execution_options={"yield_per": size}) as result:
            for rows in result.mappings().partitions(size):
                with self._writing() as new:
                    new.execute(insert(plain), [dict(row) for row in rows])
                there += len(rows)
                progress(one.name, there, wanted)
        return there

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with faults_told(self._target), self._target.migrating() as connection:
            yield connection


@contextmanager
def _reading(database: Database) -> Iterator[Connection]:
    """Without the time limits of a daemon's transactions."""
    with faults_told(database), database.engine.connect() as connection, connection.begin():
        yield connection


def _plain(one: Table) -> TableClause:
    """The table with the texts that it stores, not with what they mean."""
    columns = [column(c.name, Text() if isinstance(c.type, JsonText | FreeText) else c.type) for c in one.columns]
    return table(one.name, *columns)


def _count(connection: Connection, one: Table) -> int:
    return int(connection.execute(select(func.count()).select_from(one)).scalar_one())


def _is_counted(one: Table) -> bool:
    """Its rows are numbered by the database."""
    keys = list(one.primary_key)
    return len(keys) == 1 and isinstance(keys[0].type, Integer) and keys[0].autoincrement is not False


def _counter(connection: Connection, one: Table, kind: str) -> int:
    """The last number that was given, also if its row is gone: none is given twice."""
    (key,) = one.primary_key
    names = {"name": one.name, "key": key.name}
    given = {
        "postgresql": "SELECT pg_sequence_last_value(pg_get_serial_sequence(:name, :key)::regclass)",
        "sqlite": "SELECT seq FROM sqlite_sequence WHERE name = :name",
    }[kind]
    last = connection.execute(select(func.max(key))).scalar()
    return max(int(last or 0), int(connection.execute(text(given), names).scalar() or 0))


def _set_counter(connection: Connection, one: Table, kind: str, last: int) -> None:
    if last == 0:
        return
    (key,) = one.primary_key
    if kind == "postgresql":
        connection.execute(select(func.setval(func.pg_get_serial_sequence(one.name, key.name), last)))
    elif one.dialect_options["sqlite"]["autoincrement"]:
        names = {"name": one.name, "last": last}
        connection.execute(text("DELETE FROM sqlite_sequence WHERE name = :name"), names)
        connection.execute(text("INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :last)"), names)
