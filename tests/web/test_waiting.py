"""Who waits for a run hears of it from this process, and of all runs when some have ended on other nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from scheduler.core.notices import Bus
from scheduler.web.waiting import RunWatch


def test_only_who_waits_for_that_run_hears_of_it() -> None:
    async def wait() -> tuple[bool, bool]:
        bus = Bus()
        watch = RunWatch(bus, lambda tell: None)
        with watch.watch("one") as one, watch.watch("two") as two:
            bus.publish("run.settled", run="one", job="j")
            await asyncio.wait_for(one.wait(), 5)
            return one.is_set(), two.is_set()

    assert asyncio.run(wait()) == (True, False)


def test_everybody_hears_that_runs_have_ended_elsewhere() -> None:
    async def wait() -> bool:
        told: list[Callable[[], None]] = []
        watch = RunWatch(Bus(), told.append)
        told[0]()  # Nobody waits.
        with watch.watch("one") as one, watch.watch("two") as two:
            await asyncio.to_thread(told[0])
            await asyncio.wait_for(asyncio.gather(one.wait(), two.wait()), 5)
            return one.is_set() and two.is_set()

    assert asyncio.run(wait())
