"""Many rows in one statement, as it is best done on each database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Table, select

from scheduler.core.value_object import value_object
from scheduler.store.bulk_listed import Shape, insert_listed, insert_owners, rows_given, update_listed, updates
from scheduler.store.bulk_prepared import insert_one, run_each, update_one
from scheduler.store.bulk_values import Row, alike
from scheduler.store.session import Session, chunks

_JOINED = 200
"""Rows of an UPDATE at most: a server that knows nothing about a table may compare each with each."""


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
            total += run_each(session, insert_one(table, names, new_only, replaces), chunk)
        else:
            same = alike(table, chunk)
            statement, fields = insert_listed(table, names, same, new_only, replaces, session.connection.dialect)
            total += session.write(statement, rows_given(table, same, fields, chunk))
    return total


@value_object
class Owned:
    """Rows of another table, of which each belongs to the row named in its column `owner`."""

    table: Table
    owner: str
    rows: Sequence[Row]


def insert_new(session: Session, table: Table, key: str, rows: Sequence[Row], owned: Owned) -> set[Any]:
    """Inserts those that no unique index refuses, in this order, with what they own; the `key` of each, which no row
    had before."""
    new: set[Any] = set()
    for chunk in chunks(rows):
        keys = {row[key] for row in chunk}
        theirs = [row for row in owned.rows if row[owned.owner] in keys]
        if theirs and session.kind == "postgresql":
            new |= _insert_owners(session, table, key, chunk, owned, theirs)
            continue
        inserted = insert_all(session, table, chunk, new_only=True)
        if inserted != len(chunk):
            keys = set(session.rows(select(table.c[key]).where(session.among(table.c[key], keys))).scalars())
        insert_all(session, owned.table, [row for row in theirs if row[owned.owner] in keys])
        new |= keys
    return new


def _insert_owners(
    session: Session, table: Table, key: str, rows: Sequence[Row], owned: Owned, theirs: Sequence[Row]
) -> set[Any]:
    same = alike(table, rows)
    shape = (table, tuple(rows[0]), same, key, owned.table, tuple(theirs[0]), owned.owner)
    statement, fields, owned_fields = insert_owners(*shape, session.connection.dialect)
    values = rows_given(table, same, fields, rows) | rows_given(owned.table, (), owned_fields, theirs)
    return set(session.rows(statement, **values).scalars())


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
            total += run_each(session, update_one(table, keys, names, where, keep_null), chunk)
        else:
            statement, fields = update_listed(table, keys, names, (), where, keep_null, session.connection.dialect)
            total += session.write(statement, rows_given(table, (), fields, chunk, keys[0]))
    return total


@value_object
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
    shapes: list[Shape] = []
    values: dict[str, Any] = {}
    for one in wanted:
        same = one.often if one.often and set(one.often) <= set(alike(one.table, one.rows)) else ()
        shapes.append((one.table, one.keys, tuple(one.rows[0]), same))
        _, fields = update_listed(*shapes[-1], None, False, session.connection.dialect)
        values |= rows_given(one.table, same, fields, one.rows, one.keys[0])
    if shapes:
        session.write(updates(tuple(shapes), session.connection.dialect), values)
