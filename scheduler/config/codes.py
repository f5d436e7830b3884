"""The kinds of warnings by their codes, and one warning before it has a place in a file.

A code never changes its meaning: `acknowledge` in jobs.yaml refers to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from scheduler.config.problem import Path
from scheduler.core.value_object import value_object

CODES: Mapping[str, str] = MappingProxyType(
    {
        # the schedule
        "both-days": "day of month and day of week are both given",
        "clock-change": "a time that a change of the clock skips or repeats within a year",
        "every-minute": "every minute (or second) of some hours, where once may have been meant",
        "never": "no occurrence is left",
        "short-months": "a day that some months do not have",
        "stray-star": "six fields that look like five and a star too many",
        "uneven-steps": "a step that does not divide its field",
        "written-twice": "the same expression twice",
        "zone": "a zone that is no place",
        # what it runs
        "comment": "text behind ` #` after an unquoted command",
        "detached": "nohup, setsid, disown or a trailing &: the process is ended with its run",
        "kept": "leftovers: keep: the processes end with the daemon",
        "no-shell": "a list is executed as it is: no variables, pipes or redirections",
        "not-replaced": "${NAME} where nothing is replaced",
        "secret-in-text": "a secret that would be kept in the database and shown by the API",
        # how it is watched
        "grace-long": "a grace longer than the time between occurrences",
        "grace-short": "a run that may take longer than its grace",
        "unexpected": "an external job without a schedule: its silence is not heard",
        # what it scans
        "beyond-list": "a scan that looks further back than its provider lists",
        # what this machine lacks
        "no-function": "the function of `call` is not found",
        "no-program": "the program of `command` is not found or not executable",
        "no-secret": "a secret cannot be read",
        "no-user": "the user is not known",
        "no-workdir": "the work directory is not found",
        "relative-secret": "the file of a secret has a relative path",
    }
)
"""What each code is about."""

HERE = frozenset({"no-function", "no-program", "no-secret", "no-user", "no-workdir"})
"""Those that another machine may not have."""


@value_object
class Remark:
    """One warning: `path` below the job, one of the codes, what is unwise, what to do about it."""

    path: Path
    code: str
    reason: str
    hint: str
