"""When no daemon was there: why instants were missed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from scheduler.core.model import Node


@dataclass(frozen=True, slots=True)
class Absence:
    """No daemon from the last sign of life of the one before (up to ten seconds before its end; None: there was none,
    or it is forgotten) until the start of the next."""

    start: datetime | None
    end: datetime


def absence(nodes: Iterable[Node], instant: datetime) -> Absence | None:
    """The time without a daemon that contains `instant`; None if there was one (which was then busy, suspended, or
    without its database), or if nobody knows."""
    known = list(nodes)
    if any(node.started_at <= instant and _seen(node) >= instant for node in known):
        return None
    later = [node.started_at for node in known if node.started_at > instant]
    earlier = [_seen(node) for node in known if node.started_at <= instant]
    return Absence(max(earlier, default=None), min(later)) if later else None


def _seen(node: Node) -> datetime:
    return node.beat_at or node.started_at
