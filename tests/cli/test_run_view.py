"""One run on one screen, and why things did not run."""

from __future__ import annotations

import getpass
from typing import Any

import pytest

from scheduler.core.model import FailReason
from scheduler.core.outcome import Failed
from scheduler.core.requests import Report
from tests.cli.screen import Screen

WHO = getpass.getuser()


def failed(code: int = 1) -> Failed:
    return Failed(FailReason.EXIT, f"exit code {code}", exit_code=code)


def reported(screen: Screen, run: str, **what: Any) -> None:
    """What the run has said when it ends."""
    screen.rig.attempts.words[run] = [Report(run, screen.rig.run(run).fence, **what)]


PAGES = {f"/products/{number}": "the title is missing" for number in range(30)}


@pytest.fixture
def weekly(screen: Screen) -> str:
    """A run by hand that is over and has told its result; its short id."""
    screen("run-now", "report", "--reason", "numbers were wrong")
    screen.rig.tick()
    (run,) = screen.rig.runs("report")
    reported(screen, run.id, progress=100.0, message="30 failed", result={"pages": 500, "failed_pages": PAGES})
    screen.rig.turn(seconds=5)
    screen.rig.finish()
    screen.rig.tick(seconds=1)
    return run.id[-8:]


@pytest.mark.parametrize("verb", ["describe", "runs"])
def test_a_run_is_shown_whole(screen: Screen, weekly: str, verb: str) -> None:
    (run,) = screen.rig.runs("report")
    lines = screen(verb, weekly)
    assert screen.code == 0
    for line in (
        f"report {weekly}: COMPLETED after 5.0s: ok",
        f"Run           {run.id}",
        f'Cause         by hand ({WHO}): "numbers were wrong"',
        "Started       Mon 09:00 Europe/Paris (6s ago)",
        "Finished      Mon 09:00:05 Europe/Paris (1s ago)",
        "Progress      100 %: 30 failed",
        "Lock          job:report",
        f"Output        schedctl logs {weekly}",
        "1 attempt",
        '  "pages": 500,',
    ):
        assert line in lines, line
    assert sum("the title is missing" in line for line in lines) == 30
    assert screen.next == f"schedctl logs {weekly}"
    assert screen.json(verb, run.id)["result"]["failed_pages"] == PAGES


def test_describe_shows_the_last_result_in_short(screen: Screen, weekly: str) -> None:
    lines = screen("describe", "report")
    (at,) = (number for number, line in enumerate(lines) if line.startswith("Last result, "))
    assert lines[at].endswith(f"; in full: schedctl runs {weekly}")
    assert lines[at + 1] == "  pages         500"
    assert lines[at + 2].startswith("  failed_pages  {/products/0: the title is missing, /products/1: ")
    assert lines[at + 2].endswith("…  (30 in all)")


def test_what_becomes_of_the_next_run_hides_no_result(screen: Screen, weekly: str) -> None:
    screen("run-now", "report")
    screen.rig.tick()
    screen.rig.finish(failed())
    screen.rig.tick(seconds=1)
    assert any(weekly in line for line in screen("describe", "report") if line.startswith("Last result, "))


def test_attempts_have_their_outcomes(screen: Screen) -> None:
    screen("run-now", "ticket", "--payload", '{"order": 17}')
    screen.rig.tick()
    screen.rig.finish(failed(3))
    (run,) = screen.rig.runs("ticket")
    text = "\n".join(screen("runs", run.id))
    assert "PENDING: retries in " in text
    screen.rig.tick(minutes=2)
    screen.rig.finish(Failed(FailReason.SPAWN, "there is no program `ticket`"))
    screen.rig.tick(seconds=1)
    text = "\n".join(screen("runs", run.id))
    assert "2 attempts" in text
    assert "exit 3" in text
    assert "could not start: there is no program `ticket`" in text
    assert "Payload       it carried a payload and is a dead letter until it is retried or discarded" in text
    assert '  "order": 17' in text
    assert screen.next == f"schedctl retry {run.id[-8:]}"
    screen("retry", run.id, "--reason", "there now")
    again = screen.rig.runs("ticket")[-1].id[-8:]
    text = "\n".join(screen("runs", run.id))
    assert f"Retried by    {again}   schedctl runs {again}" in text
    assert "dead letter" not in text
    text = "\n".join(screen("runs", again))
    assert f"Retry of      {run.id[-8:]}" in text
    assert f'retry ({WHO}): "there now"' in text


def test_a_cancel_says_who_and_why(screen: Screen) -> None:
    screen("run-now", "report")
    screen.rig.tick()
    screen.rig.executor.obedient = False
    assert screen("cancel", "report", "--reason", "wrong month")[0].endswith(
        f": asked to end (is killed in 30s if it does not): canceled by {WHO}: wrong month"
    )
    (run,) = screen.rig.runs("report")
    assert f"running, asked to end: canceled by {WHO}: wrong month" in screen("runs")[1]
    assert "running, asked to end" in screen("list")[3]
    screen.rig.finish(failed(143))
    screen.rig.tick(seconds=1)
    assert f"CANCELED  0.0s  1    canceled by {WHO}: wrong month" in screen("runs", "report")[1]
    assert screen("runs", run.id)[0] == f"report {run.id[-8:]}: CANCELED after 0.0s: canceled by {WHO}: wrong month"


def test_a_canceled_payload_is_no_dead_letter_and_that_is_said(screen: Screen) -> None:
    screen("run-now", "ticket", "--payload", "1")
    (first,) = screen.rig.runs("ticket")
    screen("cancel", first.id)
    assert "its payload stays with it; a canceled run is no dead letter" in screen.err
    assert f"to run it again: schedctl retry {first.id[-8:]}" in screen.err
    assert screen.json("status")["dead_letters"] == 0


