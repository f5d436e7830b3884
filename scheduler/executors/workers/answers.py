"""What an answer of a worker, or that there is none, means for the attempt."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from scheduler.core.job import Job
from scheduler.core.model import FailReason
from scheduler.core.outcome import Failed, Outcome, Snoozed, Succeeded
from scheduler.executors.attempts.outcomes import of_ending, signal_words
from scheduler.executors.attempts.prepare import DISK_WAIT, disk_trouble
from scheduler.executors.attempts.records import AttemptRecord
from scheduler.executors.workers.wire import BEREFT, CLOSED_OURS
from scheduler.executors.workers.worker import Answer

NO_WORKER_WAIT = timedelta(seconds=5)
"""How long a run waits when no process is to be had; costs no retry."""


def without_work(answer: Answer, job: Job) -> Outcome | None:
    """The outcome of an answer in which the worker says nothing of the work; None if it does."""
    if answer.message is None:
        return replace(_without_message(answer, job), span=answer.span)
    if "disk" in answer.message:
        number, path = answer.message["disk"]
        return Snoozed(DISK_WAIT, disk_trouble(OSError(number, "", path)))
    return None


def as_kept(outcome: Outcome, answer: Answer, record: AttemptRecord) -> Outcome:
    """The outcome of this answer without the secrets of its attempt, and with the time that the worker took."""
    if isinstance(outcome, Failed):
        return replace(outcome, error=record.masked(outcome.error), span=answer.span)
    if isinstance(outcome, Succeeded):
        return replace(outcome, result=record.masks.value(outcome.result), span=answer.span)
    return outcome


def _without_message(answer: Answer, job: Job) -> Outcome:
    if answer.why is not None:
        return of_ending(answer.why, job, answer.died, begun=answer.begun)
    if answer.busy is not None:
        return Snoozed(NO_WORKER_WAIT, answer.busy)
    if answer.failed is not None:
        return Failed(FailReason.SPAWN, f"its worker process could not be started: {answer.failed}")
    died = answer.died
    if died is None:
        return Failed(FailReason.LOST, answer.lost or "its worker process is gone")
    said = f"; it said: {answer.last_words}" if answer.last_words else ""
    if died.signal is not None:
        words = f"its worker process was {signal_words(died.signal)}{said}"
        return Failed(FailReason.SIGNAL, words, signal=died.signal, left=answer.left)
    if died.code == BEREFT:
        words = f"its worker process could not go on: {CLOSED_OURS}; close only what you have opened"
        return Failed(FailReason.ERROR, words, retryable=False, exit_code=died.code, left=answer.left)
    words = f"its worker process ended with exit code {died.code} in the middle of the work{said}"
    return Failed(FailReason.EXIT, words, exit_code=died.code, left=answer.left)
