"""Hosts the loops: APScheduler calls their ticks, the main thread serves signals and whatever only it may do.

An interval of one second makes every loop complete; requests and a date job at the earliest `next_due_at` make them
prompt. APScheduler waits by the wall clock, so the main thread watches that against the monotonic clock and sends
every loop at once when the wall clock was set.
"""

from __future__ import annotations

import queue
import signal
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from types import FrameType

import structlog
from apscheduler.executors.pool import BasePoolExecutor
from apscheduler.jobstores.base import JobLookupError
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.base import BaseTrigger

from scheduler.core.errors import Unavailable
from scheduler.core.execution import Clock
from scheduler.engine.loop import Loop

log = structlog.get_logger("engine")

INTERVAL = 1.0
ROUND = 0.5
"""Seconds between two looks of the main thread."""
SET = 0.25
"""The wall clock was set if it moves this many seconds against the monotonic one within a round."""


class Steadily(BaseTrigger):  # type: ignore[misc]  # APScheduler has no types.
    """Every `interval`, without a debt: after a suspend or a step of the clock the next turn is the first that lies
    ahead. APScheduler's own interval trigger lists every turn that was missed, 86,400 per loop for a day."""

    def __init__(self, interval: timedelta) -> None:
        self._interval = interval

    def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime:
        if previous_fire_time is None:
            return now
        turns = max(0, (now - previous_fire_time) // self._interval)
        return previous_fire_time + (turns + 1) * self._interval


class _Threads(BasePoolExecutor):  # type: ignore[misc]  # APScheduler has no types.
    """APScheduler's way to threads that others use, too."""

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        super().__init__(threads)


class Daemon:
    """`loops` by name; `ahead` tells of some of them when they must look again (None: nothing to come)."""

    def __init__(
        self,
        loops: Mapping[str, Loop],
        clock: Clock,
        ahead: Mapping[str, Callable[[], datetime | None]],
    ) -> None:
        self._loops = loops
        self._clock = clock
        self._ahead = ahead
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._threads = ThreadPoolExecutor(2 * len(loops) + 2, thread_name_prefix="loops")
        self._scheduler = BackgroundScheduler(
            timezone=UTC,
            executors={"default": _Threads(self._threads)},
            job_defaults={"coalesce": True, "max_instances": 16, "misfire_grace_time": None},
        )

    def start(self) -> None:
        for name in self._loops:
            steadily = Steadily(timedelta(seconds=INTERVAL))
            turn = self._work(name, self._loops[name].turn)
            self._scheduler.add_job(turn, steadily, id=name, next_run_time=datetime.now(UTC))
        self._scheduler.start()

    def poke(self, name: str) -> None:
        """A tick of that loop, soon; requests that come before it begins are one."""
        if self._loops[name].request() and self._scheduler.running:
            with suppress(RuntimeError):  # It is being shut down.
                self._threads.submit(self._asked(name))

    def poke_later(self, name: str, delay: timedelta) -> None:
        """A tick of that loop after so long; of several requests the last counts."""
        when = self._clock.now() + delay
        with suppress(RuntimeError):  # It is being shut down.
            self._scheduler.add_job(self._asked(name), "date", run_date=when, id=f"{name}-again", replace_existing=True)

    def post(self, work: Callable[[], None]) -> None:
        """Has the main thread do it; from any thread or signal handler."""
        self._inbox.put(work)

    def on_signal(self, number: signal.Signals, work: Callable[[], None]) -> None:
        def handler(_number: int, _frame: FrameType | None) -> None:
            self._inbox.put(work)

        signal.signal(number, handler)

    def serve(self, until: Callable[[], bool]) -> None:
        """The main thread's loop: does what is posted and watches the clock, until `until()`."""
        wall, monotonic = self._clock.now(), self._clock.monotonic()
        while not until():
            try:
                work = self._inbox.get(timeout=ROUND)
            except queue.Empty:
                pass
            else:
                work()
            now, then = self._clock.now(), self._clock.monotonic()
            if abs((now - wall).total_seconds() - (then - monotonic)) > SET:
                self._catch_up_with_clock()
            wall, monotonic = now, then

    def shutdown(self) -> None:
        """Ends when no tick is under way and none will begin. APScheduler must not wait for its threads itself: it
        would hold a lock meanwhile which a tick needs that looks ahead."""
        self._scheduler.shutdown(wait=False)
        for loop in self._loops.values():
            loop.close()

    def _asked(self, name: str) -> Callable[[], None]:
        return self._work(name, self._loops[name].run)

    def _work(self, name: str, work: Callable[[], None]) -> Callable[[], None]:
        return partial(self._work_and_look_ahead, name, work) if name in self._ahead else work

    def _work_and_look_ahead(self, name: str, work: Callable[[], None]) -> None:
        work()
        try:
            due = self._ahead[name]()
        except Unavailable:
            return  # The tick has said so; the next one is a second away.
        if due is None:
            return
        ahead = due - self._clock.now()
        if timedelta(0) < ahead < timedelta(seconds=2 * INTERVAL):
            self._scheduler.add_job(self._asked(name), "date", run_date=due, id=f"{name}-next", replace_existing=True)

    def _catch_up_with_clock(self) -> None:
        for job in self._scheduler.get_jobs():
            with suppress(JobLookupError):  # A job for one moment may have run since.
                job.modify(next_run_time=datetime.now(UTC))
