"""What all tables share: the metadata they are part of, and how a partial index is made."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Index, MetaData, Text, literal_column

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    }
)


def word(text: str) -> ColumnElement[str]:
    """A text as a literal of the query itself, never as a parameter."""
    return literal_column(f"'{text}'", Text)


def partial(name: str, *columns: ColumnElement[object], where: ColumnElement[bool], unique: bool = False) -> None:
    """Adds an index over the rows that `where` holds for. SQLite uses it only for a query that repeats the condition
    with the same literals."""
    Index(name, *columns, unique=unique, sqlite_where=where, postgresql_where=where)
