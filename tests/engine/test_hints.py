"""What is worth a word to other nodes, and what their words do."""

from __future__ import annotations

import pytest

from scheduler.core.hints import ALL, CANCEL, CONFIGURATION, POLLING, SETTLED, WORK, Hearing, Word
from scheduler.core.notices import Bus
from scheduler.engine.hints import HINTED, Hints


class FakeEar:
    hearing = Hearing(POLLING, "it snows")

    def __init__(self) -> None:
        self.rung = 0
        self.running = False

    def start(self) -> None:
        self.running = True

    def stop(self) -> None:
        self.running = False

    def ring(self) -> None:
        self.rung += 1


class Rig:
    def __init__(self) -> None:
        self.alone = False
        self.takes_all = True
        self.poked: list[str] = []
        self.bus = Bus()
        self.ear = FakeEar()
        self.hints = Hints(lambda: self.alone, lambda: self.takes_all, self.poked.append)
        self.bus.subscribe(self.hints.notice, *HINTED)
        self.hints.start(self.ear)


@pytest.mark.parametrize(
    ("notice", "words"),
    [
        ("run.planned", {WORK}),
        ("run.settled", {SETTLED, WORK}),
        ("run.cancel_asked", {CANCEL}),
        ("config.loaded", {CONFIGURATION}),
        ("job.resumed", {WORK}),
        ("run.started", set()),
    ],
)
def test_what_makes_work_for_others_is_said(notice: str, words: set[str]) -> None:
    rig = Rig()
    rig.takes_all = False
    rig.bus.publish(notice, run="r", job="j")
    assert rig.ear.rung == bool(words)
    assert set(rig.hints.said()) == words
    assert set(rig.hints.said()) == set()  # Once.


def test_work_that_this_node_takes_is_not_worth_a_word() -> None:
    rig = Rig()
    rig.bus.publish("run.planned", run="r", job="j")
    assert set(rig.hints.said()) == set()


def test_whether_it_takes_all_is_judged_when_it_would_be_said() -> None:
    rig = Rig()
    rig.bus.publish("run.claimed", run="r", job="j")
    rig.takes_all = False
    assert set(rig.hints.said()) == {WORK}


def test_many_notices_are_one_word() -> None:
    rig = Rig()
    for _ in range(1000):
        rig.bus.publish("run.settled", run="r", job="j")
    assert rig.ear.rung == 1


def test_a_node_alone_says_nothing() -> None:
    rig = Rig()
    rig.takes_all, rig.alone = False, True
    rig.bus.publish("run.settled", run="r", job="j")
    assert set(rig.hints.said()) == set()


def test_what_is_heard_has_the_loops_look() -> None:
    rig = Rig()
    told: list[int] = []
    rig.hints.when_settled(lambda: told.append(1))
    rig.hints.heard({WORK, CANCEL})
    assert (rig.poked, told) == (["worker"], [])
    rig.hints.heard(ALL)
    assert (sorted(rig.poked[1:]), told) == (["keeper", "worker"], [1])


def test_what_a_node_tells_of_itself() -> None:
    rig = Rig()
    assert rig.hints.word("too old") == Word("polling: it snows", "too old")
    rig.hints.stop()
    assert not rig.ear.running
    assert Hints(lambda: True, lambda: True, rig.poked.append).word(None) == Word(None, None)
