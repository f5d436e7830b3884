"""`github_deliveries`: the deliveries that GitHub attempted for one hook, the newest first, each with its payload.

It lists attempts: of what happened while the hook was inactive there is none. Source:
https://docs.github.com/en/rest/repos/webhooks#list-deliveries-for-a-repository-webhook
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, ClassVar

from compensators.common.items import Item, all_before, undecodable, within
from scheduler.core.compensator import (
    Coverage,
    Cursor,
    Json,
    ListedEvent,
    ListingFailed,
    Page,
    Undecodable,
    Window,
    known_to_inbox,
)
from scheduler.core.errors import InvalidInput, refuse_all
from scheduler.core.sender_time import sender_instant

if TYPE_CHECKING:
    from compensators.common.client import Client, Reply

_PING = "ping"
"""What GitHub sends when a hook is set up: a question whether it answers, not an event."""


@dataclass(frozen=True, slots=True)
class GithubDeliveries:
    """An event is known by its GUID, which a redelivery shares; its payload takes a call of its own. The token needs
    `Webhooks: read` for the repository or organization."""

    kind: ClassVar[str] = "github_deliveries"
    secret_options: ClassVar[tuple[str, ...]] = ("token",)

    hook: int
    """The number of the hook, as its address in the settings ends."""
    token: str = field(repr=False)
    """One that may read the hooks of the repository or organization."""
    repository: str = ""
    """`owner/name`; for a hook of an organization write `organization`."""
    organization: str = ""
    """The name, for a hook of an organization."""
    reaches_back: timedelta = timedelta(days=3)
    """How long the server keeps deliveries."""
    base_url: str = "https://api.github.com"
    """Of an Enterprise server: https://HOST/api/v3."""

    def __post_init__(self) -> None:
        wrong: list[InvalidInput] = []
        if self.repository and self.repository.count("/") != 1:
            reason = f"repository: {self.repository[:80]!r} is no repository"
            wrong.append(InvalidInput(reason, hint="write owner/name"))
        if self.repository and self.organization:
            reason = "organization: a hook is either of a repository or of an organization"
            wrong.append(InvalidInput(reason, hint="keep one of the two"))
        elif not self.repository and not self.organization:
            wrong.append(InvalidInput("repository: nothing says whose hook it is", hint="write owner/name"))
        refuse_all(wrong)

    @property
    def _hook(self) -> str:
        owner = f"repos/{self.repository}" if self.repository else f"orgs/{self.organization}"
        return f"{self.base_url.rstrip('/')}/{owner}/hooks/{self.hook}"

    def coverage(self) -> Coverage:
        """A hook that is inactive lists nothing new, and that is no proof."""
        client = self._client()
        try:
            reply = client.get(self._hook)
        finally:
            client.close()
        active = isinstance(reply.document, dict) and reply.document.get("active") is True
        why = "" if active else "the hook is not active: nothing is attempted, so nothing is listed; switch it on"
        return Coverage(self.reaches_back, active, why, reply.now)

    def pages(self, window: Window, cursor: Cursor | None) -> Iterator[Page]:
        client = self._client()
        try:
            while True:
                reply = self._list(client, cursor)
                raw = reply.document
                before = all_before(window, [_summary(one) for one in raw])
                items = self._with_payloads(client, window, raw)
                following = None if before else reply.next
                calls, throttled = client.counts()
                yield Page(items, following, reply.now, calls, throttled)
                if following is None:
                    return
                cursor = following
        finally:
            client.close()

    def _list(self, client: Client, cursor: Cursor | None) -> Reply:
        from compensators.common.client import same_server

        first = f"{self._hook}/deliveries"
        if cursor is None:
            reply = client.get(first, [("per_page", "100")])
        else:
            reply = client.get(same_server(first, str(cursor)), goes_on=True)
        if not isinstance(reply.document, list):
            raise ListingFailed("GitHub's list of deliveries is no list; is base_url right?")
        return reply

    def _with_payloads(self, client: Client, window: Window, raw: list[Json]) -> tuple[Item, ...]:
        """Of several attempts for one GUID one is enough, and of what came none: its payload is known."""
        found: dict[str, Item] = {}
        lacking: dict[str, Json] = {}
        for one in raw:
            summary = _summary(one)
            if isinstance(summary, Undecodable):
                found[summary.raw] = summary
            elif one.get("event") != _PING and summary.id not in found and within(window, [summary]):
                found[summary.id] = summary
                lacking[summary.id] = one
        known = known_to_inbox(lacking)
        for id_, one in lacking.items():
            at = found[id_].occurred_at
            if id_ not in known and at is not None:
                found[id_] = self._payload(client, one, at)
        return tuple(found.values())

    def _payload(self, client: Client, one: Json, at: datetime) -> Item:
        from compensators.common.client import Declined

        try:
            document = client.get(f"{self._hook}/deliveries/{one['id']}").document
        except Declined as error:
            if error.status in (404, 410):
                return undecodable(one, f"its payload is gone: {error}")
            raise
        request = document.get("request") if isinstance(document, dict) else None
        headers = request.get("headers") if isinstance(request, dict) else None
        payload = request.get("payload") if isinstance(request, dict) else None
        if not isinstance(headers, dict) or not isinstance(payload, dict):
            return undecodable(document, "it has no request with headers and payload")
        sent = {str(name).lower(): str(value) for name, value in headers.items()}
        repository = payload.get("repository")
        subject = str(repository.get("full_name") or "") if isinstance(repository, dict) else ""
        return ListedEvent(one["guid"], at, payload, str(one.get("event") or ""), subject, sent)

    def _client(self) -> Client:
        from compensators.common.client import Client

        headers = {"Authorization": f"Bearer {self.token}", "X-GitHub-Api-Version": "2022-11-28"}
        return Client(headers | {"Accept": "application/vnd.github+json"})


def _summary(one: Json) -> Item:
    """The event without its body."""
    if not isinstance(one, dict) or not isinstance(one.get("id"), int) or not isinstance(one.get("guid"), str):
        return undecodable(one, "it has no id and guid")
    at = sender_instant(one.get("delivered_at"))
    if at is None or not one["guid"]:
        return undecodable(one, "it does not say when it was delivered")
    return ListedEvent(one["guid"], at, None)
