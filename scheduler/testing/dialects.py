"""The forms in which providers tell an event, by webhook and in a list."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from scheduler.core.model import Json
from scheduler.core.signature import LiveSecret, Scheme, Signed
from scheduler.signatures import registry
from scheduler.testing.facts import Fact

SECRET = "whsec_not_a_secret_of_anybody"  # noqa: S105  # tests need one
HOOK = 1
"""The number of the hook in GitHub's form."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """`scheme` and `options`: how its webhooks are signed."""

    name: str
    scheme: str
    body: Callable[[Fact], Json]
    headers: Callable[[Fact], Mapping[str, str]]
    options: Mapping[str, str]

    def signed(self, fact: Fact, *, secret: str, now: datetime, url: str) -> Signed:
        """The webhook of this event."""
        scheme: Scheme = registry.build(self.scheme, self.options)
        body = json.dumps(self.body(fact)).encode()
        signed = scheme.sign(body, LiveSecret("provider", secret), now=now, url=url, delivery=fact.id)
        headers = {"Content-Type": "application/json", **self.headers(fact), **signed.headers}
        return Signed(headers, signed.body, signed.query)


def text(instant: datetime) -> str:
    return instant.isoformat(timespec="seconds").replace("+00:00", "Z")


def plain(fact: Fact) -> Json:
    return {
        "event_id": fact.id,
        "event": fact.type,
        "occurred_at": text(fact.at),
        "order_no": fact.subject,
        "number": fact.number,
    }


def stripe(fact: Fact) -> Json:
    return {
        "id": fact.id,
        "object": "event",
        "type": fact.type,
        "created": int(fact.at.timestamp()),
        "livemode": False,
        "data": {"object": {"id": fact.subject, "object": "payment"}},
    }


def github(fact: Fact) -> Json:
    return {"action": "created", "number": fact.number, "repository": {"full_name": "example/repository"}}


def github_headers(fact: Fact) -> Mapping[str, str]:
    return {"X-GitHub-Delivery": fact.id, "X-GitHub-Event": "issues", "X-GitHub-Hook-ID": str(HOOK)}


def shopify(fact: Fact) -> Json:
    return {
        "id": fact.number,
        "admin_graphql_api_id": f"gid://shopify/Order/{fact.number}",
        "updated_at": text(fact.at),
        "name": fact.subject,
    }


def shopify_headers(fact: Fact) -> Mapping[str, str]:
    return {"X-Shopify-Topic": "orders/updated", "X-Shopify-Event-Id": fact.id, "X-Shopify-Triggered-At": text(fact.at)}


SHOPIFY_ID = "join('@', [admin_graphql_api_id, updated_at])"
"""The event id that a webhook and the list of resources have in common."""


def _none(fact: Fact) -> Mapping[str, str]:
    return {}


DIALECTS: Mapping[str, Dialect] = {
    one.name: one
    for one in (
        Dialect("plain", "hmac", plain, _none, {"header": "X-Signature", "prefix": "sha256="}),
        Dialect("stripe", "stripe", stripe, _none, {}),
        Dialect("github", "github", github, github_headers, {}),
        Dialect("shopify", "shopify", shopify, shopify_headers, {}),
    )
}
