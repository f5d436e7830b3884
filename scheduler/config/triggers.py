"""What starts a job, and keys that then mean nothing or cannot be kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler.config.models.job import JobModel
from scheduler.config.timing import Complain
from scheduler.core.source import OnDead, Order

_OCCURRENCES = ("catch_up", "catch_up_window", "catch_up_max", "blackouts", "day_match")


def check_triggers(model: JobModel, own: Mapping[str, Any], scan: bool, scheduled: bool, complain: Complain) -> None:
    """`own` are the keys written in the job itself: what it inherits and cannot use is passed over."""
    on_event = model.on_event
    if scan and own.get("overlap") == "allow":
        reason = "two runs of a scan would share one memory of how far it came"
        complain(("overlap",), reason, "remove it, or write skip or queue")
    if on_event is None:
        return
    if scan:
        complain(("on_event",), "a scan is not started by events: it finds them", "write a schedule", key=True)
    if not scheduled:
        for key in _OCCURRENCES:
            if own.get(key) is not None:
                reason = f"`{key}` is about the occurrences of a schedule, and events have none: each one runs"
                complain((key,), reason, "remove it; for a while: schedctl pause", key=True)
    if on_event.order == Order.SUBJECT:
        for key in ("overlap", "lock"):
            if own.get(key) not in (None, "allow"):
                reason = f"`{key}` cannot be kept with `order: subject`: the runs of one subject follow one another"
                complain((key,), reason, "remove one of the two", key=True)
        if scheduled:
            reason = "a job with `order: subject` has no schedule: an occurrence has no subject"
            complain(("schedule",), reason, "make it two jobs", key=True)
    elif on_event.on_dead == OnDead.HOLD:
        reason = "`on_dead: hold` holds a subject, and without `order: subject` none has to wait"
        complain(("on_event", "on_dead"), reason, "add order: subject, or remove it")
