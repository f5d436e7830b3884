"""Waiting without a daemon around it: how often, and what is said."""

from __future__ import annotations

import os
import signal

import pytest
from structlog.testing import capture_logs

from scheduler import patience
from scheduler.core.errors import StartError, Unavailable


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "WAITS", (0.001, 0.002))


def test_one_outage_is_said_once_and_its_end_too() -> None:
    answers = [Unavailable("away"), Unavailable("away"), Unavailable("starting"), 7]
    said: list[str] = []
    reasons: list[str | None] = []

    def work() -> int:
        reasons.append(one.reason)
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    with patience.Patience(said.append) as one, capture_logs() as logs:
        assert one.until_done(work) == 7
    assert [line["event"] for line in logs] == ["database_awaited", "database_awaited", "database_answers"]
    assert said == ["Waiting: away", "Waiting: starting"]
    assert reasons == [None, "away", "away", "starting"]
    assert one.reason is None


def test_what_no_waiting_helps_comes_out_at_once() -> None:
    def work() -> None:
        raise StartError("wrong")

    with patience.Patience(print) as one, pytest.raises(StartError):
        one.until_done(work)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_and_handlers_are_put_back(number: signal.Signals) -> None:
    before = signal.getsignal(number)

    def work() -> None:
        os.kill(os.getpid(), number)
        raise Unavailable("away")

    with patience.Patience(print) as one, pytest.raises(patience.ToldToStop):
        one.until_done(work)
    assert one.told
    assert signal.getsignal(number) is before
