"""The one word for a job, and which changes of it are kept."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from scheduler.core.state import (
    KEPT,
    Facts,
    State,
    Unwatched,
    after_failure,
    after_success,
    after_withdrawal,
    forgiven_until,
    reached,
    shown,
    unheard,
)

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
PAST, AHEAD = NOW - MINUTE, NOW + MINUTE


def facts(**changes: object) -> Facts:
    return Facts(
        **{"kept": State.UP, "deadline": AHEAD, "failures": 0, "threshold": 1, "succeeded": True, **changes}  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("found", "word"),
    [
        (facts(), "up"),
        (facts(succeeded=False), "new"),
        (facts(running=True, succeeded=False), "running"),
        (facts(paused=True, running=True), "paused"),
        (facts(kept=State.UNKNOWN, paused=True), "unknown"),
        (facts(failures=1), "failing"),
        (facts(failures=1, threshold=2), "up"),
        (facts(kept=State.MISSED), "missed"),
        (facts(kept=State.MISSED, running=True, failures=3), "late"),
        (facts(deadline=PAST), "missed"),
        (facts(deadline=PAST, running=True), "late"),
        (facts(deadline=None, failures=4, paused=True), "failing"),
    ],
)
def test_the_most_telling_word_is_shown(found: Facts, word: str) -> None:
    assert shown(found, NOW) == word


def test_a_success_ends_what_was_wrong_but_for_what_is_late_still() -> None:
    assert {after_success(kept, AHEAD, NOW) for kept in KEPT} == {State.UP}
    assert after_success(State.MISSED, PAST, NOW) is State.MISSED
    assert after_success(State.MISSED, None, NOW) is State.UP
    assert after_success(State.FAILING, PAST, NOW) is State.UP, "its own deadline is judged by the vigil"


def test_a_failure_is_kept_from_the_threshold_on() -> None:
    assert after_failure(State.UP, 1, 2) is State.UP
    assert after_failure(State.UNKNOWN, 2, 2) is State.FAILING
    assert after_failure(State.MISSED, 9, 2) is State.MISSED


@pytest.mark.parametrize(
    ("failures", "of_these", "anew", "expected"),
    [(3, 1, False, True), (4, 1, False, False), (5, 4, False, True), (2, 2, False, False), (3, 3, True, True)],
)
def test_the_threshold_is_reached_once(failures: int, of_these: int, anew: bool, expected: bool) -> None:
    assert reached(failures, of_these, 3, anew=anew) is expected


def test_a_miss_that_is_none_any_more_ends() -> None:
    assert after_withdrawal(State.MISSED, PAST, 0, 1, NOW) is State.MISSED
    assert after_withdrawal(State.MISSED, AHEAD, 0, 1, NOW) is State.UP
    assert after_withdrawal(State.MISSED, None, 1, 1, NOW) is State.FAILING
    assert after_withdrawal(State.FAILING, None, 0, 1, NOW) is State.FAILING


def test_what_passed_while_nobody_watched_has_a_grace_from_then_on() -> None:
    gap = (Unwatched(NOW, NOW + 10 * MINUTE),)
    assert forgiven_until(NOW + 10 * MINUTE, MINUTE, gap) == NOW + 11 * MINUTE
    assert forgiven_until(NOW + MINUTE, MINUTE, gap) == NOW + 11 * MINUTE
    assert forgiven_until(NOW, MINUTE, gap) is None
    assert forgiven_until(NOW + 11 * MINUTE, MINUTE, gap) is None


def test_word_from_outside_may_be_lost_all_along_the_grace() -> None:
    gap = (Unwatched(NOW, NOW + 10 * MINUTE),)
    assert unheard(NOW + 12 * MINUTE, 3 * MINUTE, gap) == NOW + 10 * MINUTE
    assert unheard(NOW + 13 * MINUTE, 3 * MINUTE, gap) is None
    assert unheard(NOW, 3 * MINUTE, gap) is None
