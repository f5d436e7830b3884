"""`http_list`: any HTTP API that lists events as JSON, described by options."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from typing import TYPE_CHECKING, ClassVar, Literal

from compensators.common.items import Item, Reader, all_after, all_before, place, within
from compensators.common.passes import Passes
from scheduler.core.compensator import (
    Coverage,
    Cursor,
    Json,
    ListingFailed,
    Page,
    Window,
)
from scheduler.core.errors import InvalidInput, attempt, refuse_all
from scheduler.core.place import NotApplicable, Place
from scheduler.core.preset import EventFields
from scheduler.core.signature import Headers

if TYPE_CHECKING:
    from compensators.common.client import Client, Reply

_MOST_PASSES = 5
_WIDER = timedelta(seconds=1)
"""Some lists take their bounds as exclusive, some know whole seconds only: what is too much is left out here."""


@dataclass(frozen=True)
class HttpList:
    """Everything that a call needs is written here; nothing is guessed from answers. Lists that are paged by number or
    offset move while they are read: they are read until two passes show the same."""

    kind: ClassVar[str] = "http_list"
    secret_options: ClassVar[tuple[str, ...]] = ("headers", "bearer", "password", "params")
    source_options: ClassVar[tuple[str, ...]] = ("id", "occurred_at", "type", "subject")

    url: str
    """The address of the list."""
    id: str
    """Where an event's id lies in its body: the one that its webhook carries."""
    occurred_at: str
    """Where its time lies."""
    type: str = ""
    """Where its type lies."""
    subject: str = ""
    """Where lies what it is about."""
    items: str = "@"
    """Where the list lies in the answer."""
    body: str = ""
    """Where the webhook's body lies in an item of the list. Without it the item is the body."""
    method: Literal["GET", "POST"] = "GET"
    """POST: the parameters are sent as a JSON object, a name with dots as objects in each other."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Headers that every call has."""
    bearer: str = field(default="", repr=False)
    """A key that is sent as Authorization: Bearer …"""
    username: str = ""
    """With `password`: HTTP basic authentication."""
    password: str = field(default="", repr=False)
    """Of `username`."""
    params: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Parameters that every call has."""
    paging: Literal["cursor", "page", "offset", "link", "none"] = "cursor"
    """How the next page is asked for: `link` follows the Link header."""
    cursor: str = ""
    """Where the next cursor, or the address of the next page, lies in the answer: `next`, `data[-1].id`."""
    cursor_param: str = ""
    """The parameter that takes it (`cursor`), the page's number (`page`), or how many to leave out (`offset`). Where it
    is written, a cursor is an address only if it begins with https:// or http://; else also if it begins with /."""
    first_page: int = 1
    """The number of the first page."""
    more: str = ""
    """Where the answer says whether there is a further page: `has_more`."""
    size: int = 100
    """Items a page."""
    size_param: str = "limit"
    """The parameter that takes it; empty: it is not sent."""
    from_param: str = ""
    """The parameter that takes the start of the window; without it everything is listed as far back as `order` says."""
    until_param: str = ""
    """The parameter that takes its end."""
    times: Literal["rfc3339", "seconds", "milliseconds"] = "rfc3339"
    """How these two are written."""
    order: Literal["newest_first", "oldest_first", "any"] = "any"
    """With an order, the reading ends at a page that lies beyond the window."""
    reaches_back: timedelta | None = None
    """How long the provider keeps its list."""
    pace: timedelta | None = None
    """At least this long from one call to the next."""

    def __post_init__(self) -> None:
        wrong: list[InvalidInput] = []
        if not self.url.startswith(("https://", "http://")):
            wrong.append(InvalidInput(f"url: {self.url[:80]!r} is no address", hint="write https://…"))
        for name in ("items", "cursor", "more"):
            if getattr(self, name):
                attempt(wrong, partial(place, name, getattr(self, name)))
        if self.paging == "cursor" and not self.cursor:
            hint = "write cursor: …, or paging: none if the list has one page"
            wrong.append(InvalidInput("cursor: nothing says where the next cursor lies", hint=hint))
        if self.size < 1:
            wrong.append(InvalidInput("size: a page has at least one item", hint="write size: 100"))
        attempt(wrong, lambda: self._reader)  # its places are refused here, not in the middle of a scan
        refuse_all(wrong)

    @cached_property
    def _reader(self) -> Reader:
        return Reader.of(EventFields(self.id, self.type, self.occurred_at, self.subject), self.body)

    def coverage(self) -> Coverage:
        """Asks for one item, to see that the key is good and what time it is there."""
        client = self._client()
        try:
            reply = self._call(client, None, None, 1)
            self._list(reply)
            return Coverage(self.reaches_back, provider_now=reply.now)
        finally:
            client.close()

    def pages(self, window: Window, cursor: Cursor | None) -> Iterator[Page]:
        client = self._client()
        try:
            yield from self._moving(client, window, cursor) if self._moves else self._still(client, window, cursor)
        finally:
            client.close()

    @property
    def _moves(self) -> bool:
        return self.paging in ("page", "offset")

    def _still(self, client: Client, window: Window, cursor: Cursor | None) -> Iterator[Page]:
        """Each page names the next one."""
        while True:
            reply, raw = self._page(client, window, cursor)
            items = self._items(raw)
            following = None if self._beyond(window, items) else self._next(reply)
            if following is not None and following == cursor:
                raise ListingFailed(f"{self.url} names the same page as the next one again and again")
            yield self._as_page(client, window, items, following, reply)
            if following is None:
                return
            cursor = following

    def _moving(self, client: Client, window: Window, cursor: Cursor | None) -> Iterator[Page]:
        """Places in a list that something was inserted into, or taken out of, mean other items than before."""
        stands = Passes.of(cursor)
        while True:
            position: Cursor = stands.offset if self.paging == "offset" else stands.at + self.first_page
            reply, raw = self._page(client, window, position)
            items = self._items(raw)
            last = len(raw) == 0 or self._beyond(window, items) or not self._says_more(reply, len(raw))
            stands = stands.after(within(window, items), len(raw), last=last)
            tired = stands.passes == _MOST_PASSES and not stands.settled
            if tired:
                stands = Passes()
            yield self._as_page(client, window, items, None if stands.settled else stands.cursor(), reply)
            if stands.settled:
                return
            if tired:
                # What was seen is stored; the next run begins a first pass again.
                why = f"{self.url} changed in each of {_MOST_PASSES} passes over it: it cannot be read to its end"
                raise ListingFailed(f"{why}; page by a cursor if the provider offers one")

    def _as_page(
        self, client: Client, window: Window, items: tuple[Item, ...], following: Cursor | None, reply: Reply
    ) -> Page:
        calls, throttled = client.counts()
        return Page(within(window, items), following, reply.now, calls, throttled)

    def _page(self, client: Client, window: Window, cursor: Cursor | None) -> tuple[Reply, list[Json]]:
        reply = self._call(client, window, cursor, self.size)
        return reply, self._list(reply)

    def _call(self, client: Client, window: Window | None, cursor: Cursor | None, size: int) -> Reply:
        from compensators.common.client import same_server

        goes_on = cursor is not None and not self._moves
        if isinstance(cursor, str) and (self.paging == "link" or cursor.startswith(self._addresses)):
            return client.get(same_server(self.url, cursor), goes_on=goes_on)
        asked: dict[str, Json] = dict(self.params)
        if window is not None:
            if self.from_param:
                asked[self.from_param] = self._time(window.start - _WIDER)
            if self.until_param:
                asked[self.until_param] = self._time(window.end + _WIDER)
        if self.size_param:
            asked[self.size_param] = size
        if cursor is not None:
            default = {"page": "page", "offset": "offset"}.get(self.paging, "cursor")
            asked[self.cursor_param or default] = cursor
        if self.method == "POST":
            return client.post(self.url, _nested(asked), goes_on=goes_on)
        texts = [(name, value if isinstance(value, str) else json.dumps(value)) for name, value in asked.items()]
        return client.get(self.url, texts, goes_on=goes_on)

    @property
    def _addresses(self) -> tuple[str, ...]:
        """How cursors begin that are addresses. Of those in Base64 one in 64 begins with a slash and is none."""
        return ("https://", "http://") if self.cursor_param else ("https://", "http://", "/")

    def _list(self, reply: Reply) -> list[Json]:
        found = self._find(self.items, reply)
        if isinstance(found, list):
            return found
        raise ListingFailed(
            f"{self.url}: there is no list at {self.items} in its answer; correct items:, "
            'or write items: "… || `[]`" if it is left out when it is empty'
        )

    def _items(self, raw: list[Json]) -> tuple[Item, ...]:
        return tuple(self._reader.read(one) for one in raw)

    def _next(self, reply: Reply) -> Cursor | None:
        if self.paging == "link":
            return reply.next
        if self.paging == "none" or not self.cursor or (self.more and not self._find(self.more, reply)):
            return None
        found = self._find(self.cursor, reply)
        return None if found in (None, "", False) else found

    def _says_more(self, reply: Reply, length: int) -> bool:
        """Without a word about it, only an empty page is the last: pages may be shorter than asked for."""
        return bool(self._find(self.more, reply)) if self.more else length > 0

    def _beyond(self, window: Window, items: tuple[Item, ...]) -> bool:
        if self.order == "newest_first":
            return all_before(window, items)
        return self.order == "oldest_first" and all_after(window, items)

    def _find(self, text: str, reply: Reply) -> Json:
        try:
            return Place.of(text).find(reply.document, Headers())
        except NotApplicable as error:
            raise ListingFailed(f"{self.url}: {error}; correct it in `with:`") from None

    def _time(self, instant: datetime) -> str | int:
        whole = int(instant.timestamp())
        if self.times == "rfc3339":
            return datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return whole * 1000 if self.times == "milliseconds" else whole

    def _client(self) -> Client:
        # What it brings along takes a tenth of a second, which those who only read jobs.yaml need not wait.
        from compensators.common.client import Client

        headers = dict(self.headers)
        if self.bearer:
            headers["Authorization"] = f"Bearer {self.bearer}"
        basic = (self.username, self.password) if self.username else None
        return Client(headers, basic=basic, pace=self.pace)


def _nested(asked: Mapping[str, Json]) -> Json:
    """`{"query.filter.state": "x"}` → `{"query": {"filter": {"state": "x"}}}`."""
    document: dict[str, Json] = {}
    for name, value in asked.items():
        *path, key = name.split(".")
        inner = document
        for one in path:
            inner = inner.setdefault(one, {})
        inner[key] = value
    return document
