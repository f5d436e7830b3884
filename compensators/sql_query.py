"""`sql_query`: rows of a database of one's own that wait for an event too long: orders still unpaid, jobs still open.

The database itself refuses everything that is not reading.
"""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, ClassVar
from urllib.parse import quote, unquote

from compensators.common.items import Item, Reader, undecodable, within
from scheduler.core.compensator import Coverage, Cursor, Json, ListedEvent, ListingFailed, Page, Window
from scheduler.core.errors import InvalidInput, refuse_all
from scheduler.core.preset import EventFields
from scheduler.core.sender_time import sender_instant

Row = Mapping[str, Any]

_READING = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)
_BEGINS = re.compile(r"\s*(?:--[^\n]*\n\s*|/\*.*?\*/\s*)*(?:select|with)\b", re.IGNORECASE | re.DOTALL)
# In texts, quoted names, comments and casts a colon begins no parameter.
_PIECES = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|/\*.*?\*/|\$(\w*)\$.*?\$\1\$|::|:(?P<name>start|end)\b""", re.DOTALL
)
_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class SqlQuery:
    """Each row is an event: columns `id` and `occurred_at`, maybe `type` and `subject`, and the webhook's body as JSON
    in `body` (without that column the row itself is the body). In the query `:start` and `:end` are the window, in
    SQLite as `2026-03-01 12:00:00` in UTC; the rows come in the order `occurred_at, id`. A time without a zone is UTC,
    in what is compared as in what is read, whatever the server's TimeZone."""

    kind: ClassVar[str] = "sql_query"
    secret_options: ClassVar[tuple[str, ...]] = ("database",)

    database: str = field(repr=False)
    """`postgresql://user:password@host/name`, or `sqlite:////absolute/path.db`."""
    query: str
    """One SELECT that ends with ORDER BY occurred_at, id."""
    size: int = 500
    """Rows a page."""
    timeout: timedelta = timedelta(seconds=60)
    """After which the database gives up on the query."""

    def __post_init__(self) -> None:
        wrong: list[InvalidInput] = []
        if _BEGINS.match(self.query) is None:
            wrong.append(InvalidInput("query: it does not begin with SELECT or WITH", hint="write one SELECT"))
        if not re.search(r"\border\s+by\b", self.query, re.IGNORECASE):
            wrong.append(InvalidInput("query: its rows have no order", hint="end it with ORDER BY occurred_at, id"))
        if self.size < 1:
            wrong.append(InvalidInput("size: a page has at least one row", hint="write size: 500"))
        refuse_all(wrong)

    def coverage(self) -> Coverage:
        """Rows are there as long as their owner keeps them; the time is the database's."""
        [row] = self._rows("SELECT CURRENT_TIMESTAMP AS now", {}, 1)
        return Coverage(None, provider_now=sender_instant(_plain(row["now"])))

    def pages(self, window: Window, cursor: Cursor | None) -> Iterator[Page]:
        """Each page is a query of its own: nobody's writing waits while a page is stored."""
        while True:
            page, cursor = self._page(window, cursor)
            yield Page(within(window, page), cursor)
            if cursor is None:
                return

    def _page(self, window: Window, cursor: Cursor | None) -> tuple[list[Item], Cursor | None]:
        at, key = (None, "") if cursor is None else (_instant(cursor["at"]), cursor["key"])
        start = window.start if at is None else max(window.start, at)
        rows = self._rows(self.query, {"start": start, "end": window.end}, self.size)
        page: list[tuple[datetime | None, Item]] = []
        looking = cursor is not None
        for instant, item in _in_order(map(_event, rows)):
            if at is not None and (instant is None or instant < at):
                continue
            looking = looking and instant == at
            if looking and _key(item) == key:
                # What came before it at this instant is stored, and so is it. If it is gone, all of them come again.
                page.clear()
                looking = False
                continue
            if len(page) >= self.size and not looking:
                return [one for _, one in page], {"at": _text(page[-1][0]), "key": _key(page[-1][1])}
            page.append((instant, item))
        return [one for _, one in page], None

    def _rows(self, query: str, values: Mapping[str, datetime], size: int) -> Iterator[Row]:
        if self.database.startswith("sqlite:///"):
            return _sqlite(self.database, query, values, self.timeout)
        if self.database.startswith(("postgresql://", "postgres://")):
            return _postgresql(self.database, query, values, size, self.timeout)
        raise ListingFailed("database: it begins neither with postgresql:// nor with sqlite:///", final=True)


