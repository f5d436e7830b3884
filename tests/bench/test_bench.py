"""The bench keeps working: its parts, and some measurements at the smallest size against real daemons."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from bench import results
from bench.measurement import Bar, Measurement, Row, discover, judge
from bench.peers import install
from bench.peers.peer import NotMeasured, peers
from bench.peers.trial import trial
from bench.publish import BEGIN, END, published
from bench.report import as_json, markdown
from bench.results import Result
from bench.session import Session
from bench.tools import stamps
from bench.tools.due import must_be_before, with_due
from bench.tools.percentiles import percentile, spread
from bench.tools.processes import cost, tree
from bench.tools.seconds import lateness


def test_percentiles_are_by_nearest_rank() -> None:
    values = [float(number) for number in range(1, 101)]
    assert percentile(values, 0.5) == 50
    assert percentile(values, 0.99) == 99
    assert percentile([3.0], 0.99) == 3
    assert spread([0.001, 0.003], "ms", 1e3) == {"p50 ms": 1.0, "p99 ms": 3.0, "last ms": 3.0}
    with pytest.raises(ValueError, match="no values"):
        percentile([], 0.5)


def test_a_second_without_a_start_is_as_late_as_the_next_one() -> None:
    assert lateness([9.5, 10.25, 12.5, 13.0], 10, 13) == [0.25, 1.5, 0.5, 0.0]
    with pytest.raises(ValueError, match="second 14"):
        lateness([10.25, 13.5], 10, 14)


def test_an_instant_that_came_too_soon_is_chosen_again() -> None:
    leads = []

    def measure(due: float) -> dict[str, float]:
        leads.append(due - time.time())
        if len(leads) < 3:
            must_be_before(time.time() - 1)
        return {"s": 1.0}

    assert with_due(10, measure) == {"s": 1.0}
    assert [round(lead / 10) for lead in leads] == [1, 2, 4]


def test_bars_are_judged() -> None:
    rows = [Row("ours", {"s": 2.0, "runs/s": 900.0}), Row("peer", {"s": 10.0}), Row("absent", failed="not here")]
    rows.append(Row("slower", {"runs/s": 400.0}))
    bars = (
        Bar("ours", "s", most=4.0),
        Bar("ours", "s", most=0.1, beside="peer"),
        Bar("ours", "runs/s", least=1000.0),
        Bar("ours", "s", most=0.1, beside="absent"),
        Bar("ours", "runs/s", least=1.5, beside="slower"),
    )
    verdicts = judge(bars, rows)
    assert [one.met for one in verdicts] == [True, False, False, None, True]
    assert [one.room for one in verdicts] == [2.0, 0.5, 0.9, None, 1.5]
    result = Result(Measurement("m", "M", bars, lambda session: iter(rows)), {}, {}, "abc", True, rows)
    assert "| m: ours, runs/s | 900 | ≥ 1.5 × slower = 600 | 1.50 |" in markdown([result])


def test_the_child_stamps_its_start(tmp_path: Path) -> None:
    before = time.time()
    for _ in range(2):
        subprocess.run([str(stamps.stamp_program(tmp_path)), str(tmp_path / "started.cmd")], check=True)
    found = stamps.read(tmp_path, "started")
    assert len(found) == stamps.count(tmp_path, "started") == 2
    assert before <= found[0] <= found[1] <= time.time()


def test_a_process_has_a_cost() -> None:
    pids = tree([os.getpid()])
    own = cost(pids)[os.getpid()]
    assert own.cpu > 0
    assert 0 < own.pss <= own.rss


def test_a_peer_that_is_not_there_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(install, "_STATE", tmp_path / "state.json")
    install._state.cache_clear()
    with Session(full=False) as session:
        row = session.row("cronstable", lambda: _try(session))
    install._state.cache_clear()
    assert row.figures == {}
    assert row.failed == "it is not prepared; try python -m bench.peers.install"


def _try(session: Session) -> dict[str, float]:
    with trial(session, "cronstable", 1):
        raise AssertionError("it is there")


def test_what_cannot_be_installed_is_remembered_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "peers.txt").write_text("# comment\ndebian cron cron\npython huey huey==3.5.4\n")
    monkeypatch.setattr(install, "HOME", tmp_path / "home")
    monkeypatch.setattr(install, "_STATE", tmp_path / "home" / "state.json")
    monkeypatch.setattr(install, "_LIST", tmp_path / "peers.txt")
    monkeypatch.setattr(install, "_KINDS", {"debian": _no_client, "python": lambda wanted: None})
    install._state.cache_clear()
    install.prepare(say=False)
    assert install.installed("cron") == "it cannot be installed (there is no apt-get here); " + install._AGAIN
    assert install.installed("huey") == ""
    monkeypatch.setattr(install, "_KINDS", {})
    install.prepare(say=False)  # Not tried again while the list is the same.
    install._state.cache_clear()


def _no_client(wanted: list[str]) -> None:
    raise OSError("there is no apt-get here")


def test_a_peer_does_not_do_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.peers.peer.installed", lambda package: "")
    with (
        Session(full=False) as session,
        trial(session, "huey", 1) as one,
        pytest.raises(NotMeasured, match="huey does not"),
    ):
        one.start("idle")


def test_every_peer_has_a_package_that_is_prepared() -> None:
    lines = [line.split() for line in install._LIST.read_text().splitlines() if line and not line.startswith("#")]
    assert {one.package for one in peers().values()} <= {line[1] for line in lines}


def test_every_bar_has_its_measurement() -> None:
    known = discover()
    assert next(iter(known)) == "due_commands"
    assert {"lone_job", "accepting", "ingesting", "executing", "idle", "history", "first_output"} <= set(known)
    assert {name for name, one in known.items() if not one.bars} == {"growth"}


@pytest.mark.load
@pytest.mark.timeout(240)
@pytest.mark.xdist_group("load")
@pytest.mark.parametrize("name", ["due_durable", "ingesting", "comparing", "first_output"])
def test_a_measurement_works(name: str) -> None:
    measurement = discover()[name]
    with Session(full=False, peers=False) as session:
        rows = list(measurement.run(session))
    assert [row.failed for row in rows] == [""] * len(rows)
    assert all(value > 0 for row in rows for value in row.figures.values())
    for bar in measurement.bars:
        ours = [row for row in rows if row.subject == bar.subject]
        assert not ours or bar.figure in ours[0].figures
    result = Result(measurement, {"cores": "2"}, {"one fsync ms": 0.1}, "abc", True, rows)
    assert f"| {rows[0].subject} |" in markdown([result])
    assert json.loads(json.dumps(as_json([result])))[name]["bars"][0]["met"] in (True, False)


def test_results_are_kept_per_measurement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    known = discover()
    for seconds in (9.0, 2.0):
        rows = [Row("schedulerd", {"s": seconds}, others=0.5, pace=12.5), Row("peer", failed="not here")]
        Result(known["checking"], {"cores": "2", "date": "2026"}, {"one fsync ms": 0.1}, "abc", True, rows).save()
    (found,) = results.load(known, full=True)
    assert found.rows == rows
    assert results.load(known, full=False) == []
    text = markdown([found])
    assert "| checking: schedulerd, s | 2 | ≤ 3 | 1.50 |" in text
    assert "| schedulerd | 2 | 0.50 | 12.50 |  |" in text
    assert "| peer | – |  |  | not measured: not here |" in text


def test_how_fast_the_machine_is_lies_with_each_row() -> None:
    with Session(full=False) as session:
        row = session.row("somebody", lambda: {"s": 1.0})
        refused = session.row("nobody", lambda: 1 / 0)  # type: ignore[arg-type]
    assert row.pace is not None
    assert row.pace > 0
    assert (refused.pace, refused.failed) == (None, "ZeroDivisionError: division by zero")


def test_figures_go_between_their_marks() -> None:
    page = f"# Page\n\n{BEGIN}\nold\n{END}\n\nmore\n"
    once = published(page, "## Bars\n\nnew\n")
    assert once == f"# Page\n\n{BEGIN}\n\n### Bars\n\nnew\n\n{END}\n\nmore\n"
    assert published(once, "## Bars\n\nnew\n") == once
    with pytest.raises(ValueError, match="needs the lines"):
        published("# Page", "")
