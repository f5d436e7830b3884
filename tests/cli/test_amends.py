"""`ack` and `backfill`, against a served daemon."""

from __future__ import annotations

import json

import pytest

from scheduler.core.model import Cause, FailReason
from scheduler.core.outcome import Failed
from tests.faces import Served

Captured = pytest.CaptureFixture[str]


def miss(served: Served) -> None:
    """`minutely` fails once, and its grace is over."""
    served.rig.tick(minutes=1)
    served.rig.finish(Failed(FailReason.EXIT, "exit 1", exit_code=1))
    served.rig.turn(minutes=15)


def test_a_known_miss(served: Served, capsys: Captured) -> None:
    miss(served)
    assert served.schedctl("status") == 1
    capsys.readouterr()
    assert served.schedctl("ack", "minutely", "--reason", "moving") == 0
    said = capsys.readouterr()
    assert said.out == "minutely: known, from Mon 09:01 Europe/Paris (15m ago) until now\n"
    assert "the next success is due by Mon 09:27 Europe/Paris (in 11m)" in said.err
    assert served.schedctl("ack", "minutely") == 5
    assert "missed nothing" in capsys.readouterr().err
    assert served.schedctl("ack", "nope") == 4


def test_backfill_first_dry_then_wet(served: Served, capsys: Captured) -> None:
    served.rig.tick(minutes=5)
    served.rig.finish()
    capsys.readouterr()
    where = ("backfill", "minutely", "--from", "2026-03-02T09:01", "--until", "2026-03-02T09:05")
    assert served.schedctl(*where, "--dry-run") == 0
    said = capsys.readouterr()
    assert said.out.splitlines()[0].split() == ["FOR", "RUN"]
    assert len(said.out.splitlines()) == 5
    assert "4 runs would be made; nothing was changed" in said.err
    assert "left out, completed" in said.err
    assert "next: schedctl backfill minutely --from 2026-03-02T09:01 --until 2026-03-02T09:05" in said.err
    assert served.schedctl(*where, "--reason", "outage", "-o", "json") == 0
    made = json.loads(capsys.readouterr().out)
    runs = [run for run in served.rig.runs("minutely") if run.cause is Cause.BACKFILL]
    assert [run.id for run in runs] == [one["run_id"] for one in made["runs"]]
    assert {run.note for run in runs} == {"outage"}
    assert served.schedctl(*where) == 5
    assert "nothing to backfill" in capsys.readouterr().err


def test_many_that_a_backfill_leaves_out_are_a_number(served: Served, capsys: Captured) -> None:
    for _ in range(11):
        served.rig.tick(minutes=1)
        served.rig.finish()
    capsys.readouterr()
    assert served.schedctl("backfill", "minutely", "--since", "2026-03-02T09:00", "--dry-run") == 0
    said = capsys.readouterr().err
    assert "11 instants left out, completed\n" in said
    assert ": left out" not in said


def test_backfill_begins_after_the_last_success(served: Served, capsys: Captured) -> None:
    served.rig.tick(minutes=1)
    served.rig.finish()
    served.rig.tick(minutes=1)
    served.rig.finish(Failed(FailReason.EXIT, "exit 1", exit_code=1))
    capsys.readouterr()
    assert served.schedctl("backfill", "minutely", "--dry-run") == 0
    said = capsys.readouterr()
    assert [line.split()[1] for line in said.out.splitlines()[1:]] == ["09:02"]
    assert said.err.endswith("next: schedctl backfill minutely\n")


def test_what_cannot_be_backfilled(served: Served, capsys: Captured) -> None:
    assert served.schedctl("backfill", "minutely", "--from", "soonish") == 2
    assert served.schedctl("backfill", "ticket", "--from", "1d") == 5
    assert "has no schedule" in capsys.readouterr().err
