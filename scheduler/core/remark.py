"""What a daemon knows is wrong with itself, for people."""

from __future__ import annotations

from datetime import datetime

from scheduler.core.ids import short
from scheduler.core.model import FailReason, Run
from scheduler.core.value_object import value_object


@value_object
class Remark:
    """`about` is one word for what it concerns (`database loops disk clock supervisor leaving configuration canary
    ping` or an invariant), `what` a sentence, `since` when it began as far as is known, `command` what to type first
    (None: `what` says all there is to do)."""

    about: str
    what: str
    since: datetime | None = None
    command: str | None = None


def where_to_look(job: str, run: Run | None) -> str:
    """What to type about a job, of which this run is to blame: what was never started has printed nothing."""
    if run is None or run.reason == FailReason.SPAWN:
        return f"schedctl describe {job}"
    return f"schedctl logs {short(run.id)}"
