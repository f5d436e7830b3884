"""Runs that wait behind a dead letter of their subject: said wherever they, or it, are shown."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from scheduler.core.model import FailReason
from scheduler.core.outcome import Failed
from scheduler.store.store import SqlStore
from tests.cli.screen import Screen
from tests.engine.doubles import START
from tests.engine.senders import event, subscribed, told
from tests.faces import Faces, Served

HOLD = {"source": "payments", "order": "subject", "on_dead": "hold"}


@pytest.fixture
def served(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setenv("TZ", "UTC")
    with Faces(store, subscribed({"ticket": {"on_event": HOLD, "retries": 0}})).served() as found:
        yield found


@pytest.fixture
def letter(screen: Screen) -> str:
    """The dead letter of order `a`, behind which two runs wait; of order `b` there is one, behind which none waits."""
    rig = screen.rig
    for number, about in enumerate("aaab"):
        told(rig, event(f"e{number}", subject=about, occurred_at=START + timedelta(minutes=number)))
    rig.tick()
    rig.finish(Failed(FailReason.EXIT, "exit code 3", exit_code=3, retryable=False))
    rig.tick(seconds=1)
    assert rig.statuses("ticket") == ["FAILED", "PENDING", "PENDING", "FAILED"]
    return rig.runs("ticket")[0].id


def test_what_waits_says_for_which_letter(screen: Screen, letter: str) -> None:
    short = letter[-8:]
    lines = screen("runs", "ticket")
    assert sum(f"waits until dead letter {short} is retried or discarded" in line for line in lines) == 2
    assert f"schedctl dead-letters retry {short} or schedctl dead-letters discard {short}" in screen.err
    waiting = screen.rig.runs("ticket")[1].id
    assert f"waits until dead letter {short} is retried or discarded" in screen("runs", waiting)[0]
    assert screen.next == f"schedctl dead-letters retry {short}"
    found = screen.json("runs", waiting)["waiting"]
    assert (found["kind"], found["holder_run"], found["holder_dead"]) == ("lock", letter, True)


def test_the_letter_says_how_many_wait_for_it(screen: Screen, letter: str) -> None:
    other, mine = screen("dead-letters")[1:]
    assert "exit 3; 2 runs wait behind it" in mine
    assert "behind it" not in other
    assert screen.next == f"schedctl dead-letters retry {letter[-8:]}"
    assert [one["holds_up"] for one in screen.json("dead-letters")] == [0, 2]


def test_status_says_so_until_it_is_let_go(screen: Screen, letter: str) -> None:
    text = "\n".join(screen("status"))
    assert "2 dead letters, behind which 2 runs wait until somebody retries or discards them" in text
    assert "dead-letters list --job ticket" in text
    screen("dead-letters", "discard", letter)
    text = "\n".join(screen("status"))
    assert "1 dead letter" in text
    assert "behind" not in text


def test_a_run_that_only_runs_is_no_letter(screen: Screen, letter: str) -> None:
    screen("dead-letters", "discard", letter)
    screen.rig.tick()
    waiting = screen.rig.runs("ticket")[2].id
    assert screen.json("runs", waiting)["waiting"]["holder_dead"] is False
    assert "dead letter" not in screen("runs", waiting)[0]
