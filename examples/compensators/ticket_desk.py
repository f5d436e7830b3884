"""`ticket_desk`: a compensator of one's own, as a template. Its name is that of the file; in jobs.yaml:

    ticket-scan:
      schedule: "*/10 * * * *"
      timezone: Europe/Berlin
      compensate:
        source: tickets
        compensator: ticket_desk
        with: {url: "https://desk.example.com", key: {env: TICKET_DESK_KEY}}

schedulerd and `schedctl check` find it with SCHEDULER_PLUGINS=/etc/schedulerd/compensators in their environment;
schedulerd also with `--plugins /etc/schedulerd/compensators`. Beside it lies its test: the contract that every
compensator has to hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import ClassVar

# The client waits where it is told to, tries again what may pass, and raises what the seam asks for. Any other one may
# be used instead: Throttled, CursorExpired and ListingFailed then have to be raised here.
from compensators.common.client import Client
from scheduler.core.compensator import (
    Coverage,
    Cursor,
    Json,
    ListedEvent,
    ListingFailed,
    Page,
    Undecodable,
    Window,
)
from scheduler.core.sender_time import sender_instant


@dataclass(frozen=True, slots=True)
class TicketDesk:
    """Lists tickets that were closed. The fields are the options below `with:`, their texts what is said about them."""

    kind: ClassVar[str] = "ticket_desk"
    secret_options: ClassVar[tuple[str, ...]] = ("key",)
    """These may be `{env: …}` or `{file: …}`; here are their values."""

    url: str
    """Where the desk is."""
    key: str = field(repr=False)
    """A key that may read tickets."""
    size: int = 100
    """Tickets a page."""

    def coverage(self) -> Coverage:
        """Asked before anything is listed. What cannot be proven is said here: a list that is switched off, a key that
        sees half of it."""
        client = self._client()
        try:
            reply = client.get(f"{self.url}/account")
        finally:
            client.close()
        complete = "tickets:read" in reply.document["scopes"]
        why = "" if complete else "the key lacks the scope tickets:read; make one that has it"
        # `provider_now`: windows are cut by the provider's clock, not by ours.
        return Coverage(timedelta(days=90), complete, why, provider_now=reply.now)

    def pages(self, window: Window, cursor: Cursor | None) -> Iterator[Page]:
        """Every event of the window at least once, both ends included; more does no harm, less is a loss.

        Each page is stored before the next is asked for. `next` is all that the following process, maybe hours later,
        knows about where this one was."""
        client = self._client()
        try:
            while True:
                # The desk knows whole seconds and leaves out what closed at `since` itself: ask for more, drop it here.
                since = int(window.start.timestamp()) - 1
                asked = {"since": str(since), "limit": str(self.size)}
                if cursor is not None:
                    asked["after"] = str(cursor)
                # `goes_on`: if it declines this, it has forgotten the cursor, and the window is begun anew.
                reply = client.get(f"{self.url}/tickets", asked.items(), goes_on=cursor is not None)
                if not isinstance(reply.document.get("tickets"), list):
                    # An answer that is not understood is no empty list.
                    raise ListingFailed("the desk's answer has no tickets; is `url` right?")
                read = [self._event(one) for one in reply.document["tickets"]]
                items = tuple(one for one in read if one.occurred_at is None or _within(window, one))
                calls, throttled = client.counts()
                cursor = reply.document.get("after")
                yield Page(items, cursor, reply.now, calls, throttled)
                if cursor is None:
                    return
        finally:
            client.close()

    def _event(self, ticket: Json) -> ListedEvent | Undecodable:
        """The same id, time and body as the desk's webhook has: else it would be handled twice."""
        at = sender_instant(ticket.get("closed_at"))
        if at is None or not ticket.get("number"):
            # Kept as it came, so that one odd ticket holds up nothing.
            return Undecodable(str(ticket), "it has no number, or no time", at)
        return ListedEvent(f"closed-{ticket['number']}", at, ticket, "ticket.closed", str(ticket["number"]))

    def _client(self) -> Client:
        return Client({"Authorization": f"Bearer {self.key}"})


def _within(window: Window, one: ListedEvent | Undecodable) -> bool:
    return one.occurred_at is not None and window.start <= one.occurred_at <= window.end
