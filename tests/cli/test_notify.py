"""`schedctl notify`: who was told what, and whether a channel works."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from scheduler.core.channel import Answer
from scheduler.core.notification import Fate, Result
from scheduler.core.tiding import Entry, Kind, Tiding
from scheduler.store.store import SqlStore
from tests.cli.screen import Screen
from tests.faces import Faces, Served

TEXT = """
defaults: {timezone: America/New_York}
notify:
  ops: {url: {env: OPS_URL}}
  mail: {http: {url: "https://mail.example.com/hook"}}
jobs:
  report: {command: "true", notify: [ops, mail]}
"""
SAID = {"ops": Answer(True, "200 OK: fine"), "mail": Answer(False, "404 Not Found")}


@pytest.fixture
def served(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setenv("TZ", "Europe/Paris")
    monkeypatch.setenv("OPS_URL", "json://secret-host")
    faces = Faces(store, TEXT)
    faces.backend = replace(faces.backend, try_channel=lambda name: SAID[name])
    with faces.served() as found:
        yield found


@pytest.fixture
def told(screen: Screen) -> Screen:
    """One that was sent, one that is tried again, one that was given up."""
    store, now = screen.rig.store, screen.rig.clock.now()
    kinds = (Kind.MISSED, Kind.SCAN_OVERDUE, Kind.FAILING)
    entries = [Entry("mail", Tiding(kind, "report", now, f"flip:{kind}")) for kind in kinds]
    with store.begin() as tx:
        tx.notifications.put(entries, now)
        standing = tx.notifications.take("mail", screen.rig.node, now, now)
        ids = [one.id for one in tx.notifications.waiting("mail", 10)]
        later = screen.rig.clock.turn(seconds=30)
        results = (
            Result(ids[0], Fate.SENT, now, None, 3),
            Result(ids[1], Fate.WAITING, later, "404 Not Found"),
            Result(ids[2], Fate.FAILED, now, "404 Not Found"),
        )
        failing = replace(standing, failing_since=now, error="404 Not Found", answered_at=now)
        assert tx.notifications.give_back("mail", screen.rig.node, failing, results, now)
    return screen


def test_a_test_says_what_the_channel_said_and_ends_with_it(screen: Screen) -> None:
    assert screen("notify", "test", "ops") == ["✓ ops: 200 OK: fine"]
    assert screen.code == 0
    assert screen("notify", "test", "mail") == ["✗ mail: 404 Not Found"]
    assert screen.code == 1
    assert screen.next == "schedctl show 'channel mail'"
    assert screen.json("notify", "test", "mail") == {"channel": "mail", "ok": False, "said": "404 Not Found"}
    assert screen.code == 1


def test_a_channel_that_there_is_not_is_4_with_what_was_meant(screen: Screen) -> None:
    assert screen("notify", "test", "mial") == []
    assert screen.code == 4
    assert "did you mean mail?" in screen.err


def test_channels_and_what_they_were_told_are_listed(told: Screen) -> None:
    lines = told("notify")
    assert [line.split()[0] for line in lines if line.strip()][:4] == ["CHANNEL", "ops", "mail", "ANNOUNCED"]
    assert len(lines) == 8
    text = "\n".join(lines)
    assert "not used yet" in text
    assert "✗ 404 Not Found (since 30s ago)" in text
    assert "given up after 1 attempt: 404 Not Found" in text
    assert "scan overdue" in text
    assert "✓ sent with 2 others" in text
    assert told.next == "schedctl notify test mail"


def test_the_list_can_be_narrowed(told: Screen) -> None:
    assert len(told.json("notify", "list", "--status", "failed")["notifications"]) == 1
    assert len(told.json("notify", "--channel", "mail", "-n", "2")["notifications"]) == 2
    assert told.json("notify", "--channel", "ops")["notifications"] == []
    assert told.json("notify", "--job", "nobody")["notifications"] == []
    (waiting,) = told.json("notify", "--status", "waiting")["notifications"]
    assert (waiting["kind"], waiting["attempts"], waiting["error"]) == ("scan_overdue", 1, "404 Not Found")
    assert told("notify", "-o", "name") == ["ops", "mail"]


def test_status_tells_of_a_channel_by_which_nobody_is_told(told: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPS_URL")
    text = "\n".join(told("status"))
    assert "channel mail tells nobody: 404 Not Found; 1 notification waiting" in text
    assert "channel ops tells nobody: url: the variable `OPS_URL` is not defined" in text
    assert told.code == 1


def test_without_channels_there_is_nothing_to_list(store: SqlStore, capsys: pytest.CaptureFixture[str]) -> None:
    with Faces(store).served() as served:
        screen = Screen(served, capsys)
        capsys.readouterr()
        assert screen("notify") == []
        assert "there is no channel" in screen.err


def test_no_answer_holds_a_secret(told: Screen) -> None:
    for words in (("notify",), ("show",), ("show", "channel ops"), ("status",)):
        assert "secret-host" not in "\n".join(told(*words)) + told.err
