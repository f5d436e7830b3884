"""Keys that mean nothing on a job that runs elsewhere, each with what happens instead."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from scheduler.config.timing import Complain

_STARTED = "it is started where it runs, by whatever starts it there"
_NO_WAITING = "nothing of it waits here for a place"
_ALONE = "what keeps its runs apart is on the machine that runs it"
_CATCH_UP = "what it missed is for the machine that runs it to make up for; here it is reported as missed"
_NO_PROCESS = "no process of it is started here"

NOT_OURS: Mapping[str, str] = MappingProxyType(
    {
        "on_event": _STARTED,
        "after": _STARTED,
        "overlap": _ALONE,
        "lock": _ALONE,
        "catch_up": _CATCH_UP,
        "catch_up_window": _CATCH_UP,
        "catch_up_max": _CATCH_UP,
        "retries": "it is tried again where it runs; each try tells how it went",
        "on_lost": "a run that never tells its end fails after `timeout`",
        "queue": _NO_WAITING,
        "priority": _NO_WAITING,
        "kill_after": _NO_PROCESS,
        "leftovers": _NO_PROCESS,
        "env": _NO_PROCESS,
        "secrets": _NO_PROCESS,
        "workdir": _NO_PROCESS,
        "user": _NO_PROCESS,
        "limits": _NO_PROCESS,
        "stdin": _NO_PROCESS,
        "log_limit": "of what it prints the last 10 kB are told and kept",
    }
)
"""Keys of a job, and why they can have no effect on an external one. What `defaults` say of them is passed over."""


def check_external(own: Mapping[str, Any], complain: Complain) -> None:
    """`own` are the keys written in the job itself."""
    for key, why in NOT_OURS.items():
        if own.get(key) is not None:
            complain((key,), f"`{key}` means nothing on an external job: {why}", "remove it", key=True)
