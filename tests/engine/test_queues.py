"""Queues as nodes serve them: each in its turn, and as fast as its rate says, though loops turn once a second."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from scheduler.core.commands import Accepted, RunRequest
from scheduler.store.store import SqlStore
from tests.engine.rig import Rig, jobs

SECOND = timedelta(seconds=1)


def ask(rig: Rig, job: str, count: int) -> list[Accepted]:
    answers = rig.desk.ask([RunRequest(job, "me") for _ in range(count)])
    accepted = [one for one in answers if isinstance(one, Accepted)]
    assert len(accepted) == count
    return accepted


def end_one(rig: Rig) -> None:
    """The oldest of what it runs; its place is taken again in the same tick."""
    rig.executor.finish(next(iter(rig.executor.live)))
    rig.worker.tick(rig.store.now())


def another(rig: Rig) -> Rig:
    """A further node on the same database."""
    other = Rig(rig.store._store, rig.text, rig.clock, slots=rig.slots, start=False)
    other.reloader.start(other.load(), author="start", node=other.node)
    other.register()
    return other


def began(rig: Rig) -> list[str]:
    """The jobs of the attempts that it started, in order."""
    return [launch.job.name for launch in rig.executor.started]


def live_through(seconds: float, *rigs: Rig) -> None:
    """Nodes that turn every second, and whose workers turn when they asked for it. What runs ends at once, so that no
    place is waited for, but asks for no turn."""
    clock = rigs[0].clock
    end = clock.monotonic() + seconds
    regular = clock.monotonic() + 1
    while True:
        asked = [rig.wakes_at for rig in rigs if rig.wakes_at is not None]
        following = min(regular, *asked) if asked else regular
        if following > end:
            return
        if following > clock.monotonic():
            clock.turn(seconds=following - clock.monotonic())
        for rig in rigs:
            if rig.wakes_at is not None and rig.wakes_at <= clock.monotonic():
                rig.wakes_at = None
                rig.worker.tick(rig.store.now())
        if following == regular:
            regular += 1
            for rig in rigs:
                rig.keeper.tick(rig.store.now())
                rig.worker.tick(rig.store.now())
        for rig in rigs:
            rig.executor.finish_all()


def wakes_in(rig: Rig) -> float | None:
    """Seconds until its worker turns because it asked for that; None: it did not."""
    return None if rig.wakes_at is None else rig.wakes_at - rig.clock.monotonic()


def starts(rig: Rig) -> list[datetime]:
    return sorted(run.started_at for run in rig.runs() if run.started_at is not None)


def most_within(times: list[datetime], span: timedelta) -> int:
    return max(sum(first <= one < first + span for one in times) for first in times)


# ------------------------------------------------------------ turns


def test_a_backlog_in_one_queue_does_not_hold_up_another(store: SqlStore) -> None:
    """The places are taken, and become free one at a time."""
    text = jobs(
        {"load": {"queue": "bulk"}, "tick": {"schedule": "* * * * *", "queue": "default"}},
        queues={"bulk": {"concurrency": 64}},
    )
    rig = Rig(store, text, slots=4)
    ask(rig, "load", 40)
    rig.tick()
    for _ in range(3):
        rig.tick(minutes=1)
        end_one(rig)
        assert began(rig)[-1] == "tick"
        for _ in range(4):  # that one is the last of them
            end_one(rig)
            assert began(rig)[-1] == "load"
    assert rig.statuses("tick") == ["COMPLETED"] * 3


def test_every_queue_has_its_turn_on_every_node(store: SqlStore) -> None:
    """A backlog of low priority is not starved by a stream of urgent runs in another queue, either."""
    text = jobs(
        {"slow": {"queue": "z-backlog", "priority": -9}, "urgent": {"queue": "a-stream", "priority": 9}},
        queues={"z-backlog": {}, "a-stream": {}},
    )
    rigs = [first := Rig(store, text, slots=1), another(first)]
    ask(rigs[0], "slow", 30)
    ask(rigs[0], "urgent", 10)
    for rig in rigs:
        rig.tick()
    for _ in range(10):
        ask(rigs[0], "urgent", 2)
        for rig in rigs:
            end_one(rig)
    for rig in rigs:
        assert all(one != other for one, other in pairwise(began(rig)))


# ------------------------------------------------------------ rates


def limited(rate: str, **more: object) -> str:
    return jobs({"call": {"queue": "api"}, "other": {}}, queues={"api": {"rate": rate, **more}})


@pytest.mark.parametrize(("rate", "count", "seconds"), [("10/s", 60, 6.0), ("120/m", 40, 20.0), ("45/m", 15, 20.0)])
def test_a_queue_is_as_fast_as_its_rate(store: SqlStore, rate: str, count: int, seconds: float) -> None:
    """Also where tokens come between two turns, and a bucket of one cannot keep the second."""
    rig = Rig(store, limited(rate))
    asked = ask(rig, "call", count)
    begun = rig.store.now()
    rig.tick()
    rig.executor.finish_all()
    live_through(seconds, rig)
    times = starts(rig)
    assert len(times) == count
    for number, one in enumerate(asked):
        began_after = (times[number] - begun).total_seconds()
        assert began_after == pytest.approx(number * seconds / count, abs=0.001)
        assert one.wait == pytest.approx(began_after, abs=0.1), "what was said when it was asked for"
    assert wakes_in(rig) is None, "nothing is waited for any more"


@pytest.mark.parametrize(("rate", "per_second", "burst"), [("120/m", 2.0, 1), ("90/m", 1.5, 5)])
def test_nodes_together_are_never_faster_than_the_rate(
    store: SqlStore, rate: str, per_second: float, burst: int
) -> None:
    rigs = [first := Rig(store, limited(rate, burst=burst)), another(first)]
    wanted = int(65 * per_second) + burst
    ask(rigs[0], "call", wanted)
    for rig in rigs:
        rig.tick()
        rig.executor.finish_all()
    live_through(65, *rigs)
    times = starts(rigs[0])
    assert 60 * per_second <= most_within(times, timedelta(seconds=60)) <= 60 * per_second + burst
    assert len(times) == wanted


def test_a_worker_is_not_woken_for_what_it_cannot_take(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, limited("4/s"), slots=2)
    rig.tick(seconds=1)
    assert wakes_in(rig) is None
    ask(rig, "other", 1)
    ask(rig, "call", 3)
    rig.tick()
    assert sorted(began(rig)) == ["call", "other"]  # it is full
    assert wakes_in(rig) is None
    end_one(rig)
    assert wakes_in(rig) == 0.25
    rig.wakes_at = None
    rig.worker.accepting = False
    rig.tick(seconds=1)
    assert wakes_in(rig) is None


def test_time_that_a_turn_has_taken_is_part_of_the_wait(sqlite: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig(sqlite, limited("4/s"))
    ask(rig, "call", 3)
    claim = rig.worker.claim

    def slowly(freed: int = 0) -> object:
        rig.clock.turn(seconds=0.1)
        return claim(freed)

    monkeypatch.setattr(rig.worker, "claim", slowly)
    rig.worker.tick(rig.store.now())
    assert wakes_in(rig) == pytest.approx(0.05)


def test_without_a_rate_nobody_asks_for_tokens(sqlite: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig(sqlite, jobs({"call": {"queue": "api"}}, queues={"api": {"concurrency": 1}}))
    monkeypatch.setattr("scheduler.store.queues.SqlQueues.next_token", lambda *_: pytest.fail("it was asked"))
    ask(rig, "call", 3)
    rig.tick()
    assert len(began(rig)) == 1
    assert wakes_in(rig) is None


@pytest.mark.parametrize("hours", [-1, 1])
@pytest.mark.parametrize("seen", [True, False])
def test_a_queue_goes_on_when_the_clock_is_set(store: SqlStore, hours: int, seen: bool) -> None:
    """Whether a daemon saw the step or was not there."""
    rig = Rig(store, limited("60/m"))
    ask(rig, "call", 20)
    rig.tick()
    live_through(4, rig)
    assert len(starts(rig)) == 5
    rig.clock.step(hours=hours)
    if not seen:
        rig.clock.asleep += hours * 3600  # so the keeper does not know
    live_through(5, rig)
    assert 9 <= len(starts(rig)) <= 11
