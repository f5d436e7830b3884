"""When a pool starts a further process: a machine with two cores is no faster with fifty of them."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from scheduler.executors.workers import roster
from scheduler.executors.workers.roster import PATIENCE, Roster
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
def crew(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Roster:
    """Two workers, both busy and heard of, and a line of a hundred."""
    monkeypatch.setattr(roster, "STARTING", 2)
    crew = Roster("call", 1, clock)
    for number in range(102):
        crew.wait(Task(f"run-{number}", "node", PLACE, {}, 1.0, lambda answer: None))
    given = [crew.assign(PLACE) for _ in range(2)]
    clock.now += 0.1
    for one in given:
        assert one is not None
        crew.heard(one[0])
    assert len(crew.workers) == 2
    return crew


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


def _worked_off(crew: Roster, clock: Clock, seconds: float, turns: int) -> None:
    """One of them comes back each so many seconds."""
    for turn in range(turns):
        clock.now += seconds
        _answers(crew, crew.workers[turn % 2])
        assert crew.assign(PLACE) is not None


def test_a_line_that_would_outlast_a_start_brings_a_further_one(crew: Roster, clock: Clock) -> None:
    _worked_off(crew, clock, 0.01, 5)
    assert crew.assign(PLACE) is not None
    assert len(crew.workers) == 3


def test_where_starting_takes_long_the_line_may_last_as_long(crew: Roster, clock: Clock) -> None:
    """Everything is slow on a busy machine, and a further process would make it slower."""
    crew.heard(_started(crew, clock, 3.0))
    _worked_off(crew, clock, 0.01, 60)
    assert crew.assign(PLACE) is None
    assert len(crew.workers) == 3


def test_what_a_new_process_was_given_begins_when_it_is_there(crew: Roster, clock: Clock) -> None:
    for number in range(10, 102):
        crew.withdraw(f"run-{number}")
    crew.heard(_started(crew, clock, 0.1))
    assert crew.assign(PLACE) is None
    clock.now += PATIENCE * 1.1
    assert crew.assign(PLACE) is not None


def _started(crew: Roster, clock: Clock, seconds: float) -> Worker:
    """A further worker, so long after its start that it says so now."""
    clock.now += PATIENCE * 1.1
    given = crew.assign(PLACE)
    assert given is not None
    assert not given[0].ready
    clock.now += seconds
    return given[0]
