"""`shopify`: X-Shopify-Hmac-SHA256, base64, over the body, with the app's client secret. After the secret was replaced
Shopify may go on with the old one for an hour: list both.

Source: https://shopify.dev/docs/apps/build/webhooks/verify-deliveries
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from scheduler.core.preset import Answer, EventFields, Example, Preset
from scheduler.signatures.common.recipe import Recipe, RecipeScheme

_RECIPE = Recipe(header="X-Shopify-Hmac-SHA256", encoding="base64")


@dataclass(frozen=True, slots=True)
class Shopify(RecipeScheme):
    kind: ClassVar[str] = "shopify"
    preset: ClassVar[Preset | None] = Preset(
        title="Shopify",
        event=EventFields(
            id="header:X-Shopify-Event-Id",
            type="header:X-Shopify-Topic",
            occurred_at="header:X-Shopify-Triggered-At",
            subject="admin_graphql_api_id || id",
        ),
        answer=Answer(200),
        # Eight times in four hours, but a first delivery may be a day late.
        retries_for=timedelta(days=1, hours=4),
        documentation="https://shopify.dev/docs/apps/build/webhooks",
        example=Example(
            '{"id": 1, "admin_graphql_api_id": "gid://shopify/Order/1"}',
            {"X-Shopify-Event-Id": "$id", "X-Shopify-Topic": "orders/create", "X-Shopify-Triggered-At": "$instant"},
        ),
    )

    @property
    def recipe(self) -> Recipe:
        return _RECIPE
