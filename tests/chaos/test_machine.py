"""When a machine counts as overloaded."""

from __future__ import annotations

import pytest

from tests.chaos.machine import CROWDED, WINDOW, Crowd


def _spans(waits: list[float], step: float = 0.1) -> list[tuple[float, float]]:
    """What is found where so much of each step was waited."""
    crowd, found, waited = Crowd(), [], 0.0
    for number, share in enumerate([*waits, *[0.0] * 60]):
        if (span := crowd.over(number * step, waited)) is not None:
            found.append(span)
        waited += share * step
    return found


@pytest.mark.parametrize("begin", [30, 33, 37, 41, 49])
def test_a_crowd_is_found_wherever_it_begins(begin: int) -> None:
    ((first, last),) = _spans([0.0] * begin + [1.0] * 25)
    assert first <= begin * 0.1 + 0.1
    assert first >= begin * 0.1 - (1 - CROWDED) * WINDOW - 0.1
    assert begin * 0.1 + 2.4 <= last <= begin * 0.1 + 2.5 + (1 - CROWDED) * WINDOW + 0.1


def test_a_short_crowd_is_none() -> None:
    assert _spans([0.0] * 30 + [1.0] * 13) == []


def test_two_crowds_are_two() -> None:
    assert len(_spans([0.0] * 30 + [1.0] * 25 + [0.0] * 60 + [1.0] * 25)) == 2
