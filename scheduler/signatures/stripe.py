"""`stripe`: Stripe-Signature: t=…,v1=…, over `{t}.{body}`. The secret is used as it is written, `whsec_` included.
Several v1 stand there while a secret is being replaced; v0 is for tests and counts as nothing.

Source: https://docs.stripe.com/webhooks/signature
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from scheduler.core.preset import EventFields, Example, Preset
from scheduler.signatures.common.recipe import Recipe, RecipeScheme

_RECIPE = Recipe(
    header="Stripe-Signature", prefix="v1=", separator=",", timestamp="item:t=", template="{timestamp}.{body}"
)


@dataclass(frozen=True, slots=True)
class Stripe(RecipeScheme):
    kind: ClassVar[str] = "stripe"
    preset: ClassVar[Preset | None] = Preset(
        title="Stripe",
        event=EventFields(id="id", type="type", occurred_at="created", subject="data.object.id"),
        retries_for=timedelta(days=3),
        looks_back=timedelta(days=30),
        documentation="https://docs.stripe.com/webhooks",
        example=Example(
            '{"id": "evt_$id", "object": "event", "type": "customer.created", "created": $seconds, '
            '"data": {"object": {"id": "cus_$id", "object": "customer"}}}'
        ),
    )

    @property
    def recipe(self) -> Recipe:
        return _RECIPE
