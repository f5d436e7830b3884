"""When and in how many messages people are told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.core.channel import Answer
from scheduler.core.notification import Fate, Pace, Standing, Waiting
from scheduler.core.notifying import (
    AT_ONCE,
    GIVE_UP,
    LONGEST_WAIT,
    Parcel,
    budget,
    next_message,
    parcels,
    results,
    spent,
    stands,
)
from scheduler.core.tiding import Kind, Tiding, wanted

T0 = datetime(2026, 3, 1, 3, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def waiting(number: int, *, attempts: int = 0, created_at: datetime = T0) -> Waiting:
    return Waiting(number, Tiding(Kind.MISSED, f"job-{number}", T0, f"flip:{number}"), created_at, attempts)


@pytest.mark.parametrize(
    ("notify", "kind", "channels"),
    [
        ({"ops": ("missed",)}, Kind.MISSED, ["ops"]),
        ({"ops": ("missed",)}, Kind.SCAN_OVERDUE, ["ops"]),
        ({"ops": ("failing",)}, Kind.DEAD_LETTER, ["ops"]),
        ({"ops": ("scan_overdue",)}, Kind.MISSED, []),
        ({"ops": ("missed", "failing", "recovered")}, Kind.COMPLETED, []),
        ({"a": ("completed",), "b": ("missed",), "c": ("completed",)}, Kind.COMPLETED, ["a", "c"]),
        ({}, Kind.MISSED, []),
    ],
)
def test_a_channel_is_told_of_what_it_asked_for_and_of_what_goes_with_it(
    notify: dict[str, tuple[str, ...]], kind: Kind, channels: list[str]
) -> None:
    assert wanted(notify, kind) == channels


@pytest.mark.parametrize(("count", "messages", "sizes"), [(1, 10, [1]), (3, 10, [1, 1, 1]), (4, 10, [4]), (3, 2, [3])])
def test_few_are_told_one_by_one_and_many_together(count: int, messages: int, sizes: list[int]) -> None:
    found = parcels([waiting(number) for number in range(count)], messages)
    assert [len(one.entries) for one in found] == sizes


def test_nothing_is_left_out_and_nothing_is_sent_without_a_message_to_spend() -> None:
    thousand = [waiting(number) for number in range(1_000)]
    assert [one.id for parcel in parcels(thousand, 1) for one in parcel.entries] == list(range(1_000))
    assert parcels(thousand, 0) == []


@given(st.lists(st.tuples(st.floats(0, 30), st.integers(1, 50)), max_size=60))
def test_no_minute_has_more_than_twenty_messages(steps: list[tuple[float, int]]) -> None:
    pace, now, sent = Pace(), T0, list[datetime]()
    for wait, wished in steps:
        now += timedelta(seconds=wait)
        count = min(wished, budget(pace, now))
        pace = spent(pace, count, now)
        sent += [now] * count
    for first in sent:
        assert sum(first <= one < first + timedelta(minutes=1) for one in sent) <= 20


def test_a_channel_that_has_had_its_messages_gets_the_next_one_in_time() -> None:
    pace = spent(Pace(), AT_ONCE, T0)
    assert budget(pace, T0) == 0
    later = next_message(pace, T0)
    assert timedelta(0) < later - T0 <= 6 * SECOND
    assert budget(pace, later) == 1
    assert next_message(Pace(), T0) == T0


@pytest.mark.parametrize(("attempts", "wait"), [(0, 10), (1, 30), (2, 90), (5, 2430), (6, 3600), (10_000, 3600)])
def test_waits_grow_to_an_hour(attempts: int, wait: int) -> None:
    (result,) = results(Parcel((waiting(1, attempts=attempts),)), Answer(False, "no"), T0)
    assert (result.fate, result.next_at - T0, result.error) == (Fate.WAITING, wait * SECOND, "no")


def test_a_channel_that_asks_for_more_patience_gets_it() -> None:
    asked = Answer(False, "429", retry_after=timedelta(hours=2))
    (result,) = results(Parcel((waiting(1),)), asked, T0)
    assert result.next_at - T0 == timedelta(hours=2) > LONGEST_WAIT
    assert stands(Standing(), [asked], T0).not_before == T0 + timedelta(hours=2)


def test_after_a_day_it_is_given_up_each_by_its_own_age() -> None:
    old, young = waiting(1, created_at=T0 - GIVE_UP), waiting(2, created_at=T0 - GIVE_UP + SECOND)
    found = results(Parcel((old, young)), Answer(False, "x" * 1_000), T0)
    assert [(one.fate, one.together) for one in found] == [(Fate.FAILED, 2), (Fate.WAITING, 2)]
    assert all(one.error is not None and len(one.error) <= 300 for one in found)


def test_a_channel_fails_since_its_first_failure_and_until_it_takes_something() -> None:
    failed = stands(Standing(), [Answer(False, "first")], T0)
    assert (failed.failing_since, failed.error) == (T0, "first")
    again = stands(failed, [Answer(True), Answer(False, "second")], T0 + SECOND)
    assert (again.failing_since, again.error) == (T0, "second")
    well = stands(again, [Answer(True, "ok")], T0 + 2 * SECOND)
    assert (well.failing_since, well.error, well.answered_at) == (None, None, T0 + 2 * SECOND)
    assert budget(well.pace, T0 + 2 * SECOND) == AT_ONCE - 4
