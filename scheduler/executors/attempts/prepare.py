"""From a claimed run to something an executor can start."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from datetime import timedelta

from scheduler.core.errors import SchedulerError
from scheduler.core.execution import Launch
from scheduler.core.job import Job
from scheduler.core.model import FailReason, JobState, Run
from scheduler.core.outcome import Failed, Snoozed
from scheduler.executors.attempts.environment import build_environment
from scheduler.executors.attempts.records import AttemptRecords
from scheduler.executors.attempts.secrets import read_secrets
from scheduler.executors.attempts.users import child_user

DISK_WAIT = timedelta(seconds=30)
"""How long a run waits for a disk that took no files; costs no retry."""


class Preparation:
    """Reads secrets (from `environ` and files), lays out the attempt's files and builds its environment."""

    def __init__(self, records: AttemptRecords, environ: Mapping[str, str]) -> None:
        self._records = records
        self._environ = environ

    def prepare(self, run: Run, job: Job, state: JobState | None) -> Launch | Failed | Snoozed:
        """The launch; Failed(spawn) that names a missing secret or user; Snoozed when the disk takes nothing.

        `state` tells the job's last success and its deadline."""
        try:
            child_user(job.child.user)
        except SchedulerError as error:
            return Failed(FailReason.SPAWN, str(error), retryable=False)
        try:
            secrets = read_secrets(job.child.secrets, self._environ)
            workspace = self._records.begin(run, job, secrets)
            environment = build_environment(
                run,
                job,
                workspace,
                secrets,
                last_success=state.last_success_at if state is not None else None,
                deadline=state.deadline_at if state is not None else None,
            )
        except SchedulerError as error:
            return Failed(FailReason.SPAWN, str(error))
        except KeyError:
            return Failed(
                FailReason.SPAWN,
                f"user: there is no user {job.child.user} on this machine; create it or correct `user:`",
            )
        except OSError as error:
            return Snoozed(DISK_WAIT, disk_trouble(error))
        return Launch(run, job, run.attempt, environment, secrets)


def disk_trouble(error: OSError) -> str:
    """What to say of a disk that took no files, or of a process that may open no more."""
    what = f"cannot prepare {error.filename or 'the attempt'}: {os.strerror(error.errno or 0)}"
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return f"{what}; raise the limit on open files"
    return f"{what}; make room or access in the state directory"
