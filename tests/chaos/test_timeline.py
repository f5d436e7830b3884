"""When instants fall due under a clock that is set."""

from __future__ import annotations

import pytest

from tests.chaos.log import Step
from tests.chaos.timeline import Timeline

AHEAD = Timeline([Step(999.9, 1000.0, 40.0), Step(1009.9, 1010.0, 0.0)])


@pytest.mark.parametrize(
    ("instant", "showings"),
    [
        (990, [990.0]),
        (1020, [1000.0]),  # It was set over this one, and long planned when it was set back.
        (1045, [1005.0]),
        (1048, [1008.0, 1048.0]),
        (1050, [1010.0 + 40.0]),
        (1060, [1060.0]),
    ],
)
def test_an_instant_that_need_not_have_been_planned_falls_due_again(instant: int, showings: list[float]) -> None:
    assert AHEAD.showings(instant, 3.0) == showings
    assert AHEAD.due(instant) == showings[0]


def test_a_clock_that_is_set_back_shows_nothing_twice_that_was_planned() -> None:
    back = Timeline([Step(999.9, 1000.0, -40.0), Step(1009.9, 1010.0, 0.0)])
    assert back.showings(995, 3.0) == [995.0]
    assert back.showings(999, 3.0) == [999.0, 1010.0]
