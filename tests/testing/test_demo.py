"""The demo with a real daemon, for seconds instead of a minute; and one that must not end well."""

from __future__ import annotations

import dataclasses
import os
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest

from scheduler.testing import demo
from scheduler.testing.balance import Balance, Handled
from scheduler.testing.demo import DemoFailed, Plan


@pytest.fixture
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings of whoever runs the tests must not reach the daemon; one does here that would stop it."""
    for name in [name for name in os.environ if name.startswith("SCHEDULER_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SCHEDULER_LISTEN", "nowhere")


@pytest.mark.load
@pytest.mark.xdist_group("load")
@pytest.mark.usefixtures("clean")
def test_a_third_is_lost_and_everything_is_handled_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "demo"
    asked = ["--for", "3s", "--rate", "15", "--every", "1", "--folder", str(folder)]
    assert demo.main(asked) == 0
    shown = capsys.readouterr().out.splitlines()
    told = [line for line in shown if str(tmp_path) not in line]
    assert all(len(line) <= 80 for line in told)
    numbers = {line[2:30].strip(): int(line[30:37]) for line in told[told.index("") :] if line[30:37].strip().isdigit()}
    assert numbers["webhook never sent"] > 0
    assert numbers["found by scan"] >= numbers["webhook never sent"]
    assert numbers["handled exactly once"] == numbers["events that happened"] > 20
    assert numbers["unaccounted"] == numbers["handled twice"] == 0
    assert numbers["events that happened"] == len(Handled.read(folder / "handled.jsonl").ways)


@pytest.mark.load
@pytest.mark.xdist_group("load")
@pytest.mark.usefixtures("clean")
def test_what_no_list_shows_is_unaccounted(tmp_path: Path) -> None:
    """Else the demo would praise scans that find nothing."""
    lost = dataclasses.replace(demo.faults(2, 0.5), keeps=timedelta(0), outage=0.0)
    said: list[str] = []
    balance = demo.run(Plan(2, 1, 15, lost, patience=2), tmp_path, said.append)
    assert not balance.good
    assert balance.by_scan == 0
    assert len(balance.unaccounted) == balance.never_sent > 0
    assert not balance.twice


@pytest.mark.parametrize(
    ("handled", "code", "mark"), [({"a": 1, "b": 1}, 0, "✓"), ({"a": 1}, 1, "✗"), ({"a": 2, "b": 1}, 1, "✗")]
)
def test_the_exit_status_is_the_balance(
    handled: dict[str, int], code: int, mark: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ways = Handled(ways=Counter(handled), first=dict.fromkeys(handled, "webhook"))
    monkeypatch.setattr(demo, "run", lambda *_: Balance.of("ab", {"a": 1}, {"a"}, ways))
    assert demo.main([]) == code
    assert f"\n{mark} 2 = " in capsys.readouterr().out


def test_without_a_daemon_there_is_nothing_to_count(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def none(*_: object) -> Balance:
        raise DemoFailed("the daemon did not start")

    monkeypatch.setattr(demo, "run", none)
    assert demo.main([]) == 2
    assert "did not start" in capsys.readouterr().err
