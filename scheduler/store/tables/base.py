"""What all tables share: the metadata they are part of, and how a partial index is made."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Index, MetaData, Table, Text, event, literal_column

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    }
)


_INDEXES = "indexes in their order"


@event.listens_for(Index, "after_parent_attach")
def _note(index: Index, table: Table) -> None:
    table.info.setdefault(_INDEXES, []).append(index)


def indexes_of(table: Table) -> list[Index]:
    """In the order in which they were declared (`Table.indexes` has none): SQLite, which knows nothing about what is in
    a table, takes of two that look equally good the one that was made last."""
    return list(table.info.get(_INDEXES, ()))


def word(text: str) -> ColumnElement[str]:
    """A text as a literal of the query itself, never as a parameter."""
    return literal_column(f"'{text}'", Text)


def partial(name: str, *columns: ColumnElement[object], where: ColumnElement[bool], unique: bool = False) -> None:
    """Adds an index over the rows that `where` holds for. SQLite uses it only for a query that repeats the condition
    with the same literals."""
    Index(name, *columns, unique=unique, sqlite_where=where, postgresql_where=where)
