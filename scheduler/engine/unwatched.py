"""Remembers when no daemon watched: none was up, or none could reach the database."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta

from scheduler.core.look import COUNTED
from scheduler.core.ports import Transaction
from scheduler.core.stamp import from_text, to_text
from scheduler.core.state import Unwatched
from scheduler.core.value_object import value_object

LEAST = timedelta(minutes=1)
"""A shorter gap is none: what falls due in it is late, not missed."""
EVERY = timedelta(seconds=20)
"""So often it is written down that somebody watches."""
KEPT_FOR = timedelta(days=31)
MOST = 100

KEY = COUNTED
"""Of the installation's value: over all nodes, when somebody watched last, and the gaps before that."""


@value_object
class WatchLog:
    """`at` None: nobody has ever watched. `text` is how it is stored, None if it is not; `writes`: how often it was."""

    at: datetime | None = None
    stretches: tuple[Unwatched, ...] = ()
    text: str | None = None
    writes: int = 0

    def by(self, now: datetime) -> tuple[Unwatched, ...]:
        """The gaps as they are known at `now`, one that only now ends among them."""
        if self.at is None or now - self.at <= LEAST:
            return self.stretches
        return (*self.stretches, Unwatched(self.at, now))

    def looked(self, now: datetime) -> WatchLog:
        """What is to be stored by one who watches at `now`."""
        recent = tuple(one for one in self.by(now) if now - one.end < KEPT_FOR)[-MOST:]
        gaps = [[to_text(one.start), to_text(one.end)] for one in recent]
        found = {"at": to_text(now), "gaps": gaps, "writes": self.writes + 1}
        return WatchLog(now, recent, json.dumps(found, separators=(",", ":")), self.writes + 1)


def watch_log(tx: Transaction) -> WatchLog:
    return read_log(tx.generations.value(KEY))


def read_log(text: str | None) -> WatchLog:
    """`text`: the installation's value."""
    if text is None:
        return WatchLog()
    found = json.loads(text)
    gaps = tuple(Unwatched(from_text(start), from_text(end)) for start, end in found["gaps"])
    return WatchLog(from_text(found["at"]), gaps, text, found.get("writes", 0))


def look(tx: Transaction, now: datetime, known: WatchLog | None = None) -> WatchLog:
    """Writes down that somebody watches; the log as it is then. Of several nodes that come back together the first one
    ends the gap. `known`: what was read before, which need not be true any more."""
    log = known or watch_log(tx)
    seen = log.looked(now)
    if log.at is not None and now < log.at and log.at - now <= LEAST:
        return replace(log, at=now)  # Another node was a moment faster.
    if not tx.generations.swap_value(KEY, log.text, seen.text or ""):
        return watch_log(tx)
    return seen
