"""What people are told of: a job became so, and since when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from enum import StrEnum

from scheduler.core.model import Json
from scheduler.core.value_object import value_object


class Kind(StrEnum):
    """What happened to the job. TEST: somebody tries whether a channel works."""

    MISSED = "missed"
    FAILING = "failing"
    RECOVERED = "recovered"
    COMPLETED = "completed"
    SCAN_OVERDUE = "scan_overdue"
    DEAD_LETTER = "dead_letter"
    TEST = "test"


KINDS = tuple(kind.value for kind in Kind if kind is not Kind.TEST)
"""Those that a job's `notify` may name."""

USUAL = (Kind.MISSED.value, Kind.FAILING.value, Kind.RECOVERED.value)
"""What a channel is told of that is named without kinds."""

_GOES_WITH = {Kind.SCAN_OVERDUE: Kind.MISSED, Kind.DEAD_LETTER: Kind.FAILING}


@value_object
class Tiding:
    """`since`: when it became so (of a miss: its deadline). `key`: one notification per channel and key, for ever (the
    id of a flip, of a run). `run`: the run that it is about, if any. `detail`: what the text needs and the ledger does
    not say, as JSON: `state` and `was_since` of a recovery (what it was before, and since when, as ISO text), `error`,
    `watermark` of a scan (ISO text)."""

    kind: Kind
    job: str
    since: datetime
    key: str
    run: str | None = None
    detail: Mapping[str, Json] = field(default_factory=dict)


@value_object
class Entry:
    """A tiding as it waits for one channel."""

    channel: str
    tiding: Tiding


def wanted(notify: Mapping[str, tuple[str, ...]], kind: Kind) -> list[str]:
    """The channels of a job that are told of `kind`: those that name it, or the one that it goes with (an overdue scan
    with missed, a dead letter with failing)."""
    words = {kind.value, _GOES_WITH.get(kind, kind).value}
    return [channel for channel, kinds in notify.items() if words.intersection(kinds)]
