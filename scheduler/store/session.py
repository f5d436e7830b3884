"""What every verb of the store works with: a connection inside a transaction, and how to say things on it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Select, Table, Text, any_, bindparam, literal, select, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import CursorResult, Result
from sqlalchemy.sql.base import Executable

from scheduler.core.value_object import value_object
from scheduler.store import tables as t

T = TypeVar("T")

_LISTED = text("SELECT value FROM json_each(:listed)")

CHUNK = 5_000
"""Rows per statement at most: far below the limits on parameters, and below the time limit of a statement."""


@value_object
class Session:
    """One transaction on one connection."""

    connection: Connection
    kind: str

    def rows(self, statement: Select[*tuple[Any, ...]], **values: Any) -> Result[*tuple[Any, ...]]:
        """`values` are those of the statement's parameters: what is asked all the time is built once, with parameters,
        because to build it takes longer than to execute it."""
        return self.connection.execute(statement, values or None)

    def write(self, statement: Executable, rows: Sequence[dict[str, Any]] | dict[str, Any] | None = None) -> int:
        """The number of rows changed; a list of rows is one batch (an empty one does nothing)."""
        if isinstance(rows, Sequence) and not rows:
            return 0
        # without the option the number is kept for UPDATE and DELETE only
        result: CursorResult[Any] = self.connection.execute(
            statement, rows, execution_options={"preserve_rowcount": True}
        )
        return result.rowcount

    def insert(self, table: Table) -> Any:
        """An INSERT that knows ON CONFLICT."""
        return postgresql.insert(table) if self.kind == "postgresql" else sqlite.insert(table)

    def among(self, column: ColumnElement[Any], values: Iterable[Any]) -> ColumnElement[bool]:
        """Whether the column has one of these texts or numbers. They travel as one parameter: a list of parameters
        makes another statement for each length, which costs more to build, parse and plan than to execute."""
        found = list(values)
        if self.kind == "sqlite":
            # As text: to build the same out of elements takes longer than to execute most statements.
            return column.in_(_LISTED.bindparams(bindparam("listed", json.dumps(found), type_=Text, unique=True)))
        return column == any_(literal(found, postgresql.ARRAY(column.type)))

    def listing(self, values: Iterable[Any]) -> Any:
        """What the parameter of `listed` gets."""
        found = list(values)
        return json.dumps(found) if self.kind == "sqlite" else found

    def unheld(self, where: ColumnElement[bool], seqs: Sequence[int]) -> Sequence[int]:
        """The numbers of those of these runs for which `where` is true and that nobody is changing at this moment:
        locked (never waited for, so that no two transactions wait for each other) until the transaction ends."""
        if self.kind == "sqlite" or not seqs:
            return seqs
        return self.rows(unheld(where), listed=seqs).scalars().all()

    def lock_jobs(self, names: Iterable[str], *, change: bool = False) -> None:
        """Locks the rows of jobs in the order of names: against other planning and settling, with `change` against
        claims too. SQLite has nothing to lock: there is one writer."""
        wanted = set(names)
        if self.kind == "sqlite" or not wanted:
            return
        self.rows(_locked_jobs(change), listed=list(wanted)).all()


def listed(kind: str, column: ColumnElement[Any], name: str = "listed") -> ColumnElement[bool]:
    """As `Session.among`, with a parameter of this name: for statements that are built once, because to build them
    takes longer than to execute them."""
    if kind == "sqlite":
        return column.in_(text(f"SELECT value FROM json_each(:{name})").bindparams(bindparam(name, type_=Text)))  # noqa: S608
    return column == any_(bindparam(name, type_=postgresql.ARRAY(column.type)))


@lru_cache(maxsize=64)
def unheld(where: ColumnElement[bool]) -> Select[tuple[int]]:
    """What `Session.unheld` asks PostgreSQL. In another statement it must be a CTE, which is carried out once: a
    subquery PostgreSQL may run once per row, which is quadratic and, with a LIMIT, locks more rows than it says."""
    seq = t.runs.c.seq
    query = select(seq).where(listed("postgresql", seq), where).order_by(seq)
    return query.with_for_update(skip_locked=True)


@cache
def _locked_jobs(change: bool) -> Select[Any]:
    name = t.jobs.c.name
    return select(name).where(listed("postgresql", name)).order_by(name).with_for_update(key_share=not change)


def chunks(items: Iterable[T], size: int = CHUNK) -> Iterator[list[T]]:
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk
