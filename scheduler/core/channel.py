"""A channel by which people are told, as its owner means it (one entry of `notify:`), and the seam to what sends."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import timedelta
from typing import Protocol

from scheduler.core.model import Json
from scheduler.core.secret import Secret
from scheduler.core.value_object import value_object

ADDRESS = "url"
"""The name of the part of a channel that says where to."""


@value_object
class Channel:
    """`kind` names what sends (`scheduler.observe.channels`), `options` are what its model validated; the parts that
    are secret are in `secrets` by their names, and read when something is sent.

    `definition_text` is its canonical JSON form (no secrets in it) and `fingerprint` a hash of that."""

    name: str
    kind: str
    definition_text: str
    fingerprint: str
    options: Mapping[str, Json] = field(default_factory=dict)
    secrets: Mapping[str, Secret] = field(default_factory=dict)

    @property
    def definition(self) -> Mapping[str, Json]:
        """`definition_text`, read anew at each call."""
        found: Mapping[str, Json] = json.loads(self.definition_text)
        return found


@value_object
class Message:
    """What a person gets: one line, and the text below it. `names` is the same as data, for templates and machines."""

    title: str
    text: str
    names: Mapping[str, Json]


@value_object
class Answer:
    """What a channel said to one message. `said`: its words, or why it could not be asked; never a secret. `silent`: it
    did not answer at all, so that another message would wait in vain, too. `retry_after`: how long it asks to be left
    alone."""

    ok: bool
    said: str = ""
    silent: bool = False
    retry_after: timedelta | None = None


class Courier(Protocol):
    """Sends messages. Never raises, and returns within a bounded time, whatever the channel does."""

    def deliver(self, channel: Channel, messages: Sequence[Message]) -> list[Answer]:
        """In their order, one answer each; what comes after a channel fell silent is not tried and has no answer."""
        ...
