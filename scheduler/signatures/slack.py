"""`slack`: X-Slack-Signature: v0=…, over `v0:{X-Slack-Request-Timestamp}:{body}`.

Source: https://docs.slack.dev/authentication/verifying-requests-from-slack
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from scheduler.core.preset import Answer, EventFields, Example, Handshake, Preset
from scheduler.signatures.common.recipe import Recipe, RecipeScheme

_RECIPE = Recipe(
    header="X-Slack-Signature",
    prefix="v0=",
    timestamp="header:X-Slack-Request-Timestamp",
    template="v0:{timestamp}:{body}",
)


@dataclass(frozen=True, slots=True)
class Slack(RecipeScheme):
    kind: ClassVar[str] = "slack"
    preset: ClassVar[Preset | None] = Preset(
        title="Slack",
        event=EventFields(
            id="event_id", type="event.type || type", occurred_at="event_time", subject="event.channel || team_id"
        ),
        # In a channel an answer's text would be shown; Slack wants an empty one.
        answer=Answer(200, "", "text/plain; charset=utf-8"),
        handshakes=(Handshake("url_verification", "type", "url_verification", echo="challenge"),),
        # At once, after one minute, after five more.
        retries_for=timedelta(minutes=6),
        documentation="https://docs.slack.dev/apis/events-api",
        example=Example(
            '{"type": "event_callback", "event_id": "Ev$id", "event_time": $seconds, "team_id": "T1", '
            '"event": {"type": "message", "channel": "C1", "text": "hello"}}'
        ),
    )

    @property
    def recipe(self) -> Recipe:
        return _RECIPE
