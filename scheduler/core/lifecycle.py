"""What follows an outcome: pure, the only place that decides whether a run is tried again."""

from __future__ import annotations

from datetime import datetime, timedelta

from scheduler.core.model import FailReason, Job, OnLost, Retries, Run, Status
from scheduler.core.outcome import Canceled, Failed, GivenBack, Outcome, Snoozed, Succeeded
from scheduler.core.ports import Settlement

LOST_LIMIT = 3
"""At most so many attempts of one run may be lost with their node before it fails."""
LOST_WAIT = timedelta(seconds=30)
"""Between lost attempts, from the second on; the first is repeated at once."""
JITTER = 0.1
"""A wait grows by up to this share, so that many failures of one moment do not come back in one moment."""


def wait_before(retries: Retries, failures: int) -> timedelta | None:
    """The wait before the next attempt after the `failures`-th failed one (1, 2, …); None: no further attempt."""
    if retries.waits:
        return retries.waits[failures - 1] if failures <= len(retries.waits) else None
    if failures > retries.limit:
        return None
    exponent = min(failures - 1, 64)
    seconds = min(
        retries.delay.total_seconds() * retries.backoff**exponent, retries.max_delay.total_seconds()
    )
    return timedelta(seconds=seconds)


def settle(run: Run, outcome: Outcome, job: Job | None, now: datetime, random: float) -> Settlement:
    """What becomes of `run` after an attempt that ended with `outcome`.

    `job` is the definition in force (None: the job was removed, nothing is tried again). `random` in [0, 1) spreads
    retries, upwards only.
    """
    assert run.node is not None
    match outcome:
        case Succeeded():
            return _close(
                run,
                Status.COMPLETED,
                "completed",
                result=outcome.result,
                exit_code=outcome.exit_code,
                left=outcome.left,
            )
        case Canceled():
            return _close(
                run,
                Status.CANCELED,
                "canceled",
                reason=outcome.why,
                exit_code=outcome.exit_code,
                signal=outcome.signal,
                left=outcome.left,
            )
        case GivenBack(started=False):
            return _again(run, None, now)
        case GivenBack():
            return _lost(run, job, now, counted=False, error="its node was stopped before it ended")
        case Snoozed():
            return _again(run, "snoozed", now + outcome.delay, error=outcome.error)
        case Failed(reason=FailReason.LOST):
            return _lost(run, job, now, counted=True, error=outcome.error)
        case Failed():
            return _failed(run, outcome, job, now, random)


def _failed(run: Run, outcome: Failed, job: Job | None, now: datetime, random: float) -> Settlement:
    failures = run.failures + 1
    details = {
        "reason": str(outcome.reason),
        "error": outcome.error,
        "exit_code": outcome.exit_code,
        "signal": outcome.signal,
        "left": outcome.left,
    }
    wait = None
    if job is not None and outcome.retryable and run.cancel is None:
        wait = wait_before(job.payload_retries if run.has_payload else job.retries, failures)
    if wait is None:
        status = Status.FAILED if run.cancel is None else Status.CANCELED
        return _close(run, status, str(outcome.reason), failures=failures, **details)
    wait = max(wait * (1 + JITTER * random), outcome.not_sooner or timedelta(0))
    return _again(run, str(outcome.reason), now + wait, failures=failures, **details)


def _lost(run: Run, job: Job | None, now: datetime, *, counted: bool, error: str) -> Settlement:
    lost = run.lost + (1 if counted else 0)
    reason = str(FailReason.LOST)
    if run.cancel is not None:
        return _close(run, Status.CANCELED, reason, lost=lost, reason=run.cancel, error=error)
    if job is None or job.on_lost is OnLost.FAIL or lost >= LOST_LIMIT:
        return _close(run, Status.FAILED, reason, lost=lost, reason=reason, error=error)
    not_before = now if lost <= 1 else now + LOST_WAIT
    return _again(run, reason, not_before, lost=lost, error=error)


def _close(
    run: Run, status: Status, attempt_outcome: str, *, failures: int | None = None, lost: int | None = None, **details: object
) -> Settlement:
    return _settlement(run, status, attempt_outcome, None, failures, lost, details)


def _again(
    run: Run,
    attempt_outcome: str | None,
    not_before: datetime,
    *,
    failures: int | None = None,
    lost: int | None = None,
    **details: object,
) -> Settlement:
    return _settlement(run, Status.PENDING, attempt_outcome, not_before, failures, lost, details)


def _settlement(
    run: Run,
    status: Status,
    attempt_outcome: str | None,
    not_before: datetime | None,
    failures: int | None,
    lost: int | None,
    details: dict[str, object],
) -> Settlement:
    assert run.node is not None
    return Settlement(
        run=run.id,
        node=run.node,
        fence=run.fence,
        status=status,
        attempt_outcome=attempt_outcome,
        not_before=not_before,
        failures=run.failures if failures is None else failures,
        lost=run.lost if lost is None else lost,
        **details,  # type: ignore[arg-type]
    )
