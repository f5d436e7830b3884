"""Values of many rows on their way to a database: what makes them fit for its driver, and what they have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import BindParameter, Column, ColumnElement, Dialect, LargeBinary, Table, bindparam, func
from sqlalchemy.dialects import postgresql, sqlite

from scheduler.store.types import JsonText

Row = Mapping[str, Any]
Fields = tuple[tuple[str, Callable[[Any], Any]], ...]
"""Columns, and what makes a value fit for the driver."""

_MANY = 20
"""Rows from which on it pays to look for what they have in common."""


def fields_of(columns: Sequence[Column[Any]], dialect: Dialect) -> Fields:
    return tuple((one.name, _into(one, dialect)) for one in columns)


def _into(one: Column[Any], dialect: Dialect) -> Callable[[Any], Any]:
    if isinstance(one.type, LargeBinary) and dialect.name == "postgresql":
        return _hex
    return one.type.dialect_impl(dialect).bind_processor(dialect) or _same


def _same(value: Any) -> Any:
    return value


def _hex(value: bytes | None) -> str | None:
    """Bytes as they are written in a list of rows."""
    return None if value is None else "\\x" + value.hex()


def fit(rows: Sequence[Row], name: str, into: Callable[[Any], Any]) -> list[Any]:
    """The values of one column, fit for the driver. Of rows that are made together many have the very same value."""
    if into is _same:
        return [row[name] for row in rows]
    last = rows[0][name]
    made = into(last)
    values = []
    for row in rows:
        if row[name] is not last:
            last = row[name]
            made = into(last)
        values.append(made)
    return values


def alike(table: Table, rows: Sequence[Row]) -> tuple[str, ...]:
    """The columns in which all rows have the same value, which need not travel with each of them."""
    if len(rows) < _MANY:
        return ()
    return tuple(name for name in rows[0] if _is_alike([row[name] for row in rows], table.c[name]))


def _is_alike(values: list[Any], column: Column[Any]) -> bool:
    if isinstance(column.type, JsonText):  # As JSON, 1 and 1.0 and true are three values.
        return all(value is values[0] for value in values)
    return values.count(values[0]) == len(values)


def name_of(table: Table, what: str) -> str:
    """Of a parameter: none has the name of a column, and no two tables of a statement share one."""
    return f"{table.name}__{what}"


def given(table: Table, name: str) -> BindParameter[Any]:
    """The parameter for a value of this column."""
    return bindparam(name_of(table, name), type_=table.c[name].type)


def kept(value: ColumnElement[Any], old: Column[Any], keep_null: bool) -> ColumnElement[Any]:
    return func.coalesce(value, old) if keep_null else value


def unless_there(
    table: Table, statement: postgresql.Insert | sqlite.Insert, names: tuple[str, ...], new_only: bool, replaces: bool
) -> postgresql.Insert | sqlite.Insert:
    if new_only:
        return statement.on_conflict_do_nothing()
    if not replaces:
        return statement
    keys = [column.name for column in table.primary_key]
    values = {name: statement.excluded[name] for name in names if name not in keys}
    return statement.on_conflict_do_update(index_elements=keys, set_=values)