_READER = Reader.of(EventFields(id="id", type="type", occurred_at="occurred_at", subject="subject"))


def _event(row: Row) -> Item:
    plain = {name.lower(): _plain(value) for name, value in row.items()}
    item = _READER.read(plain)
    if not isinstance(item, ListedEvent) or "body" not in plain:
        return item
    body = plain["body"]
    try:
        return replace(item, body=json.loads(body) if isinstance(body, str) else body)
    except ValueError:
        return replace(undecodable(plain, "its column body is not JSON"), occurred_at=item.occurred_at)


def _in_order(items: Iterable[Item]) -> Iterator[tuple[datetime | None, Item]]:
    """Each with its instant; what says none belongs to the one before. ListingFailed for a list without order."""
    at: datetime | None = None
    for item in items:
        if item.occurred_at is not None:
            if at is not None and item.occurred_at < at:
                raise ListingFailed("query: its rows are not in the order of occurred_at; end it so", final=True)
            at = item.occurred_at
        yield at, item


def _key(item: Item) -> str:
    return item.id if isinstance(item, ListedEvent) else item.raw


def _text(instant: datetime | None) -> str | None:
    return None if instant is None else instant.isoformat()


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _plain(value: Any) -> Json:
    """A value as JSON has it; numbers with a point as text, so that they stay what they are."""
    match value:
        case None | bool() | int() | float() | str() | list() | dict():
            return value
        case datetime():
            return (value if value.tzinfo else value.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
        case date():
            return value.isoformat()
        case bytes() | memoryview():
            return bytes(value).hex()
    return str(value)


def _sqlite(database: str, query: str, values: Mapping[str, datetime], timeout: timedelta) -> Iterator[Row]:
    """Opened for reading only, and anything else than reading is refused where the query is prepared."""
    path = unquote(database.removeprefix("sqlite:///"))
    until = time.monotonic() + timeout.total_seconds()
    bounds = {
        name: (value + (_SECOND if name == "end" else timedelta())).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
        for name, value in values.items()
    }
    try:
        with closing(sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True)) as connection:
            connection.set_authorizer(lambda action, *_: 0 if action in _READING else 1)
            connection.set_progress_handler(lambda: int(time.monotonic() > until), 10_000)
            connection.row_factory = sqlite3.Row
            for row in connection.execute(query, bounds):
                yield dict(row)
    except sqlite3.Error as error:
        final = "not authorized" in str(error) or isinstance(error, sqlite3.ProgrammingError)
        words = "only reading is allowed" if "not authorized" in str(error) else str(error)
        raise ListingFailed(f"query: {words}", final=final) from None


def _postgresql(
    database: str, query: str, values: Mapping[str, datetime], size: int, timeout: timedelta
) -> Iterator[Row]:
    """In a read-only transaction, by a cursor of the server's, which can only be declared for one SELECT."""
    import psycopg
    from psycopg.rows import dict_row

    text = _PIECES.sub(lambda found: f"\0{found['name']}\0" if found["name"] else found[0], query)
    text = text.replace("%", "%%").replace("\0start\0", "%(start)s").replace("\0end\0", "%(end)s")
    try:
        with psycopg.connect(database, connect_timeout=15, row_factory=dict_row) as connection:
            connection.read_only = True
            milliseconds = str(int(timeout.total_seconds() * 1000))
            # For this transaction alone: behind a pooler the session is everybody's. The zone is the one in which rows
            # are read; in another one the window would be compared with other instants than those.
            connection.execute(
                "SELECT set_config('statement_timeout', %s, true), set_config('TimeZone', 'UTC', true)", [milliseconds]
            )
            with connection.cursor(name="scan") as cursor:
                cursor.itersize = size + 1
                cursor.execute(text.encode(), dict(values))
                yield from cursor
    except psycopg.Error as error:
        refusals = (psycopg.ProgrammingError, psycopg.NotSupportedError, psycopg.errors.ReadOnlySqlTransaction)
        final = isinstance(error, refusals)
        raise ListingFailed(f"query: {str(error).splitlines()[0]}", final=final) from None
