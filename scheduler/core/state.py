"""The state of a job in one word: what the ledger keeps of it, and what follows from the facts of the moment.

Kept are only the words that somebody may have to be told of: `missed`, `failing`, `unknown`, and `up` for all else. A
change of the kept word is a flip. Whether a job is new, runs, is paused or late is seen when it is asked for: to keep
that as well would cost a write per run.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

from scheduler.core.value_object import value_object


class State(StrEnum):
    """From the most to the least telling; a job is in the first one that applies.

    `missed`: its deadline passed without a success. `late`: so did this one's, but a run is on its way. `failing`: as
    many failed runs in a row as `alert_after` says. `unknown`: whether it succeeded cannot be known. `new`: it has not
    succeeded yet."""

    MISSED = "missed"
    LATE = "late"
    FAILING = "failing"
    UNKNOWN = "unknown"
    PAUSED = "paused"
    RUNNING = "running"
    NEW = "new"
    UP = "up"


KEPT = (State.UP, State.MISSED, State.FAILING, State.UNKNOWN)
"""The words that the ledger keeps."""


class Why(StrEnum):
    """What made a job change its kept state. Only the first three are told to people: what somebody did is known to
    somebody, and a job that nobody waits for any more has not recovered."""

    DEADLINE = "deadline"
    FAILURE = "failure"
    SUCCESS = "success"
    ACK = "ack"
    CHANGE = "change"
    REMOVAL = "removal"
    OUTAGE = "outage"


@value_object
class Flip:
    """A change of a job's kept state. `at` is when it became so: of a miss its deadline, however late that was seen.
    `deadline`: the one that must still be stored for the flip to be true. `run`: the run whose end made it, if one did.
    `id` is given by the store, `seen_at` is when it was stored."""

    job: str
    old: State
    new: State
    at: datetime
    why: Why
    run: str | None = None
    deadline: datetime | None = None
    was_since: datetime | None = None
    seen_at: datetime | None = None
    id: int = 0


@value_object
class Facts:
    """What is known of a job at one moment. `threshold` is its `alert_after`."""

    kept: State
    deadline: datetime | None
    failures: int
    threshold: int
    succeeded: bool
    running: bool = False
    paused: bool = False


def shown(facts: Facts, now: datetime) -> State:
    """The one word for people."""
    passed = facts.kept is State.MISSED or (facts.deadline is not None and facts.deadline < now)
    if passed:
        return State.LATE if facts.running else State.MISSED
    if facts.failures >= facts.threshold:
        return State.FAILING
    if facts.kept is State.UNKNOWN:
        return State.UNKNOWN
    if facts.paused:
        return State.PAUSED
    if facts.running:
        return State.RUNNING
    return State.UP if facts.succeeded else State.NEW


def after_success(kept: State, deadline: datetime | None, now: datetime) -> State:
    """What a job is kept as that has just succeeded; `deadline` is its new one. A success of an instant long past does
    not make up for those that came after it."""
    if kept is State.MISSED and deadline is not None and deadline <= now:
        return State.MISSED
    return State.UP


def after_failure(kept: State, failures: int, threshold: int) -> State:
    """What a job is kept as after `failures` failed runs in a row. A miss says more."""
    return State.FAILING if failures >= threshold and kept is not State.MISSED else kept


def reached(failures: int, of_these: int, threshold: int, *, anew: bool) -> bool:
    """Whether the last `of_these` failed runs brought the failures in a row to the threshold; `anew`: a success lay
    before them."""
    before = 0 if anew else failures - of_these
    return before < threshold <= failures


def after_withdrawal(kept: State, deadline: datetime | None, failures: int, threshold: int, now: datetime) -> State:
    """What a job is kept as whose deadline was moved by somebody: a miss that is no longer one ends without a word."""
    if kept is not State.MISSED or (deadline is not None and deadline <= now):
        return kept
    return State.FAILING if failures >= threshold else State.UP


@value_object
class Unwatched:
    """A stretch in which no daemon was up, or none could reach the database."""

    start: datetime
    end: datetime


def forgiven_until(deadline: datetime, grace: timedelta, stretches: tuple[Unwatched, ...]) -> datetime | None:
    """A deadline that passed while nobody could start or settle anything is judged when what the job is owed has ended,
    and at the latest a grace after that stretch; None for any other deadline."""
    ends = [one.end for one in stretches if one.start < deadline <= one.end]
    return max(ends) + grace if ends else None


def unheard(deadline: datetime, grace: timedelta, stretches: tuple[Unwatched, ...]) -> datetime | None:
    """Until when word from outside may have been lost that a job would have sent before its deadline; None: it would
    have been heard."""
    ends = [one.end for one in stretches if one.start < deadline and one.end > deadline - grace]
    return max(ends, default=None)
