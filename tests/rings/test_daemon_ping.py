"""The daemon's own ping: once a minute that all is well, or why it is not."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from scheduler.core.ping import DAEMON
from scheduler.engine.daemon_ping import DaemonPing
from scheduler.engine.targets import Targets
from scheduler.observe.pinging import Sender
from tests.engine.doubles import TurnedClock
from tests.rings.healthchecks import Healthchecks, healthchecks


class Pinging:
    """One that turns every second of a turned clock, against a real service."""

    def __init__(self, service: Healthchecks) -> None:
        self.service = service
        self.check = service.check()
        self.clock = TurnedClock()
        self.targets = Targets()
        self.reasons: list[str] = []
        self.leaving = False
        self.ping = DaemonPing(
            service.ping_url(self.check),
            lambda: list(self.reasons),
            lambda: self.leaving,
            Sender("schedulerd/test", 5.0),
            self.clock,
            self.targets,
        )

    def seconds(self, count: int) -> None:
        for _ in range(count):
            self.ping.tick(self.clock.now())
            while self.ping._busy and self.ping._answers.empty():
                threading.Event().wait(0.002)
            self.clock.turn(seconds=1)

    def kinds(self) -> list[str]:
        return [one.kind for one in self.service.of(self.check)]


@pytest.fixture
def pinging() -> Iterator[Pinging]:
    with healthchecks() as service:
        yield Pinging(service)


def test_once_a_minute_that_all_is_well(pinging: Pinging) -> None:
    pinging.seconds(181)
    assert pinging.kinds() == ["success"] * 4
    assert (pinging.check.flips, pinging.service.heard[0].rid) == (["new-up"], None)
    assert pinging.targets.standings(frozenset({DAEMON}))[DAEMON].failures == 0


def test_what_is_wrong_is_told_instead(pinging: Pinging) -> None:
    pinging.seconds(30)
    pinging.reasons = ["no turn for 30 s: planner", "the database does not answer: it is locked"]
    pinging.seconds(60)
    assert pinging.check.status == "down"
    assert pinging.service.heard[-1].body.decode() == "\n".join([*pinging.reasons, ""])
    pinging.reasons = []
    pinging.seconds(60)
    assert pinging.check.flips == ["new-up", "up-down", "down-up"]


@pytest.mark.parametrize("trouble", ["reset", 500])
def test_one_that_is_not_taken_is_tried_again(pinging: Pinging, trouble: str | int) -> None:
    pinging.service.fall(trouble)
    pinging.seconds(15)
    pinging.service.recover()
    pinging.seconds(10)
    assert pinging.kinds() == ["success"]
    assert pinging.service.refused == 2
    standing = pinging.targets.standings(frozenset({DAEMON}))[DAEMON]
    assert (standing.failures, standing.failing_since) == (2, None)


def test_a_service_that_is_away_is_asked_thrice_a_minute_and_told_of(pinging: Pinging) -> None:
    pinging.service.fall("reset")
    pinging.seconds(241)
    assert 12 <= pinging.service.refused <= 13
    (remark,) = pinging.targets.remarks(pinging.clock.now())
    assert (remark.about, remark.command) == ("ping", None)
    assert "SCHEDULER_PING_URL" in remark.what
    assert pinging.check.code not in remark.what


def test_a_retry_tells_how_it_is_then(pinging: Pinging) -> None:
    pinging.service.fall(503)
    pinging.seconds(5)
    pinging.service.recover()
    pinging.reasons = ["the canary has not come through for 4 min: its run waits and nobody claims it"]
    pinging.seconds(10)
    assert pinging.kinds() == ["fail"]


def test_a_node_that_leaves_falls_silent(pinging: Pinging) -> None:
    pinging.leaving = True
    pinging.seconds(130)
    assert pinging.service.heard == []


def test_a_silent_service_does_not_hold_up_the_loop(pinging: Pinging) -> None:
    pinging.service.fall("silent")
    assert pinging.ping.tick(pinging.clock.now()) == 1
    pinging.service.wait_refused(1)
    for _ in range(200):
        pinging.clock.turn(seconds=1)
        assert pinging.ping.tick(pinging.clock.now()) == 0, "one at a time"
    pinging.service.recover()


def test_what_the_sender_raises_is_a_failure(pinging: Pinging) -> None:
    def broken(url: str, body: bytes) -> object:
        raise RuntimeError(url)

    pinging.ping._send = broken  # type: ignore[assignment]
    pinging.seconds(3)
    standing = pinging.targets.standings(frozenset({DAEMON}))[DAEMON]
    assert "RuntimeError" in standing.reason
    assert pinging.check.code not in standing.reason
