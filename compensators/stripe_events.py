"""`stripe_events`: GET /v1/events, which lists what Stripe's webhooks carry, the newest first, for thirty days.

Source: https://docs.stripe.com/api/events/list
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, ClassVar

from compensators.common.items import Item, Reader, within
from scheduler.core.compensator import Coverage, Cursor, Json, ListingFailed, Page, Window
from scheduler.core.errors import InvalidInput
from scheduler.core.preset import EventFields

if TYPE_CHECKING:
    from compensators.common.client import Client, Reply

_SIZE = 100
_MOST_TYPES = 20
_PACE = timedelta(milliseconds=50)
"""Stripe allows 25 calls a second for one address, whoever of the account makes them; scans leave room for others."""


@dataclass(frozen=True, slots=True)
class StripeEvents:
    """`created` is in whole seconds, so the window is widened to them; what lies outside is left out here. A restricted
    key needs `Events: read`. A webhook has the form of its endpoint's API version, the list that of the account's:
    handlers that read more than the source's event fields should read what both have."""

    kind: ClassVar[str] = "stripe_events"
    secret_options: ClassVar[tuple[str, ...]] = ("api_key",)

    api_key: str = field(repr=False)
    """A secret or restricted key, `sk_…` or `rk_…`, of the mode (live or test) whose webhooks come here."""
    types: tuple[str, ...] = ()
    """At most twenty types as the endpoint is subscribed to, `invoice.*` included; without them every type."""
    account: str = ""
    """A connected account, `acct_…`, whose events are meant."""
    base_url: str = "https://api.stripe.com"
    """Another address, for tests."""

    def __post_init__(self) -> None:
        if len(self.types) > _MOST_TYPES:
            raise InvalidInput(
                f"types: Stripe filters by {_MOST_TYPES} types at most, here are {len(self.types)}",
                hint="leave types out, or write two scans",
            )

    def coverage(self) -> Coverage:
        client = self._client()
        try:
            reply = self._ask(client, {"limit": "1"})
            return Coverage(timedelta(days=30), provider_now=reply.now)
        finally:
            client.close()

    def pages(self, window: Window, cursor: Cursor | None) -> Iterator[Page]:
        # A window that ends within a second ends with it: the rest of that second is nobody's otherwise.
        bounds = {"created[gte]": str(int(window.start.timestamp())), "created[lte]": str(int(window.end.timestamp()))}
        client = self._client()
        try:
            while True:
                after = {} if cursor is None else {"starting_after": str(cursor)}
                reply = self._ask(client, {"limit": str(_SIZE), **bounds, **after}, goes_on=cursor is not None)
                raw = reply.document["data"]
                following = _last_id(raw) if reply.document.get("has_more") else None
                items: tuple[Item, ...] = tuple(_READER.read(one) for one in raw)
                calls, throttled = client.counts()
                yield Page(within(window, items), following, reply.now, calls, throttled)
                if following is None:
                    return
                cursor = following
        finally:
            client.close()

    def _ask(self, client: Client, asked: Mapping[str, str], *, goes_on: bool = False) -> Reply:
        types = [("types[]", one) for one in self.types]
        reply = client.get(f"{self.base_url.rstrip('/')}/v1/events", [*asked.items(), *types], goes_on=goes_on)
        if not isinstance(reply.document, dict) or not isinstance(reply.document.get("data"), list):
            raise ListingFailed("GET /v1/events answered something that is no list of events; is base_url right?")
        return reply

    def _client(self) -> Client:
        from compensators.common.client import Client

        headers = {"Authorization": f"Bearer {self.api_key}"}
        if self.account:
            headers["Stripe-Account"] = self.account
        return Client(headers, pace=_PACE)


_READER = Reader.of(EventFields(id="id", type="type", occurred_at="created", subject="data.object.id"))


def _last_id(raw: list[Json]) -> str:
    for one in reversed(raw):
        if isinstance(one, dict) and isinstance(one.get("id"), str):
            return str(one["id"])
    raise ListingFailed("GET /v1/events says that it has more, and gave nothing to go on from")
