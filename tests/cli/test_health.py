"""What the screens say when something is wrong with the daemon itself, and how long runs took."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from scheduler.cli.main import run
from scheduler.cli.surface import Surface
from scheduler.cli.times import clock_note
from scheduler.cli.words import run_took
from scheduler.core.errors import Unavailable
from scheduler.core.model import Cause, Node
from scheduler.core.remark import Remark
from scheduler.store.store import SqlStore
from tests.cli.screen import Screen
from tests.engine.doubles import START


def test_status_says_of_the_daemon_what_since_when_and_what_to_type(screen: Screen) -> None:
    assert screen("status")[0].startswith("✓ all is well")
    screen.served.faces.said += [
        Remark("disk", "the disk of /state is full", START - timedelta(minutes=3), "df -h /state"),
        Remark("supervisor", "the supervisor does not answer"),
    ]
    lines = screen("status")
    assert screen.code == 1
    assert lines[0].startswith("✗ 2 things need attention")
    assert "✗ disk  the disk of /state is full, Mon 08:57 Europe/Paris (3m ago)" in lines
    assert lines[lines.index("✗ disk  the disk of /state is full, Mon 08:57 Europe/Paris (3m ago)") + 1] == (
        "    → df -h /state"
    )
    assert "✗ supervisor  the supervisor does not answer" in lines
    assert screen.err.endswith("next: df -h /state\n")
    assert screen("status", "-o", "name") == ["daemon", "daemon"]


def test_status_answers_while_the_database_is_away(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(store: SqlStore) -> Any:
        raise Unavailable("database pg: connection refused")

    screen.served.faces.said.append(
        Remark("database", "database pg: connection refused (keeper waits)", START, "schedctl db status")
    )
    monkeypatch.setattr(SqlStore, "queries", away)
    lines = screen("status")
    assert screen.code == 1
    assert "✗ database  pg: connection refused (keeper waits), Mon 09:00 Europe/Paris (now)" in lines
    assert "    → schedctl db status" in lines
    assert lines[-1] == "jobs, runs and nodes are unknown while the database cannot be read"
    assert screen.json("status")["jobs"] is None


def test_list_tells_what_is_due_and_not_planned(screen: Screen) -> None:
    screen.rig.turn(minutes=2)
    rows = {line.split()[0]: line for line in screen("list")}
    assert rows["minutely"].endswith("new"), "a minute late is late"
    screen.rig.turn(seconds=1)
    rows = {line.split()[0]: line for line in screen("list")}
    assert rows["minutely"].endswith("overdue")
    assert "`schedctl status` says what keeps the daemon from it" in screen.err
    assert screen("list", "--state", "overdue", "-o", "name") == ["minutely"]
    screen.rig.tick()
    assert not any(line.endswith("overdue") for line in screen("list"))


@pytest.mark.parametrize(
    ("ahead", "note"),
    [(4, None), (-4, None), (3600, "1h ahead of this machine's"), (-90, "1m30s behind this machine's")],
)
def test_clocks_that_differ(ahead: int, note: str | None) -> None:
    said = clock_note((START + timedelta(seconds=ahead)).isoformat(), START)
    assert (said is None) == (note is None)
    assert note is None or note in str(said)


@pytest.mark.parametrize("verb", ["list", "status"])
def test_list_and_status_say_that_the_clocks_differ(
    screen: Screen, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    screen(verb)
    assert "clock" not in screen.err
    surface = Surface({"SCHEDULER_SOCKET": str(screen.served.socket)})
    surface.now = lambda: START + timedelta(hours=1)
    run([verb], surface)
    assert "the daemon's clock is 1h behind this machine's" in capsys.readouterr().err


def test_run_now_says_when_nobody_will_start_the_run(screen: Screen) -> None:
    screen.served.faces.holdup = "this node is leaving"
    screen("run-now", "ticket")
    assert "nobody will start it for the time being: this node is leaving" in screen.err
    assert "ticket: accepted, it waits" in screen.err
    assert screen.code == 0
    with screen.rig.store.begin() as tx:
        tx.nodes.register(Node("another", "h", 1, "0", START, None, 4), START)
    screen("run-now", "ticket", "--payload", "1")
    assert "ticket: accepted, ready" in screen.err


def test_replace_tells_whom_it_leaves_in_the_line(screen: Screen) -> None:
    desk = screen.rig.desk
    waiting, _ = desk.run_now("report", author="ana")
    desk.run_now("report", author="ana", cause=Cause.API, payload=1, has_payload=True)
    screen("run-now", "report", "--replace")
    assert f"replaces {waiting.id[-8:]} (canceled)" in screen.err
    assert "keeps 1 waiting run with a payload that was handed in; it runs after them" in screen.err
    assert [run.cancel for run in screen.rig.runs("report")][1:] == [None, None]


def ran(status: str = "COMPLETED", **how: Any) -> dict[str, Any]:
    run = {"status": status, "attempt": 1, "duration_s": 12.0, "duration_exact": True, "elapsed_s": 12.4}
    return {**run, "started_at": (START - timedelta(minutes=5)).isoformat(), **how}


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (ran(), "12s"),
        (ran(elapsed_s=3600.0), "12s"),
        (ran(attempt=2), "12s"),
        (ran(attempt=2, elapsed_s=300.0), "12s of 5m"),
        (ran(attempt=2, elapsed_s=0.0), "12s"),
        (ran("FAILED", duration_s=32400.0, duration_exact=False, elapsed_s=32400.0), "≤9h"),
        (ran("RUNNING", duration_s=None, elapsed_s=None), "5m"),
        (ran("RUNNING", duration_s=None, elapsed_s=None, attempt=2), "≤5m"),
        (ran("PENDING", duration_s=None, elapsed_s=None, attempt=1), "-"),
        (ran("CANCELED", duration_s=None, elapsed_s=None, started_at=None, attempt=0), "-"),
    ],
)
def test_how_long_it_took(one: dict[str, Any], text: str) -> None:
    assert run_took(one, START) == text
