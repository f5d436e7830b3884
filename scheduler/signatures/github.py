"""`github`: X-Hub-Signature-256 over the body. No time and no header is signed: a replay is known by the delivery's id,
which stays the same when GitHub sends it again, but whoever holds a signed body could send it under another.

Source: https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from scheduler.core.preset import EventFields, Example, Handshake, Preset
from scheduler.signatures.common.recipe import Recipe, RecipeScheme

_RECIPE = Recipe(header="X-Hub-Signature-256", prefix="sha256=")


@dataclass(frozen=True, slots=True)
class GitHub(RecipeScheme):
    kind: ClassVar[str] = "github"
    preset: ClassVar[Preset | None] = Preset(
        title="GitHub",
        event=EventFields(id="header:X-GitHub-Delivery", type="header:X-GitHub-Event", subject="repository.full_name"),
        # What is asked when a hook is set up, to see whether it answers.
        handshakes=(Handshake("ping", "header:X-GitHub-Event", "ping"),),
        retries_for=timedelta(),
        looks_back=timedelta(days=3),
        documentation="https://docs.github.com/en/webhooks",
        example=Example(
            '{"ref": "refs/heads/main", "repository": {"full_name": "example/repository"}}',
            {"X-GitHub-Delivery": "$id", "X-GitHub-Event": "push"},
        ),
    )

    @property
    def recipe(self) -> Recipe:
        return _RECIPE
