"""Numbers that the database gives to rows: read and set, so that none is given twice after a move."""

from __future__ import annotations

from sqlalchemy import Connection, Integer, Table, func, select, text


def is_counted(one: Table) -> bool:
    """Its rows are numbered by the database."""
    keys = list(one.primary_key)
    return len(keys) == 1 and isinstance(keys[0].type, Integer) and keys[0].autoincrement is not False


def counter(connection: Connection, one: Table, kind: str) -> int:
    """The last number that was given, also if its row is gone: none is given twice."""
    (key,) = one.primary_key
    names = {"name": one.name, "key": key.name}
    given = {
        "postgresql": "SELECT pg_sequence_last_value(pg_get_serial_sequence(:name, :key)::regclass)",
        "sqlite": "SELECT seq FROM sqlite_sequence WHERE name = :name",
    }[kind]
    last = connection.execute(select(func.max(key))).scalar()
    return max(int(last or 0), int(connection.execute(text(given), names).scalar() or 0))


def set_counter(connection: Connection, one: Table, kind: str, last: int) -> None:
    if last == 0:
        return
    (key,) = one.primary_key
    if kind == "postgresql":
        connection.execute(select(func.setval(func.pg_get_serial_sequence(one.name, key.name), last)))
    elif one.dialect_options["sqlite"]["autoincrement"]:
        names = {"name": one.name, "last": last}
        connection.execute(text("DELETE FROM sqlite_sequence WHERE name = :name"), names)
        connection.execute(text("INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :last)"), names)
