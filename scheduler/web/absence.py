"""When no daemon was there: why instants were missed."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from scheduler.core.model import Node
from scheduler.core.value_object import value_object

_WORTH_TELLING = timedelta(seconds=1)
"""Of the time that a daemon took to leave, if it is known."""


@value_object
class Absence:
    """No daemon from the end of the one before (None: there was none, or it is forgotten) until the start of the next.

    `exact` False: that one was killed, and `start` is its last sign of life, up to ten seconds before its end.
    `leaving`: from then until its end it waited for its runs and planned nothing more."""

    start: datetime | None
    end: datetime
    exact: bool = False
    leaving: datetime | None = None


def absence(nodes: Iterable[Node], instant: datetime) -> Absence | None:
    """The time without a daemon that plans, which contains `instant`; None if there was one (which was then busy,
    suspended, or without its database), or if nobody knows."""
    known = list(nodes)
    if any(node.started_at <= instant <= _planned_until(node) for node in known):
        return None
    later = [node.started_at for node in known if node.started_at > instant]
    earlier = [node for node in known if node.started_at <= instant]
    if not later:
        return None
    if not earlier:
        return Absence(None, min(later))
    last = max(earlier, key=_seen)
    start, exact = _seen(last), last.state == "stopped"
    leaving = max(map(_planned_until, earlier))
    told = start - leaving >= _WORTH_TELLING or (last.leaving_at is not None and not exact)
    return Absence(start, min(later), exact, leaving if told else None)


def _planned_until(node: Node) -> datetime:
    return _seen(node) if node.leaving_at is None else min(node.leaving_at, _seen(node))


def _seen(node: Node) -> datetime:
    return node.beat_at or node.started_at
