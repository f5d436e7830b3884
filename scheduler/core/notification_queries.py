"""What people are shown of notifications: answered by the store, as in core.queries."""

from __future__ import annotations

from typing import Protocol

from scheduler.core.notification import ChannelView, Fate, Sent
from scheduler.core.value_object import value_object


@value_object
class NotificationFilter:
    """Which notifications a list shows; empty fields do not restrict."""

    channel: str = ""
    job: str = ""
    fates: tuple[Fate, ...] = ()


class NotificationQueries(Protocol):
    def notifications(self, which: NotificationFilter, limit: int = 50) -> list[Sent]:
        """The newest first."""
        ...

    def channels(self) -> list[ChannelView]:
        """Those that were ever used, by name."""
        ...
