"""`square`: x-square-hmacsha256-signature, base64, over the address as it was registered, followed by the body.

Source: https://developer.squareup.com/docs/webhooks/step3validate
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from scheduler.core.preset import Answer, EventFields, Example, Preset
from scheduler.signatures.common.recipe import Recipe, RecipeScheme

_RECIPE = Recipe(header="x-square-hmacsha256-signature", encoding="base64", template="{url}{body}")


@dataclass(frozen=True, slots=True)
class Square(RecipeScheme):
    kind: ClassVar[str] = "square"
    preset: ClassVar[Preset | None] = Preset(
        title="Square",
        event=EventFields(id="event_id", type="type", occurred_at="created_at", subject="data.id"),
        answer=Answer(200),
        retries_for=timedelta(hours=24),
        looks_back=timedelta(days=28),
        documentation="https://developer.squareup.com/docs/webhooks/overview",
        example=Example(
            '{"event_id": "$id", "type": "payment.updated", "created_at": "$instant", '
            '"data": {"type": "payment", "id": "payment-$id"}}'
        ),
    )

    @property
    def recipe(self) -> Recipe:
        return _RECIPE
