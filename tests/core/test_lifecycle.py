"""What follows an outcome: every outcome × cancel × form of retries × on_lost."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.job import Job, OnLost, Retries
from scheduler.core.lifecycle import JITTER, settle, wait_before
from scheduler.core.model import Cause, FailReason, Run, Status
from scheduler.core.outcome import Canceled, Failed, GivenBack, Outcome, Snoozed, Succeeded
from scheduler.core.requests import Settlement
from scheduler.core.source import Compensate, OnDead, OnEvent, Order

from .builders import at, job
from .strategies import CORE

NOW = at("2026-03-01 10:00")
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
HALF_MINUTE = 30 * SECOND
RUN = Run(
    seq=1,
    id="run",
    job="job",
    key="at:2026-03-01T10:00:00Z",
    cause=Cause.SCHEDULE,
    status=Status.RUNNING,
    created_at=NOW,
    queue="default",
    priority=0,
    attempt=1,
    node="node",
    fence=7,
)
TWICE = Retries(limit=2)
EXIT = Failed(FailReason.EXIT, "exit 3", exit_code=3, left=2)
LOST = Failed(FailReason.LOST, "its node died")


def follow(
    outcome: Outcome, run: Run = RUN, tested: Job | None = None, *, removed: bool = False, random: float = 0.0
) -> Settlement:
    if tested is None:
        tested = job(retries=TWICE, payload_retries=Retries(limit=1, waits=(MINUTE,)))
    return settle(run, outcome, None if removed else tested, NOW, random)


# ------------------------------------------------------------------------------------------------ one attempt


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (Succeeded(), {"status": Status.COMPLETED, "attempt_outcome": "completed"}),
        (
            Succeeded(result={"pages": 500}, exit_code=0, left=1),
            {
                "status": Status.COMPLETED,
                "attempt_outcome": "completed",
                "result": {"pages": 500},
                "exit_code": 0,
                "left": 1,
            },
        ),
        (
            Canceled("cancel", exit_code=143, signal=15, left=1),
            {
                "status": Status.CANCELED,
                "attempt_outcome": "canceled",
                "reason": "cancel",
                "exit_code": 143,
                "signal": 15,
                "left": 1,
            },
        ),
        (
            EXIT,
            {
                "status": Status.PENDING,
                "attempt_outcome": "exit",
                "reason": "exit",
                "failures": 1,
                "not_before": NOW + HALF_MINUTE,
                "error": "exit 3",
                "exit_code": 3,
                "left": 2,
            },
        ),
        (
            replace(EXIT, retryable=False),
            {
                "status": Status.FAILED,
                "attempt_outcome": "exit",
                "reason": "exit",
                "failures": 1,
                "error": "exit 3",
                "exit_code": 3,
                "left": 2,
            },
        ),
        (
            Snoozed(5 * MINUTE, "nobody there"),
            {
                "status": Status.PENDING,
                "attempt_outcome": "snoozed",
                "not_before": NOW + 5 * MINUTE,
                "error": "nobody there",
            },
        ),
        (GivenBack(started=False), {"status": Status.PENDING, "attempt_outcome": None, "not_before": NOW}),
        (
            GivenBack(started=True),
            {
                "status": Status.PENDING,
                "attempt_outcome": "lost",
                "reason": "lost",
                "not_before": NOW,
                "error": "its node was stopped before it ended",
            },
        ),
        (
            LOST,
            {
                "status": Status.PENDING,
                "attempt_outcome": "lost",
                "reason": "lost",
                "lost": 1,
                "not_before": NOW,
                "error": "its node died",
            },
        ),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, dict) else "",
)
def test_the_whole_settlement_of_a_first_attempt(outcome: Outcome, expected: dict[str, object]) -> None:
    base = {"run": "run", "job": "job", "lock": None, "node": "node", "fence": 7}

    assert follow(outcome) == Settlement(**{**base, **expected})  # type: ignore[arg-type]


@pytest.mark.parametrize("reason", [one for one in FailReason if one not in (FailReason.LOST, FailReason.JOB_REMOVED)])
def test_every_reason_of_failure_uses_up_a_retry(reason: FailReason) -> None:
    found = follow(Failed(reason, "what happened"))

    assert (found.status, found.attempt_outcome, found.reason) == (Status.PENDING, str(reason), str(reason))
    assert (found.failures, found.lost) == (1, 0)
    last = follow(Failed(reason, "what happened"), replace(RUN, failures=2))
    assert (last.status, last.reason, last.failures, last.not_before) == (Status.FAILED, str(reason), 3, None)


@pytest.mark.parametrize("outcome", [Snoozed(MINUTE), GivenBack(started=False), GivenBack(started=True), LOST])
def test_what_is_no_failure_uses_up_no_retry(outcome: Outcome) -> None:
    found = follow(outcome, replace(RUN, failures=2, lost=1))

    assert found.status is Status.PENDING
    assert found.failures == 2


@pytest.mark.parametrize("outcome", [Succeeded(), Canceled("cancel"), Failed(FailReason.EXIT, "", retryable=False)])
def test_counts_of_the_past_are_kept(outcome: Outcome) -> None:
    found = follow(outcome, replace(RUN, failures=1, lost=2))

    assert found.failures == 1 + isinstance(outcome, Failed)
    assert found.lost == 2


# ------------------------------------------------------------------------------------------------ cancel


@pytest.mark.parametrize(
    ("outcome", "attempt"),
    [
        (EXIT, "canceled"),
        (Canceled("cancel"), "canceled"),
        (Snoozed(MINUTE), "canceled"),
        (GivenBack(started=False), "canceled"),
        (GivenBack(started=True), "lost"),
        (LOST, "lost"),
    ],
)
@pytest.mark.parametrize("removed", [False, True])
@pytest.mark.parametrize("on_lost", OnLost)
def test_a_run_to_be_canceled_is_tried_no_further(
    outcome: Outcome, attempt: str, removed: bool, on_lost: OnLost
) -> None:
    tested = job(retries=TWICE, on_lost=on_lost)
    found = follow(outcome, replace(RUN, cancel="by ops: wrong month"), tested, removed=removed)

    assert (found.status, found.reason) == (Status.CANCELED, "by ops: wrong month")
    assert found.attempt_outcome == attempt
    assert found.not_before is None


def test_success_before_the_cancel_arrived_is_success() -> None:
    assert follow(Succeeded(), replace(RUN, cancel="by ops")).status is Status.COMPLETED


def test_a_canceled_run_keeps_what_is_known_of_its_end() -> None:
    found = follow(replace(EXIT, signal=15), replace(RUN, cancel="by ops", failures=1))

    assert (found.exit_code, found.signal, found.left, found.error) == (3, 15, 2, "exit 3")


# ------------------------------------------------------------------------------------------------ lost


@pytest.mark.parametrize(
    ("before", "status", "not_before"),
    [
        (0, Status.PENDING, NOW),
        (1, Status.PENDING, NOW + HALF_MINUTE),
        (2, Status.FAILED, None),
        (9, Status.FAILED, None),
    ],
)
@pytest.mark.parametrize("failures", [0, 2])
def test_three_attempts_may_be_lost(before, status, not_before, failures):
    found = follow(LOST, replace(RUN, lost=before, failures=failures))

    assert (found.status, found.not_before, found.lost) == (status, not_before, before + 1)
    assert (found.reason, found.attempt_outcome, found.failures) == ("lost", "lost", failures)


@pytest.mark.parametrize("outcome", [LOST, GivenBack(started=True)])
@pytest.mark.parametrize("payload", [False, True])
def test_work_that_must_not_be_repeated_fails(outcome: Outcome, payload: bool) -> None:
    found = follow(outcome, replace(RUN, has_payload=payload), job(retries=TWICE, on_lost=OnLost.FAIL))

    assert (found.status, found.reason, found.attempt_outcome) == (Status.FAILED, "lost", "lost")


def test_an_attempt_that_never_started_is_given_back_also_where_lost_ones_fail() -> None:
    found = follow(GivenBack(started=False), tested=job(on_lost=OnLost.FAIL))

    assert (found.status, found.attempt_outcome) == (Status.PENDING, None)


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_node_that_leaves_in_order_costs_no_lost_attempt(lost: int) -> None:
    found = follow(GivenBack(started=True), replace(RUN, lost=lost))

    assert (found.status, found.lost) == (Status.PENDING, lost)


# ------------------------------------------------------------------------------------------------ removed job


@pytest.mark.parametrize("outcome", [EXIT, LOST, GivenBack(started=True)])
@pytest.mark.parametrize("payload", [False, True])
def test_of_a_removed_job_nothing_is_tried_again(outcome: Outcome, payload: bool) -> None:
    found = follow(outcome, replace(RUN, has_payload=payload), removed=True)

    assert (found.status, found.not_before) == (Status.FAILED, None)
    assert found.reason == ("exit" if outcome is EXIT else "lost")


@pytest.mark.parametrize("outcome", [Snoozed(MINUTE), GivenBack(started=False)])
def test_of_a_removed_job_nothing_goes_back_into_the_line(outcome: Outcome) -> None:
    occurrence = follow(outcome, removed=True)
    carrying = follow(outcome, replace(RUN, has_payload=True), removed=True)

    assert (occurrence.status, occurrence.reason) == (Status.CANCELED, "its job was removed")
    assert (carrying.status, carrying.reason) == (Status.FAILED, "job_removed")
    assert occurrence.not_before is carrying.not_before is None


@pytest.mark.parametrize("outcome", [Succeeded(), Canceled("cancel")])
def test_of_a_removed_job_an_end_is_an_end(outcome: Outcome) -> None:
    assert follow(outcome, removed=True) == follow(outcome)


# ------------------------------------------------------------------------------------------------ waits


@pytest.mark.parametrize(
    ("retries", "waits"),
    [
        (Retries(limit=0), []),
        (Retries(limit=1), [30]),
        (Retries(limit=9), [30, 60, 120, 240, 480, 960, 1800, 1800, 1800]),
        (Retries(limit=4, waits=(MINUTE, 5 * MINUTE, 30 * MINUTE, 120 * MINUTE)), [60, 300, 1800, 7200]),
        (Retries(limit=1, waits=(timedelta(0),)), [0]),
        (Retries(limit=3, delay=timedelta(0)), [0, 0, 0]),
        (Retries(limit=3, delay=10 * SECOND, backoff=1.0), [10, 10, 10]),
        (Retries(limit=3, delay=10 * SECOND, backoff=3.0, max_delay=20 * SECOND), [10, 20, 20]),
        (Retries(limit=2, delay=60 * MINUTE), [1800, 1800]),
    ],
    ids=str,
)
def test_the_waits(retries: Retries, waits: list[int]) -> None:
    found = [wait_before(retries, failures) for failures in range(1, len(waits) + 3)]

    assert found == [*(timedelta(seconds=wait) for wait in waits), None, None]


def test_a_gentle_growth_reaches_its_limit_too() -> None:
    retries = Retries(limit=100, delay=SECOND, backoff=1.1, max_delay=30 * MINUTE)

    assert wait_before(retries, 71) == pytest.approx(SECOND * 1.1**70, abs=SECOND)
    assert wait_before(retries, 100) == 30 * MINUTE


@pytest.mark.parametrize("backoff", [2.0, 100.0, 1e9])
def test_huge_numbers_of_failures_do_not_overflow(backoff: float) -> None:
    retries = Retries(limit=10**9, backoff=backoff)

    for failures in (10**3, 10**6, 10**9):
        assert wait_before(retries, failures) == 30 * MINUTE
        assert follow(EXIT, replace(RUN, failures=failures - 1), job(retries=retries)).status is Status.PENDING
    assert wait_before(retries, 10**9 + 1) is None


def test_runs_with_a_payload_have_waits_of_their_own() -> None:
    carrying = replace(RUN, has_payload=True)

    assert follow(EXIT).not_before == NOW + HALF_MINUTE
    assert follow(EXIT, carrying).not_before == NOW + MINUTE
    assert follow(EXIT, replace(carrying, failures=1)).status is Status.FAILED


@settings(CORE, max_examples=100)
@given(
    st.timedeltas(timedelta(0), timedelta(hours=3)),
    st.one_of(st.none(), st.timedeltas(timedelta(0), timedelta(days=1))),
    st.floats(0, 1, exclude_max=True),
)
def test_jitter_goes_upwards_only_and_never_below_the_floor(
    wait: timedelta, floor: timedelta | None, random: float
) -> None:
    found = follow(replace(EXIT, not_sooner=floor), tested=job(retries=Retries(limit=1, waits=(wait,))), random=random)
    least = max(wait, floor or timedelta(0))

    assert found.not_before is not None
    assert least <= found.not_before - NOW <= least * (1 + JITTER) + timedelta(microseconds=1)


def test_failures_of_one_moment_do_not_come_back_in_one_moment() -> None:
    for outcome in (EXIT, replace(EXIT, not_sooner=10 * MINUTE)):
        assert len({follow(outcome, random=n / 10).not_before for n in range(10)}) == 10


def test_a_floor_does_not_give_a_retry_to_a_run_that_has_none_left() -> None:
    assert follow(replace(EXIT, not_sooner=MINUTE), replace(RUN, failures=2)).status is Status.FAILED


@pytest.mark.parametrize("outcome", [EXIT, LOST, Canceled("cancel"), Succeeded()])
@pytest.mark.parametrize("on_dead", list(OnDead))
def test_only_a_dead_letter_holds_up_what_waits_behind_it(outcome: Outcome, on_dead: OnDead) -> None:
    """As its job says; a further attempt, a run without a place in an order and a removed job hold nothing."""
    told = job(on_event=OnEvent("payments", order=Order.SUBJECT, on_dead=on_dead))
    last = replace(RUN, has_payload=True, rank=1, lost=2)
    found = follow(outcome, last, told)

    assert found.keeps_lock == (found.status is Status.FAILED and on_dead is OnDead.HOLD)
    again = replace(told, payload_retries=Retries(limit=1))
    assert not follow(EXIT, last, again).keeps_lock
    assert not follow(outcome, replace(last, rank=None), told).keeps_lock
    assert not follow(outcome, last, told, removed=True).keeps_lock
    assert not follow(outcome, last, replace(told, on_event=OnEvent("payments", on_dead=on_dead))).keeps_lock


# ------------------------------------------------------------------------------------------------ a look


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (Failed(FailReason.SPAWN, "the secret is missing"), "dry run: the secret is missing"),
        (Failed(FailReason.HTTP, "503", retryable=True), "dry run: 503"),
        (LOST, "dry run: its node died"),
        (Snoozed(MINUTE, "asked to come later"), "dry run: asked to come later"),
        (GivenBack(started=True), "dry run: its node was stopped before it ended"),
        (Succeeded({"listed": 1}), "dry run: nothing was written"),
    ],
)
def test_a_scan_that_only_looks_is_over_with_its_first_attempt(outcome: Outcome, reason: str) -> None:
    scan = job(retries=TWICE, payload_retries=TWICE, compensate=Compensate("payments", "http_list"))
    look = replace(RUN, payload={"dry_run": True}, has_payload=True)
    found = follow(outcome, look, scan)
    assert (found.status, found.reason, found.not_before) == (Status.CANCELED, reason, None)
    assert follow(GivenBack(started=False), look, scan).status is Status.PENDING
    assert follow(Failed(FailReason.SPAWN, "no"), replace(look, payload={"dry_run": 1}), scan).status is Status.PENDING
