"""From the end of a process to an outcome, in words that say what probably happened."""

from __future__ import annotations

import signal
from collections.abc import Mapping

from scheduler.core.children import ChildExit
from scheduler.core.durations import format_duration
from scheduler.core.job import Job
from scheduler.core.model import FailReason, Json
from scheduler.core.outcome import Canceled, Failed, GivenBack, Outcome, Succeeded


def of_exit(ended: ChildExit, job: Job, result: Json, environment: Mapping[str, str]) -> Outcome:
    """What the end of a job's own process means. An exit after our own signal means what the signal meant."""
    if ended.why is not None:
        return of_ending(ended.why, job, ended)
    if ended.signal is not None:
        return Failed(
            FailReason.SIGNAL, signal_words(ended.signal), signal=ended.signal, left=ended.left, span=ended.span
        )
    if ended.code == 0:
        return Succeeded(result, exit_code=0, left=ended.left, span=ended.span)
    code = -1 if ended.code is None else ended.code
    words = code_words(code, environment)
    return Failed(FailReason.EXIT, words, exit_code=ended.code, left=ended.left, span=ended.span)


def of_ending(why: str, job: Job, ended: ChildExit | None = None, *, begun: bool = True) -> Outcome:
    """What it means that we ended an attempt; `ended` tells how its process went, if it had one of its own. Not
    `begun`: nothing of it had happened yet."""
    code, number, left = (None, None, 0) if ended is None else (ended.code, ended.signal, ended.left)
    span = None if ended is None else ended.span
    match why:
        case "timeout":
            words = f"ran longer than its timeout of {format_duration(job.timeout)}"
            return Failed(FailReason.TIMEOUT, words, exit_code=code, signal=number, left=left, span=span)
        case "lost":
            words = "was ended because its node could no longer vouch for it"
            return Failed(FailReason.LOST, words, exit_code=code, signal=number, left=left, span=span)
        case "drain":
            return GivenBack(started=begun and (ended is None or code is not None or number is not None), span=span)
    return Canceled(why, exit_code=code, signal=number, left=left, span=span)


def code_words(code: int, environment: Mapping[str, str]) -> str:
    words = f"exit code {code}"
    if code == 126:
        return f"{words}: a command was found but cannot be executed; check its mode and its #! line"
    if code == 127:
        return f"{words}: a command was not found; PATH={environment.get('PATH', '')}"
    if 128 < code <= 128 + signal.NSIG:
        number = code - 128
        return f"{words} (128+{number}: probably killed by signal {number}{_hint(number)})"
    return words


def signal_words(number: int) -> str:
    try:
        name = f" ({signal.Signals(number).name})"
    except ValueError:
        name = ""
    return f"killed by signal {number}{name}{_hint(number)}"


def _hint(number: int) -> str:
    if number == signal.SIGKILL:
        return ", out of memory?"
    if number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGABRT):
        return ", it crashed"
    return ""
