"""What follows an outcome: pure, the only place that decides whether a run is tried again."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from scheduler.core.job import Job, OnLost, Retries
from scheduler.core.model import FailReason, Run, Status
from scheduler.core.outcome import Canceled, Failed, GivenBack, Outcome, Snoozed, Span, Succeeded
from scheduler.core.requests import Settlement
from scheduler.core.scan import NOTHING_OLD
from scheduler.core.source import OnDead, Order

LOOKED_AT_NOTHING = f"dry run: {NOTHING_OLD}"
"""Why a dry run has no report, though nothing is wrong."""
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
    try:
        return min(retries.delay * retries.backoff ** (failures - 1), retries.max_delay)
    except OverflowError:
        return retries.max_delay


def settle(run: Run, outcome: Outcome, job: Job | None, now: datetime, random: float) -> Settlement:
    """What becomes of `run` after an attempt that ended with `outcome`.

    `job` is the definition in force (None: the job was removed, nothing is tried again). `random` in [0, 1) spreads
    retries, upwards only. A run that somebody asked to cancel is tried no further, whatever its attempt came to.
    """
    if run.cancel is not None and not isinstance(outcome, Succeeded):
        word = str(FailReason.LOST) if _is_lost(outcome) else "canceled"
        return replace(_facts(run, outcome), status=Status.CANCELED, attempt_outcome=word, reason=run.cancel)
    if is_look(run, job):
        outcome = _of_look(outcome)
    settlement = _follow(run, outcome, job, now, random)
    if job is None and settlement.status is Status.PENDING:
        return _dropped(run, settlement)
    if settlement.status is Status.FAILED and _holds_its_line(run, job):
        return replace(settlement, keeps_lock=True)
    return settlement


def is_look(run: Run, job: Job | None) -> bool:
    """Whether the run is a scan that only looks what it would find (`schedctl scan --dry-run`)."""
    if job is None or job.compensate is None or not isinstance(run.payload, dict):
        return False
    return run.payload.get("dry_run") is True


def _of_look(outcome: Outcome) -> Outcome:
    """A look is neither a success, which the job's deadline would take for one, nor a failure of the job, and nobody
    waits for a second one."""
    match outcome:
        case Canceled() | GivenBack(started=False):
            return outcome
        case GivenBack():
            return Canceled("dry run: its node was stopped before it ended", span=outcome.span)
        case Succeeded(result):
            idle = isinstance(result, dict) and result.get("why") == NOTHING_OLD
            return Canceled(
                LOOKED_AT_NOTHING if idle else "dry run: nothing was written", left=outcome.left, span=outcome.span
            )
        case Snoozed():
            return Canceled(f"dry run: {outcome.error}", span=outcome.span)
        case Failed():
            ended = outcome.exit_code, outcome.signal, outcome.left
            return Canceled(f"dry run: {outcome.error}", *ended, span=outcome.span)


def _holds_its_line(run: Run, job: Job | None) -> bool:
    if job is None or job.on_event is None or run.rank is None or not run.has_payload:
        return False
    return job.on_event.order is Order.SUBJECT and job.on_event.on_dead is OnDead.HOLD


def timed(settlement: Settlement, span: Span | None, now: datetime, boottime: float) -> Settlement:
    """The same with the times of the attempt: `now` and `boottime` (CLOCK_BOOTTIME, seconds) are the same moment. What
    is heard late, because the daemon was stopped or its database away, ended when it ended; and a wall clock that was
    set meanwhile changes no duration."""
    if span is None:
        return settlement
    ended = now + timedelta(seconds=span.ended - boottime)
    took = None if span.began is None else max(0.0, span.ended - span.began)
    return replace(settlement, ended=ended, took=took)


def _is_lost(outcome: Outcome) -> bool:
    if isinstance(outcome, GivenBack):
        return outcome.started
    return isinstance(outcome, Failed) and outcome.reason is FailReason.LOST


def _follow(run: Run, outcome: Outcome, job: Job | None, now: datetime, random: float) -> Settlement:
    if isinstance(outcome, Succeeded):
        return _facts(run, outcome, status=Status.COMPLETED, attempt_outcome="completed")
    facts = _facts(run, outcome)
    match outcome:
        case Canceled():
            return replace(facts, status=Status.CANCELED, attempt_outcome="canceled", reason=outcome.why)
        case GivenBack(started=False):
            return replace(facts, not_before=now)
        case GivenBack():
            return _lost(run, replace(facts, error="its node was stopped before it ended"), job, now)
        case Snoozed():
            return replace(facts, attempt_outcome="snoozed", not_before=now + outcome.delay)
        case Failed(reason=FailReason.LOST):
            return _lost(run, replace(facts, lost=run.lost + 1), job, now)
        case Failed():
            return _failed(run, facts, outcome, job, now, random)


def _dropped(run: Run, facts: Settlement) -> Settlement:
    """Like the runs that waited when their job was removed: one that carries a payload becomes a dead letter."""
    why = "its job was removed"
    if run.has_payload:
        reason = str(FailReason.JOB_REMOVED)
        return replace(facts, status=Status.FAILED, reason=reason, error=why, not_before=None)
    return replace(facts, status=Status.CANCELED, reason=why, not_before=None)


def _facts(
    run: Run, outcome: Outcome, status: Status = Status.PENDING, attempt_outcome: str | None = None
) -> Settlement:
    """The settlement of an attempt, with what the outcome says of it; one that changes nothing yet: back to PENDING."""
    assert run.node is not None
    return Settlement(
        run=run.id,
        job=run.job,
        lock=run.lock,
        node=run.node,
        fence=run.fence,
        status=status,
        attempt_outcome=attempt_outcome,
        failures=run.failures,
        lost=run.lost,
        error=outcome.error if isinstance(outcome, Failed | Snoozed) else None,
        exit_code=outcome.exit_code if isinstance(outcome, Succeeded | Failed | Canceled) else None,
        signal=outcome.signal if isinstance(outcome, Failed | Canceled) else None,
        result=outcome.result if isinstance(outcome, Succeeded) else None,
        left=outcome.left if isinstance(outcome, Succeeded | Failed | Canceled) else 0,
    )


def _failed(run: Run, facts: Settlement, outcome: Failed, job: Job | None, now: datetime, random: float) -> Settlement:
    reason = str(outcome.reason)
    facts = replace(facts, attempt_outcome=reason, reason=reason, failures=run.failures + 1)
    wait = None
    if job is not None and outcome.retryable:
        wait = wait_before(job.payload_retries if run.has_payload else job.retries, facts.failures)
    if wait is None:
        return replace(facts, status=Status.FAILED)
    wait = max(wait, outcome.not_sooner or timedelta(0))
    return replace(facts, not_before=now + wait * (1 + JITTER * random))


def _lost(run: Run, facts: Settlement, job: Job | None, now: datetime) -> Settlement:
    reason = str(FailReason.LOST)
    facts = replace(facts, attempt_outcome=reason, reason=reason)
    if job is None or job.on_lost is OnLost.FAIL or facts.lost >= LOST_LIMIT:
        return replace(facts, status=Status.FAILED)
    return replace(facts, not_before=now if facts.lost <= 1 else now + LOST_WAIT)
