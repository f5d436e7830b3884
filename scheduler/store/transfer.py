"""Moves a ledger into another database: every row of every table, in batches, to be gone on with when interrupted.

A source that a daemon opened meanwhile has forgotten the copy (scheduler.store.moved), and nodes show it by their
beats: what was copied before is then no beginning of it, and the copy begins anew.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from enum import Enum

from sqlalchemy import (
    Connection,
    Table,
    TableClause,
    Text,
    column,
    delete,
    func,
    insert,
    inspect,
    literal,
    select,
    table,
    text,
    update,
)

from scheduler.core.errors import Refused
from scheduler.store import tables as t
from scheduler.store.counters import counter, is_counted, set_counter
from scheduler.store.dialects.base import Database
from scheduler.store.moved import COPY, COPYING, MOVED, OF_A_COPY, SEEN_NODES, forget, name_value, named_value
from scheduler.store.schema import HEAD, OLDEST_RELEASE_KEY, revision_of
from scheduler.store.store import faults_told, mistakes_told, prepare
from scheduler.store.types import FreeText, JsonText

BATCH = 1000
SMALL_BATCHES = {"event_bodies": 64, "outputs": 16, "payloads": 100, "rejects": 64, "runs": 500, "scan_asides": 64}
"""Of rows that may be large: a batch is in memory at once."""
HOLDING = ("live", "stopping")
"""States of nodes that may hold runs."""
LIVE_WITHIN = timedelta(seconds=30)
LEASE = timedelta(minutes=3)
"""As a daemon on PostgreSQL has it by default."""

Progress = Callable[[str, int, int], None]
"""Table, rows that are there by now, rows in all."""


class Begun(Enum):
    NEW = "a new copy"
    AGAIN = "what was interrupted goes on"
    ANEW = "what was interrupted begins anew, because the source was used meanwhile"
    DONE = "it was finished before"


class Transfer:
    """From `source`, which no daemon uses, to `target`, which is empty or holds the beginning of the same transfer. In
    this order: `begin`, `copy`, `compare`, `finish`; a `target` that is not finished is refused by every daemon. It may
    be killed at any point: what is done then is to do the same again."""

    def __init__(self, source: Database, target: Database) -> None:
        self._source = source
        self._target = target
        self._tables = [one for one in t.metadata.sorted_tables if one is not t.installation]
        self._token = uuid.uuid4().hex

    def begin(self, release: str) -> Begun:
        """Prepares the target; DONE: there is nothing left to do. Refused for a source that is in use, of another
        schema or was moved elsewhere, and for a target with anything else in it, or of another schema."""
        with _reading(self._source) as old:
            self._check_source(old)
            moved, mark, nodes = named_value(old, MOVED), named_value(old, COPY), _nodes(old)
        if moved not in (None, self._target.place()):
            raise self._gone_before(str(moved))
        begun, filled = self._look_at_target()
        if moved is not None and begun is None:
            if not filled:
                raise self._gone_before(moved)
            return Begun.DONE
        self._refuse_other(begun, filled)
        with faults_told(self._target):
            prepare(self._target, release)
        with faults_told(self._target), self._target.migrating() as new:
            good = mark is not None and mark == named_value(new, COPY) and nodes == named_value(new, SEEN_NODES)
            anew = begun is not None and moved is None and not good
            if anew:
                for one in reversed(self._tables):
                    new.execute(delete(one))
            name_value(new, COPYING, self._source.place())
            name_value(new, COPY, self._token)
            name_value(new, SEEN_NODES, nodes)
        if moved is None:
            with faults_told(self._source), self._source.writing() as old:
                name_value(old, COPY, self._token)
        return Begun.ANEW if anew else Begun.NEW if begun is None else Begun.AGAIN

    def copy(self, progress: Progress) -> int:
        """Copies what is not there yet; the number of rows that are there then."""
        with _reading(self._source) as old:
            total = sum(self._copy_table(old, one, progress) for one in self._tables)
            for one in self._tables:
                if is_counted(one):
                    last = counter(old, one, self._source.kind)
                    with self._writing() as new:
                        set_counter(new, one, self._target.kind, last)
        return total

    def compare(self) -> list[str]:
        """What differs in the numbers of rows, in words."""
        with _reading(self._source) as old, _reading(self._target) as new:
            pairs = [(one.name, _count(old, one), _count(new, one)) for one in self._tables]
        return [f"{name}: {there} rows instead of {wanted}" for name, wanted, there in pairs if there != wanted]

    def finish(self) -> None:
        """From now on daemons may use the target, and not the source, which remembers where its ledger went. Refused
        if a daemon used the source meanwhile."""
        with _reading(self._target) as new:
            nodes = named_value(new, SEEN_NODES)
        with faults_told(self._source), self._source.writing() as old:
            self._mark_source(old, nodes)
            theirs = t.installation.c.key.not_in((OLDEST_RELEASE_KEY, *OF_A_COPY))
            values = [dict(row) for row in old.execute(select(t.installation).where(theirs)).mappings()]
        with self._writing() as new:
            # Whoever held runs without a lease is gone, but only a daemon on its state directory knows how they ended:
            # it has the time of a lease to take them over.
            new.execute(update(t.nodes).where(t.nodes.c.lease.is_(None)).values(lease=LEASE.total_seconds()))
            new.execute(delete(t.installation).where(t.installation.c.key != OLDEST_RELEASE_KEY))
            if values:
                new.execute(insert(t.installation), values)
            new.execute(text("ANALYZE"))

    # ------------------------------------------------------------ parts

    def _check_source(self, old: Connection) -> None:
        revision = revision_of(old)
        if revision != HEAD:
            raise Refused(
                f"{self._source.place()} has schema {revision or 'none'}, this release copies {HEAD}",
                hint="start this release's daemon on it once, stop it, and copy then",
            )
        if named_value(old, COPYING) is not None:
            raise Refused(
                f"{self._source.place()} is itself an unfinished copy", hint="finish that one: type its command again"
            )
        # A SQLite file has a lock, which says it at once.
        if self._source.kind == "sqlite":
            return
        live = select(t.nodes).where(t.nodes.c.state.in_(HOLDING)).order_by(t.nodes.c.beat_at.desc())
        node = old.execute(live.limit(1)).first()
        if node is not None and self._source.now() - node.beat_at < LIVE_WITHIN:
            raise Refused(
                f"{self._source.place()} is in use by the daemon with pid {node.pid} on {node.host}",
                hint=f"stop it; one that was killed counts for {LIVE_WITHIN.total_seconds():g} s",
            )

    def _gone_before(self, whereto: str) -> Refused:
        return Refused(
            f"the ledger in {self._source.place()} was moved to {whereto} before",
            hint="copy it from there; to go back to this one, start a daemon on it once with --after-restore",
        )

    def _look_at_target(self) -> tuple[str | None, list[str]]:
        """Of which copy it holds a part, and the tables that have rows; nothing of it is changed by looking."""
        with _reading(self._target) as new:
            revision = revision_of(new)
            if revision is None:
                return None, []
            if revision > HEAD:
                raise Refused(
                    f"{self._target.place()} has schema {revision}, which is newer than this release's, {HEAD}",
                    hint="name a database that nobody has used, or copy with the newer release",
                )
            present = set(inspect(new).get_table_names())
            filled = [one.name for one in self._tables if one.name in present and _any(new, one)]
            return named_value(new, COPYING), sorted(filled)

    def _refuse_other(self, begun: str | None, filled: list[str]) -> None:
        if begun is None and filled:
            raise Refused(
                f"{self._target.place()} is not empty: there are rows in {', '.join(filled)}",
                hint="name a database that nobody has used",
            )
        if begun not in (None, self._source.place()):
            raise Refused(
                f"{self._target.place()} holds part of a copy of {begun}",
                hint="go on with that one, or name a database that is empty",
            )

    def _mark_source(self, old: Connection, nodes: str | None) -> None:
        if named_value(old, MOVED) == self._target.place():
            return  # It was killed between the two sides.
        if self._source.kind == "postgresql":
            old.execute(text("LOCK TABLE nodes IN SHARE ROW EXCLUSIVE MODE"))  # No node registers meanwhile.
        if named_value(old, COPY) != self._token or _nodes(old) != nodes:
            raise Refused(
                f"a daemon used {self._source.place()} while it was copied",
                hint="stop it and type the same again: the copy begins anew",
            )
        forget(old, COPY)
        name_value(old, MOVED, self._target.place())
        if self._source.kind == "postgresql":
            # One that was stopped (SIGSTOP) and goes on finds that it holds nothing any more.
            holding = t.nodes.c.state.in_(HOLDING)
            old.execute(select(t.nodes.c.id).where(holding).order_by(t.nodes.c.id).with_for_update())
            old.execute(update(t.nodes).where(holding).values(state="dead"))

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
            if named_value(connection, COPY) != self._token:
                raise Refused(
                    f"another `schedctl db copy` goes on with {self._target.place()}", hint="wait for that one"
                )
            yield connection


@contextmanager
def _reading(database: Database) -> Iterator[Connection]:
    """Without the time limits of a daemon's transactions."""
    with faults_told(database), mistakes_told(database), database.engine.connect() as connection, connection.begin():
        yield connection


def _plain(one: Table) -> TableClause:
    """The table with the texts that it stores, not with what they mean."""
    columns = [column(c.name, Text() if isinstance(c.type, JsonText | FreeText) else c.type) for c in one.columns]
    return table(one.name, *columns)


def _count(connection: Connection, one: Table) -> int:
    return int(connection.execute(select(func.count()).select_from(one)).scalar_one())


def _any(connection: Connection, one: Table) -> bool:
    return connection.execute(select(literal(1)).select_from(one).limit(1)).first() is not None


def _nodes(connection: Connection) -> str:
    """How the nodes stand: another text as soon as one has come, gone or raised its beat."""
    rows = connection.execute(select(t.nodes.c.id, t.nodes.c.beat, t.nodes.c.state))
    return hashlib.sha256(repr(sorted(map(tuple, rows))).encode()).hexdigest()
