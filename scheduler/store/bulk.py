"""Many rows in one statement.

SQLite runs a prepared statement once per row, inside this process. PostgreSQL would parse and plan it once per row
(prepared statements outlive transactions, which poolers forbid): there the rows travel as one JSON text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    BindParameter,
    ClauseElement,
    Column,
    ColumnElement,
    Dialect,
    Integer,
    Table,
    bindparam,
    column,
    func,
    literal,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.expression import TableValuedAlias

from scheduler.store.session import Session, chunks

Row = Mapping[str, Any]


def insert_all(session: Session, table: Table, rows: Sequence[Row], *, new_only: bool = False) -> int:
    """Inserts rows in this order, which all have the same columns; the number that was inserted. With `new_only`, rows
    that a unique index refuses are left out; else one such row fails all."""
    total = 0
    for chunk in chunks(rows):
        names = tuple(chunk[0])
        if session.kind == "sqlite":
            total += _run_each(session, _insert_one(table, names, new_only), chunk)
        else:
            given = _records(session, [table.c[name] for name in names], chunk)
            source = select(*(given.c[name] for name in names)).order_by(given.c[_PLACE])
            filled = postgresql.insert(table).from_select(names, source, include_defaults=False)
            total += session.write(filled.on_conflict_do_nothing() if new_only else filled)
    return total


def update_each(
    session: Session,
    table: Table,
    keys: tuple[str, ...],
    rows: Sequence[Row],
    where: ColumnElement[bool] | None = None,
    *,
    keep_null: bool = False,
) -> int:
    """For each row: where the columns `keys` equal its values (and `where` holds), the other columns get its values;
    with `keep_null`, None leaves what is there. All rows have the same columns. The number of rows changed.

    PostgreSQL locks the rows in no order: whoever may meet another transaction locks them first."""
    total = 0
    for chunk in chunks(rows, _JOINED):
        names = tuple(name for name in chunk[0] if name not in keys)
        if session.kind == "sqlite":
            total += _run_each(session, _update_one(table, keys, names, where, keep_null), chunk)
        else:
            given = _records(session, [table.c[name] for name in chunk[0]], chunk)
            values = {name: _kept(given.c[name], table.c[name], keep_null) for name in names}
            matches = [table.c[name] == given.c[name] for name in keys]
            # says again, in a way that an index serves whatever is known about the table, which rows these are
            matches.append(session.among(table.c[keys[0]], {row[keys[0]] for row in chunk}))
            total += session.write(update(table).where(*matches, *_conditions(where)).values(values))
    return total


_JOINED = 200
"""Rows of an UPDATE at most: a server that knows nothing about a table may compare each with each."""

_PLACE = "place_in_list"


def _records(session: Session, columns: Sequence[Column[Any]], rows: Sequence[Row]) -> TableValuedAlias:
    """The rows as a table of these columns, and of their place in the list."""
    dialect = session.connection.dialect
    into = {one.name: _into(one, dialect) for one in columns}
    text = json.dumps(
        [{_PLACE: place, **{name: into[name](row[name]) for name in into}} for place, row in enumerate(rows)],
        default=datetime.isoformat,
        separators=(",", ":"),
    )
    shape = [column(one.name, one.type) for one in columns]
    call = func.json_to_recordset(literal(text).cast(postgresql.JSON))
    return call.table_valued(*shape, column(_PLACE, Integer)).render_derived(with_types=True)


def _same(value: Any) -> Any:
    return value


def _kept(value: ColumnElement[Any], old: Column[Any], keep_null: bool) -> ColumnElement[Any]:
    return func.coalesce(value, old) if keep_null else value


def _conditions(where: ColumnElement[bool] | None) -> tuple[ColumnElement[bool], ...]:
    return () if where is None else (where,)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A statement as the driver takes it: the fields of a row in the order of its question marks, and what makes a
    value fit for the driver."""

    text: str
    fields: tuple[tuple[str, Callable[[Any], Any]], ...]


def _run_each(session: Session, prepared: _Prepared, rows: Iterable[Row]) -> int:
    # SQLAlchemy's own way costs more per row than SQLite's work on it
    values = [tuple(into(row[name]) for name, into in prepared.fields) for row in rows]
    return session.connection.exec_driver_sql(prepared.text, values).rowcount


@lru_cache(maxsize=64)
def _insert_one(table: Table, names: tuple[str, ...], new_only: bool) -> _Prepared:
    statement = sqlite.insert(table).values({name: _given(table, name) for name in names})
    return _prepared(table, statement.on_conflict_do_nothing() if new_only else statement)


@lru_cache(maxsize=64)
def _update_one(
    table: Table, keys: tuple[str, ...], names: tuple[str, ...], where: ColumnElement[bool] | None, keep_null: bool
) -> _Prepared:
    values = {name: _kept(_given(table, name), table.c[name], keep_null) for name in names}
    matches = [table.c[name] == _given(table, name) for name in keys]
    return _prepared(table, update(table).where(*matches, *_conditions(where)).values(values))


_MARK = "given_"
"""A parameter must not have the name of a column."""


def _given(table: Table, name: str) -> BindParameter[Any]:
    return bindparam(f"{_MARK}{name}", type_=table.c[name].type)


def _prepared(table: Table, statement: ClauseElement) -> _Prepared:
    dialect = sqlite.dialect()
    compiled = statement.compile(dialect=dialect)
    assert isinstance(compiled, SQLCompiler)
    assert compiled.positiontup is not None
    names = [marked.removeprefix(_MARK) for marked in compiled.positiontup]
    return _Prepared(str(compiled), tuple((name, _into(table.c[name], dialect)) for name in names))


def _into(one: Column[Any], dialect: Dialect) -> Callable[[Any], Any]:
    return one.type.dialect_impl(dialect).bind_processor(dialect) or _same
