"""Whom `schedctl cancel` ends, and what it says of whom it asked before."""

from __future__ import annotations

from tests.cli.screen import Screen
from tests.faces import JOBS


def test_several_unfinished_runs_are_named_and_none_is_ended(screen: Screen) -> None:
    runs = [screen.rig.desk.run_now("ticket", author="ana", payload=number, has_payload=True)[0] for number in range(3)]
    screen.rig.worker.tick(screen.rig.store.now())
    first = runs[0].id
    screen("cancel", first[-8:])
    assert screen("cancel", "ticket") == []
    assert screen.code == 5
    assert "schedctl: ticket has 3 unfinished runs: " in screen.err
    assert f"{first[-8:]} (RUNNING, asked to end)" in screen.err
    newest = runs[-1].id[-8:]
    assert f"{newest} (RUNNING)" in screen.err
    assert f"`schedctl cancel {newest}` ends one of them, `schedctl cancel ticket --all` all" in screen.err
    assert [run.cancel is None for run in screen.rig.runs("ticket")] == [False, True, True]


def test_all_of_them(screen: Screen) -> None:
    screen.rig.desk.run_now("ticket", author="ana", payload=1, has_payload=True)
    screen.rig.worker.tick(screen.rig.store.now())
    screen.rig.desk.run_now("ticket", author="ana", payload=2, has_payload=True)
    ids = [run.id for run in screen.rig.runs("ticket")]
    lines = screen("cancel", "ticket", "--all", "--reason", "wrong")
    assert screen.code == 0
    assert [line.split(": ")[0] for line in lines] == [f"ticket {ids[1][-8:]}", f"ticket {ids[0][-8:]}"]
    assert "canceled by" in lines[0]
    assert ": asked to end (is killed in 30s if it does not): canceled by" in lines[1]
    assert lines[1].endswith(": wrong")
    assert screen.next == "schedctl runs ticket"
    assert len(screen("cancel", "ticket", "--all", "-o", "name")) == 1
    screen("cancel", "report", "--all")
    assert (screen.code, "report has no unfinished run" in screen.err) == (5, True)
    screen("cancel", "nobody", "--all")
    assert screen.code == 4


def test_the_only_unfinished_run_is_meant_however_many_came_after_it(screen: Screen) -> None:
    screen.rig.tick(minutes=1)
    (run,) = screen.rig.runs("minutely")
    (line,) = screen("cancel", "minutely")
    assert line.startswith(f"minutely {run.id[-8:]}: asked to end (is killed in 30s if it does not): canceled by ")
    assert ": was already asked to end just now (is killed in " in screen("cancel", "minutely")[0]
    screen.rig.clock.turn(seconds=12)
    (line,) = screen("cancel", "minutely", "--reason", "again")
    assert screen.code == 0
    assert line.startswith(f"minutely {run.id[-8:]}: was already asked to end 12s ago (is killed in 18s): canceled by ")
    assert "again" not in line, "the first reason stays"
    assert screen.json("cancel", "minutely")["asked_before"] is True
    screen.rig.clock.turn(seconds=18)
    assert "ago (is being killed): " in screen("cancel", "minutely")[0]


def test_what_a_policy_asked_has_no_time(screen: Screen) -> None:
    screen.rig.tick(minutes=1)
    (run,) = screen.rig.runs("minutely")
    with screen.rig.store.begin() as tx:
        tx.runs.request_cancel([run.id], "replaced", screen.rig.store.now())
    (line,) = screen("cancel", "minutely")
    assert line == f"minutely {run.id[-8:]}: was already asked to end: replaced"


def test_what_runs_of_a_removed_job_has_its_name(screen: Screen) -> None:
    screen.rig.tick(minutes=1)
    screen.rig.reload(JOBS.replace("  minutely:", "  hourly:"), drop_pending=True)
    screen("status")  # takes what the reload logged
    (line,) = screen("cancel", "minutely")
    assert line.startswith("minutely ")
    assert ": asked to end" in line
