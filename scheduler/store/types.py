"""Column types that mean the same on both databases."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import BigInteger, DateTime, Dialect, Integer, Text
from sqlalchemy.types import TypeDecorator, TypeEngine

_dense = json.JSONEncoder(separators=(",", ":")).encode

Big = BigInteger().with_variant(Integer, "sqlite")
"""64 bits; on SQLite the spelling that makes a primary key the row id."""


class UtcInstant(TypeDecorator[datetime]):
    """An aware instant, read back in UTC. SQLite: text of fixed width (`2026-03-01T00:00:00.000000Z`), so that
    comparing texts compares instants; PostgreSQL: timestamptz. A naive datetime is a TypeError."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(DateTime(timezone=True) if dialect.name == "postgresql" else Text())

    # Not process_bind_param and process_result_value: what SQLAlchemy puts around them takes longer than the work.
    def bind_processor(self, dialect: Dialect) -> Callable[[datetime | None], Any]:
        return _aware if dialect.name == "postgresql" else _write

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], datetime | None]:
        return _in_utc if dialect.name == "postgresql" else _read


def _aware(value: datetime | None) -> datetime | None:
    if value is None or value.tzinfo is UTC:
        return value
    if value.tzinfo is None:
        raise TypeError(f"naive datetime {value!r} where an instant is stored")
    return value.astimezone(UTC)


def _write(value: datetime | None) -> str | None:
    here = _aware(value)
    return None if here is None else here.isoformat(timespec="microseconds")[:26] + "Z"


def _read(value: str | None) -> datetime | None:
    return None if value is None else datetime.fromisoformat(value)


def _in_utc(value: datetime | None) -> datetime | None:
    return None if value is None else value.astimezone(UTC)


class Written(str):
    """A JSON value that is text already, ASCII only: JsonText stores it as it is."""


class JsonText(TypeDecorator[Any]):
    """A JSON value as text; None is NULL. Text, not jsonb: nothing is searched in it, and jsonb refuses `\\u0000`."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        return value if value is None or isinstance(value, Written) else _dense(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        return None if value is None else json.loads(value)


class FreeText(TypeDecorator[str]):
    """What people and programs write. NUL and lone surrogates, which databases refuse, are stored as U+FFFD."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        if value is None or (value.isascii() and "\x00" not in value):
            return value
        return value.replace("\x00", "\ufffd").encode("utf-8", "surrogatepass").decode("utf-8", "replace")
