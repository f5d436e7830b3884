"""`shopify_updated`: resources of a shop by the time of their last change. Shopify has no list of events; what is found
is the present state of what was changed, and not that something was deleted.

Sources: https://shopify.dev/docs/apps/build/webhooks/best-practices
https://shopify.dev/docs/api/usage/access-scopes (which orders a token may read)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from compensators.common.items import Item, Reader, within
from scheduler.core.compensator import Coverage, Cursor, ListedEvent, ListingFailed, Page, Window
from scheduler.core.errors import InvalidInput, attempt, refuse_all
from scheduler.core.preset import EventFields

if TYPE_CHECKING:
    from compensators.common.client import Client, Reply

_SIZE = 250
_PACE = timedelta(milliseconds=500)
"""Two calls a second are what a shop's bucket refills."""
_RECENT = timedelta(days=60)
"""Orders that were created longer ago are in no list without the scope read_all_orders, whenever they were changed."""
_WIDER = timedelta(seconds=1)


@dataclass(frozen=True)
class ShopifyUpdated:
    """The id has to be made of the resource and its time, in the source as well, so that a webhook and a found change
    are one event: `event: {id: "join('@', [admin_graphql_api_id, updated_at])", …}`; X-Shopify-Event-Id is in no list.
    Of several changes between two scans the last one is found."""

    kind: ClassVar[str] = "shopify_updated"
    secret_options: ClassVar[tuple[str, ...]] = ("token",)
    source_options: ClassVar[tuple[str, ...]] = ("id",)

    shop: str
    """`example.myshopify.com`"""
    token: str = field(repr=False)
    """An Admin API access token with the scope that reads the resource; for orders also read_all_orders."""
    id: str
    """As the source's event id: made of what a resource holds."""
    resource: str = "orders"
    """As in the address of the list: `orders`, `products`, `customers`."""
    topic: str = ""
    """The type of what is found; without it `RESOURCE/updated`."""
    recent_only: bool = False
    """Changes of orders that were created more than 60 days ago need not be found: read_all_orders is not needed."""
    api_version: str = "2025-07"
    """Of the Admin REST API."""
    base_url: str = ""
    """Instead of https://SHOP."""

    def __post_init__(self) -> None:
        wrong: list[InvalidInput] = []
        if not re.fullmatch(r"[a-z_]+", self.resource):
            reason = f"resource: {self.resource[:80]!r} is no resource"
            wrong.append(InvalidInput(reason, hint="write orders, or products"))
        attempt(wrong, lambda: self._reader)  # its places are refused here, not in the middle of a scan
        refuse_all(wrong)

    @cached_property
    def _reader(self) -> Reader:
        return Reader.of(EventFields(id=self.id, occurred_at="updated_at", subject="admin_graphql_api_id || id"))

    @property
    def _type(self) -> str:
        return self.topic or f"{self.resource}/updated"

    @property
    def _base(self) -> str:
        return (self.base_url or f"https://{self.shop}").rstrip("/")

    @property
    def _address(self) -> str:
        return f"{self._base}/admin/api/{self.api_version}/{self.resource}.json"

    def coverage(self) -> Coverage:
        """What the token may read decides what the list leaves out without a word. Without read_all_orders these are
        changes of any time, however recent: the list is complete only for who needs no older orders."""
        client = self._client()
        try:
            reply = client.get(f"{self._base}/admin/oauth/access_scopes.json")
        finally:
            client.close()
        document = reply.document
        scopes = document.get("access_scopes") if isinstance(document, dict) else None
        if not isinstance(scopes, list):
            raise ListingFailed("Shopify did not say what the token may read; is `shop` right?")
        handles = {one.get("handle") for one in scopes if isinstance(one, dict)}
        if not handles & {f"read_{self.resource}", f"write_{self.resource}"}:
            why = f"the token lacks the scope read_{self.resource}; grant it to the app"
            return Coverage(None, complete=False, why=why, provider_now=reply.now)
        if self.resource != "orders" or "read_all_orders" in handles:
            return Coverage(None, provider_now=reply.now)
        if self.recent_only:
            return Coverage(_RECENT, provider_now=reply.now)
        why = (
            "the token lacks the scope read_all_orders: changes of orders that were created more than 60 days ago are "
            "not listed; grant it to the app, or write recent_only: true if they need not be found"
        )
        return Coverage(None, complete=False, why=why, provider_now=reply.now)

    def pages(self, window: Window, cursor: Cursor | None) -> Iterator[Page]:
        client = self._client()
        try:
            while True:
                reply = self._list(client, window, cursor)
                found = tuple(self._event(one) for one in reply.document[self.resource])
                calls, throttled = client.counts()
                yield Page(within(window, found), reply.next, reply.now, calls, throttled)
                if reply.next is None:
                    return
                cursor = reply.next
        finally:
            client.close()

    def _list(self, client: Client, window: Window, cursor: Cursor | None) -> Reply:
        from compensators.common.client import same_server

        if cursor is None:
            reply = client.get(self._address, self._asked(window))
        else:
            reply = client.get(same_server(self._address, str(cursor)), goes_on=True)
        if not isinstance(reply.document, dict) or not isinstance(reply.document.get(self.resource), list):
            raise ListingFailed(f"Shopify's answer has no list of {self.resource}; correct `resource`")
        return reply

    def _asked(self, window: Window) -> list[tuple[str, str]]:
        """Oldest first: what is changed while the list is read moves behind the place that is read, not before it."""
        bounds = [("updated_at_min", _text(window.start - _WIDER)), ("updated_at_max", _text(window.end + _WIDER))]
        status = [("status", "any")] if self.resource == "orders" else []
        return [("limit", str(_SIZE)), ("order", "updated_at asc"), *bounds, *status]

    def _event(self, resource: object) -> Item:
        item = self._reader.read(resource, {"x-shopify-topic": self._type})
        return replace(item, type=self._type) if isinstance(item, ListedEvent) else item

    def _client(self) -> Client:
        from compensators.common.client import Client

        return Client({"X-Shopify-Access-Token": self.token}, pace=_PACE)


def _text(instant: datetime) -> str:
    return instant.replace(microsecond=0).isoformat()
