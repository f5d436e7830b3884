"""The errors of the product, mapped once to exit codes (cli) and HTTP problems (web).

    SchedulerError            something is wrong and a person can be told what to do
    ├── InvalidInput          what somebody wrote cannot be accepted (exit 1, HTTP 422)
    │   └── ScheduleError     a cron expression or zone is refused
    ├── NotFound              no such job, run, event … (exit 4, HTTP 404)
    ├── Refused               understood, but not allowed now (exit 5, HTTP 409)
    ├── Unavailable           database or daemon away; try again later (exit 3, HTTP 503)
    │   ├── DatabaseAway      the database does not answer, or takes nothing
    │   └── SupervisorAway    the process that owns all children does not
    └── StartError            the daemon cannot start with what it was given (exit 78)

Every error carries one sentence of reason and, where there is one, the remedy in `hint`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, TypeVar

T = TypeVar("T")


class SchedulerError(Exception):
    """`reason` says what is wrong, `hint` what to do about it."""

    def __init__(self, reason: str, *, hint: str | None = None) -> None:
        super().__init__(reason if hint is None else f"{reason}; {hint}")
        self.reason = reason
        self.hint = hint


class InvalidInput(SchedulerError):
    """What somebody wrote cannot be accepted; nothing was changed. `others`: what else is wrong with the same thing."""

    def __init__(self, reason: str, *, hint: str | None = None, others: Sequence[InvalidInput] = ()) -> None:
        super().__init__(reason, hint=hint)
        self.others = tuple(others)


def refuse_all(found: Sequence[InvalidInput]) -> None:
    """Raises the first, which tells of the others; does nothing if there is none."""
    if found:
        first, *others = found
        raise InvalidInput(first.reason, hint=first.hint, others=others)


def attempt(found: list[InvalidInput], make: Callable[[], T]) -> T | None:
    """What `make` gives; None if it refuses, and then `found` has all of why."""
    try:
        return make()
    except InvalidInput as error:
        found.extend((error, *error.others))
        return None


class ScheduleError(InvalidInput):
    """A cron expression, a `day_match` or a zone is refused."""


class NotFound(SchedulerError):
    """There is no such thing."""


class Refused(SchedulerError):
    """The request is understood but cannot be carried out in the present state; nothing was changed."""


class Unavailable(SchedulerError):
    """The database, the daemon or another part is away for the moment. `about` says which, as core.remark calls it."""

    about: ClassVar[str] = "loops"


class DatabaseAway(Unavailable):
    """The database does not answer, or takes nothing."""

    about = "database"


class SupervisorAway(Unavailable):
    """The supervisor does not take what it is told."""

    about = "supervisor"


class StartError(SchedulerError):
    """The daemon cannot start with what it was given."""
