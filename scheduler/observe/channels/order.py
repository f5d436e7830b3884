"""What the daemon hands to the process that sends, and what it hears from it: a line of JSON each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import timedelta
from typing import Protocol

from scheduler.core.channel import Answer, Channel, Message
from scheduler.core.model import Json
from scheduler.core.value_object import value_object

WITHIN = 10.0
"""Seconds for which nothing may come from a channel before it counts as silent."""


@value_object
class Target:
    """A channel with its secrets read. Only the process that sends has it, and the pipe to it."""

    options: Mapping[str, Json]
    secrets: Mapping[str, str]

    def value(self, name: str) -> Json:
        """An option, whether it is written out or a secret."""
        return self.secrets.get(name, self.options.get(name))


class Sender(Protocol):
    """What a module of this package brings as `send`: one message to one target; what the channel said to it. Whatever
    it raises is told in place of an answer."""

    def __call__(self, target: Target, message: Message) -> Answer: ...


def order_of(channel: Channel, secrets: Mapping[str, str], messages: list[Message]) -> Json:
    return {
        "kind": channel.kind,
        "options": dict(channel.options),
        "secrets": dict(secrets),
        "messages": [{"title": one.title, "text": one.text, "names": dict(one.names)} for one in messages],
    }


def messages_of(order: Json) -> list[Message]:
    return [Message(one["title"], one["text"], one["names"]) for one in order["messages"]]


def answer_json(answer: Answer) -> Json:
    wait = answer.retry_after
    return {**asdict(answer), "retry_after": None if wait is None else wait.total_seconds()}


def answer_of(found: Json) -> Answer:
    wait = found["retry_after"]
    return Answer(
        ok=bool(found["ok"]),
        said=str(found["said"]),
        silent=bool(found["silent"]),
        retry_after=None if wait is None else timedelta(seconds=wait),
    )