def test_replace_names_what_it_ends(screen: Screen) -> None:
    screen("run-now", "ticket")
    screen.rig.tick()
    screen("run-now", "ticket", "--payload", "1")
    running, waiting = screen.rig.runs("ticket")
    screen("run-now", "ticket", "--replace")
    assert f"replaces {running.id[-8:]} (asked to end)" in screen.err
    assert (
        f"replaces {waiting.id[-8:]} (canceled; its payload stays with it; a canceled run is no dead letter)"
        in screen.err
    )
    assert screen.rig.statuses("ticket") == ["RUNNING", "CANCELED", "PENDING"]


def test_an_id_that_nothing_has(screen: Screen) -> None:
    for verb in ("describe", "runs"):
        screen(verb, "deadbeef")
        assert screen.code == 4
        screen(verb, "no-such-job")
        assert screen.code == 4


def test_missed_instants_say_why(screen: Screen) -> None:
    screen.rig.tick(minutes=1)
    screen.rig.finish()
    with screen.rig.store.begin() as tx:
        tx.nodes.mark(screen.rig.node, "stopped", screen.rig.clock.now())
    screen.rig.turn(minutes=30)
    screen.rig.succeed()
    screen.rig.tick(seconds=1)
    why = "missed 29×: catch_up: latest, and a newer one was due"
    why += "; no daemon ran from Mon 09:01 to 09:31, Mon 09:02 to 09:30"
    assert why in "\n".join(screen("runs", "minutely"))
    assert f"Last skip     Mon 09:30 Europe/Paris (1m ago), {why}" in screen("describe", "minutely")


def test_missed_instants_tell_a_daemon_that_left_from_one_that_was_killed(screen: Screen) -> None:
    rig = screen.rig
    rig.tick(minutes=1)
    rig.finish()
    with rig.store.begin() as tx:
        tx.nodes.mark(rig.node, "stopping", rig.clock.now())
    rig.turn(minutes=5)
    with rig.store.begin() as tx:
        tx.nodes.renew(rig.node, rig.clock.now(), generation=1)
        (node,) = tx.nodes.all()
        tx.nodes.declare_dead(rig.node, node.beat, rig.clock.now())
    rig.turn(minutes=5)
    rig.succeed()
    rig.tick(seconds=1)
    why = "a daemon that was leaving planned nothing from Mon 09:01; "
    why += "no daemon ran from Mon 09:06 at the earliest to 09:11, Mon 09:02 to 09:10"
    assert why in "\n".join(screen("runs", "minutely"))


def test_a_paused_instant_says_who_and_why(screen: Screen) -> None:
    screen("pause", "minutely", "--reason", "database move")
    screen.rig.tick(minutes=1)
    assert f"paused: database move ({WHO})" in "\n".join(screen("runs", "minutely"))


def test_lengths_and_a_line_to_paste_after_ten_runs(screen: Screen) -> None:
    for _ in range(10):
        screen.rig.tick(minutes=1)
        screen.rig.turn(seconds=2)
        screen.rig.finish()
    lines = screen("describe", "minutely")
    (at,) = (number for number, line in enumerate(lines) if line.startswith("Its last 10 completed runs took"))
    assert lines[at].endswith(": p50 2.0s, p95 2.0s, longest 2.0s")
    assert lines[at + 1] == "  timeout: 1d is far off, the longest of 10 runs took 2s; a line for jobs.yaml:"
    assert lines[at + 2] == "    timeout: 5m"


def test_nothing_of_a_person_moves_the_cursor(screen: Screen) -> None:
    evil = "red\x1b[31m\rblue\x9b2J\u202egreen"
    shown = r"red\x1b[31m\rblue\x9b2J\u202egreen"
    screen("run-now", "report", "--reason", evil)
    screen.rig.tick()
    (run,) = screen.rig.runs("report")
    reported(screen, run.id, message=evil, result={evil: evil})
    screen("pause", "report", "--reason", evil)
    screen("cancel", "report", "--reason", evil)
    screen.rig.finish(Failed(FailReason.ERROR, evil))
    screen.rig.tick(seconds=1)
    for line in ("runs", f"runs {run.id}", "list", "describe report", "status", "logs report"):
        text = "\n".join(screen(*line.split())) + screen.err
        assert text.replace("\n", "").isprintable(), line
        assert shown in text or line in ("list", "status"), line
        for form in ("json", "yaml"):
            assert "".join(screen(*line.split(), "-o", form)).isprintable()
    assert screen.json("runs", run.id)["note"] == evil


def test_a_newline_in_a_description_makes_no_line_of_its_own_kind(screen: Screen) -> None:
    screen.rig.reload(screen.rig.text.replace("每周报告 of the shop", '"first\\nState         ok"'))
    screen("list")
    assert screen("describe", "report")[:3] == ["report", "  first", "  State         ok"]


def test_that_it_runs_is_said_once(screen: Screen) -> None:
    screen("run-now", "report")
    screen.rig.tick()
    (run,) = screen.rig.runs("report")
    assert screen("runs", run.id)[0].startswith(f"report {run.id[-8:]}: RUNNING for 0.0s")
    fence = screen.rig.run(run.id).fence
    with screen.rig.store.begin() as tx:
        tx.runs.report([Report(run.id, fence, progress=20)])
    assert screen("runs", run.id)[0].startswith(f"report {run.id[-8:]}: RUNNING for 0.0s: 20 %")
