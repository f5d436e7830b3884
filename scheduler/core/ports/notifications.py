"""Notifications in the store: what waits for which channel, how each channel stands."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

from scheduler.core.notification import Result, Standing, Waiting
from scheduler.core.tiding import Entry


class Notifications(Protocol):
    def put(self, entries: Sequence[Entry], now: datetime) -> int:
        """They wait from now on; how many are new: a channel is told of a key once, for ever."""
        ...

    def due(self, now: datetime) -> list[str]:
        """The channels for which something waits that is due, and that nobody is sending to."""
        ...

    def take(self, channel: str, node: str, now: datetime, until: datetime) -> Standing | None:
        """The channel is this node's until then, or until it gives it back; None: it is another's."""
        ...

    def waiting(self, channel: str, limit: int) -> list[Waiting]:
        """What waits for the channel, due or not, oldest first."""
        ...

    def give_back(self, channel: str, node: str, standing: Standing, results: Sequence[Result], now: datetime) -> bool:
        """Writes what became of them and frees the channel. False, and nothing is written, if it is another node's by
        now."""
        ...

    def hasten(self, channel: str, now: datetime) -> int:
        """What waits for the channel is due now, and the channel may be asked at once; how many wait."""
        ...

    def abandon(self, channels: Collection[str], reason: str, now: datetime) -> list[str]:
        """Gives up what waits for any other channel than these; the names of those channels."""
        ...

    def prune(self, before: datetime, limit: int) -> int:
        """Forgets up to `limit` that were settled before that."""
        ...
