"""What a block asks the database, and how the database goes about it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import event

from scheduler.store.store import SqlStore


@contextmanager
def statements_on(store: SqlStore, tables: Collection[str]) -> Iterator[list[tuple[str, Any]]]:
    """What reads or changes one of these tables, with the parameters of its first row."""
    found: list[tuple[str, Any]] = []

    def note(conn: Any, cursor: Any, statement: str, parameters: Any, context: Any, many: bool) -> None:
        reads = statement.startswith(("SELECT", "WITH", "UPDATE", "DELETE"))
        if reads and any(f" {table}" in statement for table in tables):
            found.append((statement, parameters[0] if many else parameters))

    event.listen(store._database.engine, "before_cursor_execute", note)
    yield found
    event.remove(store._database.engine, "before_cursor_execute", note)


def plan_of(store: SqlStore, statement: str, parameters: Any) -> str:
    word = "EXPLAIN QUERY PLAN " if store.kind == "sqlite" else "EXPLAIN "
    with store._database.writing() as connection:
        rows = connection.exec_driver_sql(word + statement, parameters).all()
    return "\n".join(str(row[-1]) for row in rows)
