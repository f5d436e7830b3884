"""Many rows on SQLite: a prepared statement, run once per row."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from sqlalchemy import ClauseElement, ColumnElement, Table, update
from sqlalchemy.dialects import sqlite
from sqlalchemy.sql.compiler import SQLCompiler

from scheduler.core.value_object import value_object
from scheduler.store.bulk_values import Fields, Row, fields_of, fit, given, kept, name_of, unless_there
from scheduler.store.session import Session


@value_object
class Prepared:
    """A statement as the driver takes it: the fields of a row in the order of its question marks."""

    text: str
    fields: Fields


def run_each(session: Session, prepared: Prepared, rows: Sequence[Row]) -> int:
    """The number of rows changed."""
    # SQLAlchemy's own way costs more per row than SQLite's work on it
    values = list(zip(*(fit(rows, name, into) for name, into in prepared.fields), strict=True))
    return session.connection.exec_driver_sql(prepared.text, values).rowcount


@lru_cache(maxsize=64)
def insert_one(table: Table, names: tuple[str, ...], new_only: bool, replaces: bool) -> Prepared:
    statement = sqlite.insert(table).values({name: given(table, name) for name in names})
    return _prepared(table, unless_there(table, statement, names, new_only, replaces))


@lru_cache(maxsize=64)
def update_one(
    table: Table, keys: tuple[str, ...], names: tuple[str, ...], where: ColumnElement[bool] | None, keep_null: bool
) -> Prepared:
    values = {name: kept(given(table, name), table.c[name], keep_null) for name in names if name not in keys}
    matches = [table.c[name] == given(table, name) for name in keys]
    if where is not None:
        matches.append(where)
    return _prepared(table, update(table).where(*matches).values(values))


def _prepared(table: Table, statement: ClauseElement) -> Prepared:
    dialect = sqlite.dialect()
    compiled = statement.compile(dialect=dialect)
    assert isinstance(compiled, SQLCompiler)
    assert compiled.positiontup is not None
    names = [name.removeprefix(name_of(table, "")) for name in compiled.positiontup]
    return Prepared(str(compiled), fields_of([table.c[name] for name in names], dialect))
