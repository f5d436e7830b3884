"""Many rows in one statement.

SQLite runs a prepared statement once per row, inside this process. PostgreSQL would parse and plan it once per row
(prepared statements outlive transactions, which poolers forbid): there the rows travel as one JSON text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import count
from typing import Any

from sqlalchemy import (
    BindParameter,
    ClauseElement,
    Column,
    ColumnElement,
    Dialect,
    Executable,
    Integer,
    LargeBinary,
    Table,
    Text,
    Update,
    bindparam,
    column,
    func,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.expression import TableValuedAlias

from scheduler.store.session import Session, chunks, listed
from scheduler.store.types import JsonText

Row = Mapping[str, Any]
_Fields = tuple[tuple[str, Callable[[Any], Any]], ...]
"""Columns, and what makes a value fit for the driver."""


def insert_all(
    session: Session, table: Table, rows: Sequence[Row], *, new_only: bool = False, replaces: bool = False
) -> int:
    """Inserts rows in this order, which all have the same columns; the number that was inserted. With `new_only`, rows
    that a unique index refuses are left out, with `replaces` they take the place of those that are there; else one such
    row fails all."""
    total = 0
    for chunk in chunks(rows):
        names = tuple(chunk[0])
        if session.kind == "sqlite":
            total += _run_each(session, _insert_one(table, names, new_only, replaces), chunk)
        else:
            alike = _alike(table, chunk)
            statement, fields = _insert_listed(table, names, alike, new_only, replaces, session.connection.dialect)
            values = {_name(table, _LIST): _listed(fields, chunk), **_given_of(table, chunk, alike)}
            total += session.write(statement, values)
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
        names = tuple(chunk[0])
        if session.kind == "sqlite":
            total += _run_each(session, _update_one(table, keys, names, where, keep_null), chunk)
        else:
            statement, fields = _update_listed(table, keys, names, (), where, keep_null, session.connection.dialect)
            total += session.write(statement, _values_of(table, keys, (), fields, chunk))
    return total


@dataclass(frozen=True, slots=True)
class Change:
    """What `update_each` does with these rows. In the columns named by `often` most batches have one value for all
    rows, which costs less then."""

    table: Table
    keys: tuple[str, ...]
    rows: Sequence[Row]
    often: tuple[str, ...] = ()


def update_tables(session: Session, changes: Sequence[Change]) -> None:
    """Changes of different tables, where PostgreSQL is concerned in one statement."""
    wanted = [one for one in changes if one.rows]
    if session.kind == "sqlite" or any(len(one.rows) > _JOINED for one in wanted):
        for one in wanted:
            update_each(session, one.table, one.keys, one.rows)
        return
    shapes: list[_Shape] = []
    values: dict[str, Any] = {}
    for one in wanted:
        alike = one.often if one.often and set(one.often) <= set(_alike(one.table, one.rows)) else ()
        shapes.append((one.table, one.keys, tuple(one.rows[0]), alike))
        _, fields = _update_listed(*shapes[-1], None, False, session.connection.dialect)
        values |= _values_of(one.table, one.keys, alike, fields, one.rows)
    if shapes:
        session.write(_updates(tuple(shapes), session.connection.dialect), values)


_Shape = tuple[Table, tuple[str, ...], tuple[str, ...], tuple[str, ...]]


@lru_cache(maxsize=64)
def _updates(shapes: tuple[_Shape, ...], dialect: Dialect) -> Executable:
    last, *others = (_update_listed(*shape, None, False, dialect)[0] for shape in shapes)
    return last.add_cte(*(one.cte(f"also_{number}") for number, one in enumerate(others)))


def _values_of(
    table: Table, keys: tuple[str, ...], alike: tuple[str, ...], fields: _Fields, rows: Sequence[Row]
) -> dict[str, Any]:
    """The parameters of `_update_listed`."""
    listed = {_name(table, _LIST): _listed(fields, rows), _name(table, _KEYS): [row[keys[0]] for row in rows]}
    return {**listed, **_given_of(table, rows, alike)}


_JOINED = 200
"""Rows of an UPDATE at most: a server that knows nothing about a table may compare each with each."""

_MANY = 20
"""Rows from which on it pays to look for what they have in common."""

_LIST = "list_of_rows"
_KEYS = "list_of_keys"
_PLACE = "place_in_list"
_encode = json.JSONEncoder(default=datetime.isoformat, separators=(",", ":")).encode


def _name(table: Table, what: str) -> str:
    """Of a parameter: none has the name of a column, and no two tables of a statement share one."""
    return f"{table.name}__{what}"


def _records(table: Table, columns: Sequence[Column[Any]]) -> TableValuedAlias:
    """The rows of the list `_LIST` as a table of these columns, and of their place in the list."""
    shape = [column(one.name, one.type) for one in columns]
    call = func.json_to_recordset(bindparam(_name(table, _LIST), type_=Text()).cast(postgresql.JSON))
    return call.table_valued(*shape, column(_PLACE, Integer)).render_derived(with_types=True)


def _listed(fields: _Fields, rows: Sequence[Row]) -> str:
    names = [_PLACE, *(name for name, _ in fields)]
    columns = (_column(rows, name, into) for name, into in fields)
    return _encode([dict(zip(names, values, strict=True)) for values in zip(count(), *columns, strict=False)])


def _alike(table: Table, rows: Sequence[Row]) -> tuple[str, ...]:
    """The columns in which all rows have the same value, which need not travel with each of them."""
    if len(rows) < _MANY:
        return ()
    return tuple(name for name in rows[0] if _is_alike([row[name] for row in rows], table.c[name]))


def _is_alike(values: list[Any], column: Column[Any]) -> bool:
    if isinstance(column.type, JsonText):  # As JSON, 1 and 1.0 and true are three values.
        return all(value is values[0] for value in values)
    return values.count(values[0]) == len(values)


@lru_cache(maxsize=256)
def _insert_listed(
    table: Table, names: tuple[str, ...], alike: tuple[str, ...], new_only: bool, replaces: bool, dialect: Dialect
) -> tuple[Executable, _Fields]:
    """`alike`: columns whose one value is a parameter (`_given`)."""
    columns = [table.c[name] for name in names if name not in alike]
    given = _records(table, columns)
    values = (_given(table, name).cast(table.c[name].type) if name in alike else given.c[name] for name in names)
    source = select(*values).order_by(given.c[_PLACE])
    filled = postgresql.insert(table).from_select(names, source, include_defaults=False)
    return _unless_there(table, filled, names, new_only, replaces), _fields(columns, dialect)


@lru_cache(maxsize=64)
def _update_listed(
    table: Table,
    keys: tuple[str, ...],
    names: tuple[str, ...],
    alike: tuple[str, ...],
    where: ColumnElement[bool] | None,
    keep_null: bool,
    dialect: Dialect,
) -> tuple[Update, _Fields]:
    columns = [table.c[name] for name in names if name not in alike]
    given = _records(table, columns)
    values = {
        name: _kept(_given(table, name) if name in alike else given.c[name], table.c[name], keep_null)
        for name in names
        if name not in keys
    }
    matches = [table.c[name] == given.c[name] for name in keys]
    # says again, in a way that an index serves whatever is known about the table, which rows these are
    matches.append(listed("postgresql", table.c[keys[0]], _name(table, _KEYS)))
    return update(table).where(*matches, *_conditions(where)).values(values), _fields(columns, dialect)


def _given_of(table: Table, rows: Sequence[Row], alike: tuple[str, ...]) -> dict[str, Any]:
    """The parameters of these columns."""
    return {_name(table, name): rows[0][name] for name in alike}


def _same(value: Any) -> Any:
    return value


def _hex(value: bytes | None) -> str | None:
    """Bytes as they are written in a list of rows."""
    return None if value is None else "\\x" + value.hex()


def _kept(value: ColumnElement[Any], old: Column[Any], keep_null: bool) -> ColumnElement[Any]:
    return func.coalesce(value, old) if keep_null else value


def _conditions(where: ColumnElement[bool] | None) -> tuple[ColumnElement[bool], ...]:
    return () if where is None else (where,)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A statement as the driver takes it: the fields of a row in the order of its question marks."""

    text: str
    fields: _Fields


