"""Signs of life: what a job that runs elsewhere tells about a run of its own, and which occurrence that run is."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from scheduler.core.job import Job
from scheduler.core.model import FailReason, Status
from scheduler.core.value_object import value_object

EARLY = timedelta(minutes=1)
"""The clock of the other machine may be ahead of ours by so much, and its cron so early."""
SHARE = 4
"""But by no more than this part of the time between two occurrences: what comes every minute is not taken for the next
one because it began half a minute late."""
LONGEST_TEXT = 10_000
"""Bytes of what a run printed that a sign carries: the last ones."""

_TICK = timedelta(microseconds=1)


class Word(StrEnum):
    """What is told: a run begins, ends well, ends badly, or says something and goes on."""

    START = "start"
    SUCCESS = "success"
    FAIL = "fail"
    LOG = "log"


@value_object
class Sign:
    """`rid` ties the signs of one run together: with it each may be told again, and changes nothing then. `exit_code`
    goes with SUCCESS (0) and FAIL. `text`: the last bytes of what it printed, LONGEST_TEXT at most, of which `omitted`
    were left out. `ago`: for how long it has been true when it came here. `took`: how long the run was at work, if its
    end is told and somebody measured that. `author`: who is written down as having told it."""

    job: str
    word: Word
    exit_code: int | None = None
    rid: str | None = None
    text: bytes = b""
    omitted: int = 0
    ago: timedelta = timedelta()
    took: timedelta | None = None
    author: str = ""

    @property
    def began(self) -> timedelta:
        """How long ago the run began, as far as this sign tells."""
        return self.ago + (self.took or timedelta())


@value_object
class Noted:
    """`run`: the one that a sign was about, None if it was about none. `new`: it changed something."""

    run: str | None
    new: bool = True


class Signs(Protocol):
    """Offered by the engine."""

    def take(self, sign: Sign) -> Noted:
        """When it returns, what the sign tells is on disk. Raises NotFound for no such job, Refused for one that runs
        here, Unavailable: nothing was written, and it may be told again."""
        ...


def occurrence_of(job: Job, began: datetime) -> datetime | None:
    """The instant of the job's schedule to which a run belongs that began then: the last one, if it began at most
    `grace` after it; or the next one, if it began a little before that (EARLY, and a SHARE of the time since the last
    one, at most). None: it belongs to none, like a run that somebody started by hand."""
    if job.schedule is None:
        return None
    last, coming = job.schedule.before(began + _TICK), job.schedule.after(began)
    if coming is not None:
        early = EARLY if last is None else min(EARLY, (coming - last) / SHARE)
        if coming - began <= early:
            return coming
    return last if last is not None and began - last <= job.watch.grace else None


@value_object
class Fate:
    """How a run ended: a final status, and of a failed one why and in which words."""

    status: Status
    outcome: str
    error: str | None = None
    exit_code: int | None = None


def fate_of(sign: Sign) -> Fate:
    """What the end means that a sign (SUCCESS or FAIL) tells."""
    if sign.word is Word.SUCCESS:
        return Fate(Status.COMPLETED, "completed", exit_code=sign.exit_code)
    if sign.exit_code is None:
        return Fate(Status.FAILED, str(FailReason.ERROR), "it told that it failed")
    return Fate(Status.FAILED, str(FailReason.EXIT), f"exit code {sign.exit_code}", sign.exit_code)
