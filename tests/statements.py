"""SQL that is compiled once for each test worker, not anew for each test."""

from __future__ import annotations

from typing import Any

from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.engine import Engine
from sqlalchemy.util import LRUCache


def compile_once() -> None:
    """All engines of this process share one cache of compiled statements.

    An engine keeps what it has compiled, and a test has an engine of its own: half of the time of a test with a store
    went into texts that the test before had made too. What is kept is found by the dialect, which is one for each
    engine; here two of a kind are the same, as all stores make theirs in the same way.
    """
    for kind in (PGDialect_psycopg, SQLiteDialect_pysqlite):
        kind.__eq__ = _same_kind  # type: ignore[method-assign]
        kind.__hash__ = _hash_of_kind  # type: ignore[assignment, method-assign]
    shared = LRUCache[Any, Any](5000)
    make = Engine.__init__

    def make_sharing(self: Engine, *arguments: Any, **options: Any) -> None:
        make(self, *arguments, **options)
        self._compiled_cache = shared

    Engine.__init__ = make_sharing  # type: ignore[method-assign]


def _same_kind(one: object, other: object) -> bool:
    return type(one) is type(other)


def _hash_of_kind(one: object) -> int:
    return hash(type(one))
