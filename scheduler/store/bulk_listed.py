"""Many rows on PostgreSQL: they travel as one JSON text. A statement per row would be sent, and behind a pooler
parsed and planned, as often."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from itertools import count
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Dialect,
    Executable,
    Integer,
    Select,
    Table,
    Text,
    Update,
    bindparam,
    column,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.sql.expression import TableValuedAlias

from scheduler.store.bulk_values import Fields, Row, fields_of, fit, given, kept, name_of, unless_there
from scheduler.store.session import listed

Shape = tuple[Table, tuple[str, ...], tuple[str, ...], tuple[str, ...]]
"""Of a change: the table, the columns that say which row, all columns of a row, those that all rows have in common."""

_LIST = "list_of_rows"
_KEYS = "list_of_keys"
_PLACE = "place_in_list"
_encode = json.JSONEncoder(default=datetime.isoformat, separators=(",", ":")).encode


def rows_given(
    table: Table, alike: tuple[str, ...], fields: Fields, rows: Sequence[Row], key: str | None = None
) -> dict[str, Any]:
    """The parameters for these rows; with `key`, the values of that column apart from them, too."""
    values = {name_of(table, _LIST): _text(fields, rows), **{name_of(table, name): rows[0][name] for name in alike}}
    return values if key is None else values | {name_of(table, _KEYS): [row[key] for row in rows]}


def _text(fields: Fields, rows: Sequence[Row]) -> str:
    names = [_PLACE, *(name for name, _ in fields)]
    columns = (fit(rows, name, into) for name, into in fields)
    return _encode([dict(zip(names, values, strict=True)) for values in zip(count(), *columns, strict=False)])


def _records(table: Table, columns: Sequence[Column[Any]]) -> TableValuedAlias:
    """The rows of the list `_LIST` as a table of these columns, and of their place in the list."""
    shape = [column(one.name, one.type) for one in columns]
    call = func.json_to_recordset(bindparam(name_of(table, _LIST), type_=Text()).cast(postgresql.JSON))
    return call.table_valued(*shape, column(_PLACE, Integer)).render_derived(with_types=True)


@lru_cache(maxsize=256)
def insert_listed(
    table: Table, names: tuple[str, ...], alike: tuple[str, ...], new_only: bool, replaces: bool, dialect: Dialect
) -> tuple[postgresql.Insert, Fields]:
    columns = [table.c[name] for name in names if name not in alike]
    rows = _records(table, columns)
    values = (given(table, name).cast(table.c[name].type) if name in alike else rows.c[name] for name in names)
    source = select(*values).order_by(rows.c[_PLACE])
    filled = postgresql.insert(table).from_select(names, source, include_defaults=False)
    statement = unless_there(table, filled, names, new_only, replaces)
    assert isinstance(statement, postgresql.Insert)
    return statement, fields_of(columns, dialect)


@lru_cache(maxsize=256)
def insert_owners(
    table: Table,
    names: tuple[str, ...],
    alike: tuple[str, ...],
    key: str,
    owned: Table,
    owned_names: tuple[str, ...],
    owner: str,
    dialect: Dialect,
) -> tuple[Select[Any], Fields, Fields]:
    """Inserts those that are new, tells the `key` of each, and inserts the rows of `owned` whose `owner` is one of
    them."""
    statement, fields = insert_listed(table, names, alike, True, False, dialect)
    new = statement.returning(table.c[key]).cte("new")
    columns = [owned.c[name] for name in owned_names]
    rows = _records(owned, columns)
    theirs = select(*(rows.c[name] for name in owned_names)).join(new, new.c[key] == rows.c[owner])
    carried = insert(owned).from_select(owned_names, theirs, include_defaults=False)
    return select(new.c[key]).add_cte(carried.cte("carried")), fields, fields_of(columns, dialect)


@lru_cache(maxsize=64)
def update_listed(
    table: Table,
    keys: tuple[str, ...],
    names: tuple[str, ...],
    alike: tuple[str, ...],
    where: ColumnElement[bool] | None,
    keep_null: bool,
    dialect: Dialect,
) -> tuple[Update, Fields]:
    columns = [table.c[name] for name in names if name not in alike]
    rows = _records(table, columns)
    values = {
        name: kept(given(table, name) if name in alike else rows.c[name], table.c[name], keep_null)
        for name in names
        if name not in keys
    }
    matches = [table.c[name] == rows.c[name] for name in keys]
    # says again, in a way that an index serves whatever is known about the table, which rows these are
    matches.append(listed("postgresql", table.c[keys[0]], name_of(table, _KEYS)))
    if where is not None:
        matches.append(where)
    return update(table).where(*matches).values(values), fields_of(columns, dialect)


@lru_cache(maxsize=64)
def updates(shapes: tuple[Shape, ...], dialect: Dialect) -> Executable:
    """Changes of these shapes in one statement."""
    last, *others = (update_listed(*shape, None, False, dialect)[0] for shape in shapes)
    return last.add_cte(*(one.cte(f"also_{number}") for number, one in enumerate(others)))
