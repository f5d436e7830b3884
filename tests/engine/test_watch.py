"""Watching the file by its content, with real files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from scheduler.core.errors import InvalidInput, Unavailable
from scheduler.engine.watch import Watch
from scheduler.files import JobsFile
from tests.engine.rig import START


class Watched:
    """Counts what was read when somebody asked for a reload."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.read: list[str] = []
        self.fault: Exception | None = None
        self.watch = Watch(JobsFile(path).fingerprint, self.reload)

    def reload(self) -> None:
        if self.fault is not None:
            raise self.fault
        if not self.path.exists():
            raise InvalidInput(f"{self.path}: cannot be read")
        self.read.append(self.path.read_text())

    def ticks(self, count: int = 3) -> int:
        return sum(self.watch.tick(START) for _ in range(count))


@pytest.fixture
def file(tmp_path: Path) -> Watched:
    path = tmp_path / "jobs.yaml"
    path.write_text("jobs: {}\n")
    return Watched(path)


def test_a_file_that_stays_is_left_alone(file: Watched) -> None:
    assert file.ticks(5) == 0
    os.utime(file.path, (1, 1))
    assert file.ticks(5) == 0


def test_an_editor_that_saves_by_rename_twice(file: Watched) -> None:
    """E22"""
    for number in (1, 2):
        temporary = file.path.with_suffix(".tmp")
        temporary.write_text(f"jobs: {{}} # {number}\n")
        temporary.replace(file.path)
        assert file.ticks() == 1
    assert file.read == ["jobs: {} # 1\n", "jobs: {} # 2\n"]


def test_a_config_map_that_swaps_its_link(tmp_path: Path) -> None:
    """E23: no name that anybody watches changes, only what it leads to."""
    for version in (1, 2):
        (tmp_path / f"..2026_{version}").mkdir()
        (tmp_path / f"..2026_{version}" / "jobs.yaml").write_text(f"jobs: {{}} # {version}\n")
    (tmp_path / "..data").symlink_to("..2026_1")
    (tmp_path / "jobs.yaml").symlink_to("..data/jobs.yaml")
    watched = Watched(tmp_path / "jobs.yaml")
    assert watched.ticks() == 0
    (tmp_path / "..data_tmp").symlink_to("..2026_2")
    (tmp_path / "..data_tmp").replace(tmp_path / "..data")
    assert watched.ticks() == 1
    assert watched.read == ["jobs: {} # 2\n"]


def test_a_file_that_is_being_written_is_left_alone_until_it_is_done(file: Watched) -> None:
    for length in range(1, 6):
        file.path.write_text("jobs: {}  # longer"[: 8 + length])
        assert file.watch.tick(START) == 0
    assert file.ticks() == 1
    assert len(file.read) == 1


def test_a_file_that_vanishes_and_comes_back(file: Watched) -> None:
    text = file.path.read_text()
    file.path.unlink()
    assert file.ticks() == 0
    file.path.write_text(text)
    file.ticks()
    file.path.write_text("jobs: {} # new\n")
    assert file.ticks() == 1
    assert file.read[-1] == "jobs: {} # new\n"


def test_a_change_in_an_included_file(tmp_path: Path) -> None:
    (tmp_path / "jobs.d").mkdir()
    (tmp_path / "jobs.yaml").write_text('include: ["jobs.d/*.yaml"]\njobs: {}\n')
    watched = Watched(tmp_path / "jobs.yaml")
    (tmp_path / "jobs.d" / "one.yaml").write_text("jobs: {}\n")
    assert watched.ticks() == 1
    (tmp_path / "jobs.d" / "one.yaml").write_text("jobs: {} # changed\n")
    assert watched.ticks() == 1


def test_a_file_that_is_refused_is_not_tried_again_until_it_changes(file: Watched) -> None:
    file.fault = InvalidInput("line 1: no")
    file.path.write_text("jobs: 7\n")
    assert file.ticks() == 0
    file.fault = None
    assert file.ticks() == 0
    file.path.write_text("jobs: {} # good\n")
    assert file.ticks() == 1


def test_a_file_that_met_an_absent_database_is_tried_again(file: Watched) -> None:
    file.fault = Unavailable("the database is away")
    file.path.write_text("jobs: {} # new\n")
    assert file.ticks() == 0
    file.fault = None
    assert file.ticks() == 1
    assert file.ticks() == 0
