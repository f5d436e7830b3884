"""When a pool starts a further process: a machine with two cores is no faster with fifty of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from scheduler.executors.workers import roster
from scheduler.executors.workers.roster import LONGEST_WAIT, PATIENCE, Roster
from scheduler.executors.workers.worker import Place, Task, Worker

PLACE = Place("/")


@dataclass
class Clock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def crew(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Roster]:
    """Two workers, both busy and heard of, and a line of a hundred."""
    monkeypatch.setattr(roster, "STARTING", 2)
    crew = Roster("call", 1, clock)
    for number in range(102):
        crew.wait(Task(f"run-{number}", "node", PLACE, {}, 1.0, lambda answer: None))
    for _ in range(2):
        given = crew.assign(PLACE)
        assert given is not None
        given[0].ready = True
    assert len(crew.workers) == 2
    yield crew
    for worker in crew.workers:
        worker.words.close()


def _answers(crew: Roster, worker: Worker) -> None:
    """It has done what it had."""
    for task in list(worker.tasks.values()):
        crew.forget(worker, task)


def test_quick_tasks_are_left_to_those_that_are_there(crew: Roster, clock: Clock) -> None:
    for turn in range(90):
        clock.now += 0.001
        _answers(crew, crew.workers[turn % 2])
        assert crew.assign(PLACE) is not None
        assert crew.assign(PLACE) is None
    assert len(crew.workers) == 2


def test_long_tasks_bring_further_ones(crew: Roster, clock: Clock) -> None:
    assert crew.assign(PLACE) is None
    clock.now += PATIENCE * 0.9
    assert crew.assign(PLACE) is None
    clock.now += PATIENCE * 0.2
    assert [crew.assign(PLACE) is not None for _ in range(3)] == [True, True, False]
    assert len(crew.workers) == 4


def test_nobody_waits_long_behind_tasks_that_are_not_quite_short(crew: Roster, clock: Clock) -> None:
    until = clock.now + LONGEST_WAIT
    while clock.now < until - 0.01:
        clock.now += 0.01
        _answers(crew, crew.workers[0])
        assert crew.assign(PLACE) is not None
        assert len(crew.workers) == 2
    clock.now = until + 0.001
    assert crew.assign(PLACE) is not None
    assert len(crew.workers) == 3
