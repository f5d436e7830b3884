"""Pings in the store: what a dead man's switch outside has yet to hear."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from scheduler.core.ping import NewPing, Ping


class OutgoingPings(Protocol):
    def put(self, pings: Sequence[NewPing]) -> None:
        """They wait to be sent, each after all that its job had waiting before."""
        ...

    def due(self, node: str, now: datetime, limit: int) -> list[Ping]:
        """The first of each job, if its time has come and this node may send it: its own and those of the dead at once,
        those of others when they have had a minute for it."""
        ...

    def waiting(self, jobs: Collection[str]) -> set[str]:
        """Those of these jobs that have any waiting, due or not."""
        ...

    def take(self, ping: Ping, until: datetime) -> bool:
        """Nobody else sends it before `until`, when it is due again. False: somebody was first."""
        ...

    def postpone(self, instants: Mapping[int, datetime]) -> None:
        """Sent again at these instants, by `seq`."""
        ...

    def remove(self, seqs: Collection[int]) -> None: ...

    def prune(self, before: datetime, most: int) -> dict[str, int]:
        """Forgets those from before that instant, and of a job all but the newest `most`; how many, by job."""
        ...
