"""What schedctl tells of sources and of jobs that events start, with a daemon."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from scheduler.store.store import SqlStore
from tests.cli.screen import Screen
from tests.faces import Faces

JOBS = """
sources:
  stripe: {preset: stripe, secrets: [{env: S}], keep: 50d}
jobs:
  refund:
    on_event: {source: stripe, types: [charge.refunded, "refund.*"], where: "livemode", order: subject}
    command: [x]
  ledger: {on_event: stripe, command: [x]}
"""


@pytest.fixture
def screen(store: SqlStore, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Screen]:
    monkeypatch.setenv("TZ", "Europe/Paris")
    with Faces(store, JOBS).served() as served:
        capsys.readouterr()  # what the daemon logged while it started
        yield Screen(served, capsys)


def test_describe_says_which_events_start_a_job(screen: Screen) -> None:
    (line,) = [one for one in screen("describe", "refund") if one.startswith("Events ")]
    assert line.split(None, 1)[1] == ("charge.refunded, refund.* of stripe, where livemode, one at a time per subject")
    lines = screen("describe", "ledger")
    assert [one.split(None, 1)[1] for one in lines if one.startswith("Events ")] == ["stripe"]
    below = lines[lines.index("Definition") + 1 :]
    assert [one.split()[0] for one in below[:2]] == ["on_event", "command"]


def test_show_a_source_in_force(screen: Screen) -> None:
    lines = screen("show", "stripe")
    assert lines[0].split() == ["KEY", "VALUE", "WHERE"]
    found = {one.split()[0]: one.split(None, 1)[1] for one in lines[1:]}
    assert found["keep"].split() == ["50d", "jobs.yaml:3"]
    assert found["event.id"].split(None, 1) == ["id", "(preset stripe)"]
    assert screen.next == "schedctl verify stripe --help"
    assert list(screen.json("show", "source stripe")) == ["source stripe"]
    assert list(screen.json("show")) == ["source stripe", "refund", "ledger"]
    assert screen("show", "nothing") == []
    assert screen.code == 4
    assert "no job, source or channel is named `nothing`" in screen.err


def test_diff_and_show_of_files(screen: Screen, tmp_path: Path) -> None:
    new = tmp_path / "new.yaml"
    new.write_text(JOBS.replace("keep: 50d", "keep: 60d, paused: true"))
    assert screen("diff", str(new)) == ["~ source stripe", "    keep: 50d → 60d", "    paused: false → true"]
    assert screen.code == 1
    assert screen("show", "--file", str(new), "nothing") == []
    assert (screen.code, "it has refund, ledger, stripe" in screen.err) == (4, True)


def test_what_is_new_or_gone_is_marked_so(screen: Screen, tmp_path: Path) -> None:
    here, other = tmp_path / "here.yaml", tmp_path / "other.yaml"
    here.write_text("queues: {old: {concurrency: 1}}\nsources: {a: {preset: stripe, secrets: {env: S}}}\njobs: {}\n")
    other.write_text("queues: {new: {concurrency: 2}}\nsources: {b: {preset: stripe, secrets: {env: S}}}\njobs: {}\n")
    assert screen("diff", str(here), str(other)) == [
        "+ queue new",
        "    added",
        "    burst: 1",
        "    concurrency: 2",
        "- queue old",
        "    removed",
        "- source a",
        "    removed",
        "+ source b",
        "    added",
    ]