def _run_each(session: Session, prepared: _Prepared, rows: Sequence[Row]) -> int:
    # SQLAlchemy's own way costs more per row than SQLite's work on it
    values = list(zip(*(_column(rows, name, into) for name, into in prepared.fields), strict=True))
    return session.connection.exec_driver_sql(prepared.text, values).rowcount


def _column(rows: Sequence[Row], name: str, into: Callable[[Any], Any]) -> list[Any]:
    """The values of one column, fit for the driver. Of rows that are made together many have the very same value."""
    if into is _same:
        return [row[name] for row in rows]
    last = rows[0][name]
    fit = into(last)
    values = []
    for row in rows:
        if row[name] is not last:
            last = row[name]
            fit = into(last)
        values.append(fit)
    return values


@lru_cache(maxsize=64)
def _insert_one(table: Table, names: tuple[str, ...], new_only: bool, replaces: bool) -> _Prepared:
    statement = sqlite.insert(table).values({name: _given(table, name) for name in names})
    return _prepared(table, _unless_there(table, statement, names, new_only, replaces))


def _unless_there(
    table: Table, statement: postgresql.Insert | sqlite.Insert, names: tuple[str, ...], new_only: bool, replaces: bool
) -> postgresql.Insert | sqlite.Insert:
    if new_only:
        return statement.on_conflict_do_nothing()
    if not replaces:
        return statement
    keys = [column.name for column in table.primary_key]
    values = {name: statement.excluded[name] for name in names if name not in keys}
    return statement.on_conflict_do_update(index_elements=keys, set_=values)


@lru_cache(maxsize=64)
def _update_one(
    table: Table, keys: tuple[str, ...], names: tuple[str, ...], where: ColumnElement[bool] | None, keep_null: bool
) -> _Prepared:
    values = {name: _kept(_given(table, name), table.c[name], keep_null) for name in names if name not in keys}
    matches = [table.c[name] == _given(table, name) for name in keys]
    return _prepared(table, update(table).where(*matches, *_conditions(where)).values(values))


def _given(table: Table, name: str) -> BindParameter[Any]:
    return bindparam(_name(table, name), type_=table.c[name].type)


def _prepared(table: Table, statement: ClauseElement) -> _Prepared:
    dialect = sqlite.dialect()
    compiled = statement.compile(dialect=dialect)
    assert isinstance(compiled, SQLCompiler)
    assert compiled.positiontup is not None
    names = [name.removeprefix(_name(table, "")) for name in compiled.positiontup]
    return _Prepared(str(compiled), _fields([table.c[name] for name in names], dialect))


def _fields(columns: Sequence[Column[Any]], dialect: Dialect) -> _Fields:
    return tuple((one.name, _into(one, dialect)) for one in columns)


def _into(one: Column[Any], dialect: Dialect) -> Callable[[Any], Any]:
    if isinstance(one.type, LargeBinary) and dialect.name == "postgresql":
        return _hex
    return one.type.dialect_impl(dialect).bind_processor(dialect) or _same
