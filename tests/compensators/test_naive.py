"""The hostile provider finds what naive scanners lose: if it did not, no test on it would mean anything. Beside each
stands a careful one over the same days, which loses nothing."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scheduler.testing.faults import Faults
from tests.compensators import naive
from tests.compensators.history import BEGIN, SETTLE, History, every

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
MARGIN = HOUR


class Careful:
    """From a margin before the watermark to what is old enough by the provider's clock, both ends included."""

    def __init__(self, world: History) -> None:
        self.world = world
        self.watermark = BEGIN + world.faults.clock

    def __call__(self) -> list[str]:
        end = self.world.facts.now() - SETTLE
        bounds = {"created[gte]": int((self.watermark - MARGIN).timestamp()), "created[lte]": int(end.timestamp())}
        found = [str(one["id"]) for one in naive.stripe_pages(self.world, **bounds)]
        self.watermark = max(self.watermark, end)
        return found


def world_of(faults: Faults, count: int = 400, length: timedelta = DAY) -> History:
    made = History(faults)
    made.happen(count, length)
    return made


def careful_loses_nothing(faults: Faults, at: list[timedelta], count: int = 400, length: timedelta = DAY) -> History:
    world = world_of(faults, count, length)
    world.run(Careful(world), at)
    assert not world.lost()
    return world


@pytest.mark.parametrize("behind", [-5 * MINUTE, 5 * MINUTE])
def test_a_watermark_of_our_own_clock(behind: timedelta) -> None:
    faults = Faults(drop=0.3, clock=behind, lag=MINUTE)
    at = every(30 * MINUTE, DAY)
    world = world_of(faults)
    world.run(naive.OwnClock(world), at)
    assert bool(world.lost()) == (behind < timedelta(0))
    careful_loses_nothing(faults, at)


def test_an_empty_page_is_no_accident() -> None:
    world = History(Faults())
    with pytest.raises(IndexError):
        world.run(naive.OwnClock(world), [HOUR])
    world.run(Careful(world), [HOUR])


def test_a_window_of_the_length_of_the_period_when_a_run_is_missed() -> None:
    faults = Faults(drop=0.3)
    at = every(DAY, 5 * DAY, without=[3])
    world = world_of(faults, length=5 * DAY)
    world.run(naive.LastDay(world), at)
    assert {one.at.day for one in world.lost()} == {3}
    careful_loses_nothing(faults, at, length=5 * DAY)


def test_listing_everything_each_time_costs_everything_each_time() -> None:
    faults = Faults(drop=0.3)
    at = every(2 * HOUR, 5 * DAY)
    world = world_of(faults, 1000, 5 * DAY)
    world.run(naive.Everything(world), at)
    careful = careful_loses_nothing(faults, at, 1000, 5 * DAY)
    assert world.lists.calls > 5 * careful.lists.calls


def test_windows_that_do_not_overlap() -> None:
    faults = Faults(drop=0.3, lag=2 * MINUTE)
    at = [one + timedelta(seconds=index % 3) for index, one in enumerate(every(15 * MINUTE, DAY))]
    world = world_of(faults, 2000)
    world.run(naive.Quarter(world), at)
    assert world.lost()
    careful_loses_nothing(faults, at, 2000)


def test_a_last_id_that_leaves_the_list() -> None:
    faults = Faults(drop=0.3, keeps=6 * HOUR)
    at = [HOUR, 2 * HOUR, *[one + 8 * HOUR for one in every(HOUR, 16 * HOUR)]]
    world = world_of(faults)
    with pytest.raises(LookupError, match="resource_missing"):
        world.run(naive.SinceId(world), at)
    world = world_of(faults)
    world.run(Careful(world), at)
    # Of what the provider forgot in between nobody can know; everything else is there.
    assert {one.at.hour for one in world.lost()} == {1, 2}


def test_a_silent_limit() -> None:
    faults = Faults(drop=0.3)
    at = every(6 * HOUR, DAY)
    world = world_of(faults)
    world.run(naive.Capped(world, 60), at)
    assert world.lost()
    careful_loses_nothing(faults, at)


def test_the_latest_time_that_was_seen() -> None:
    faults = Faults(drop=0.3, lag=2 * MINUTE, ties=0.6)
    at = [one + timedelta(seconds=7) for one in every(10 * MINUTE, DAY)]
    world = world_of(faults, 2000)
    world.run(naive.Newest(world), at)
    assert world.lost()
    careful_loses_nothing(faults, at, 2000)


def test_pages_by_number_while_the_list_moves() -> None:
    faults = Faults(drop=0.9, drift=0.5)
    world = world_of(faults, 300, HOUR)
    world.run(naive.ByNumber(world), [2 * HOUR])
    assert world.lost()
    still = world_of(Faults(drop=0.9), 300, HOUR)
    still.run(naive.ByNumber(still), [2 * HOUR])
    assert not still.lost()
