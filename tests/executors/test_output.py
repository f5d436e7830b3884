from __future__ import annotations

import os
from pathlib import Path

import pytest

from scheduler.core.masking import Masks
from scheduler.executors.attempts.output import Excerpt, OutputFile


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "output"


def test_short_output_is_kept_whole(path: Path) -> None:
    path.write_bytes(b"\x00\xff any bytes")
    assert OutputFile(path, 100, Masks()).read(complete=True) == Excerpt(b"\x00\xff any bytes", b"", 0)
    assert OutputFile(path.with_name("none"), 100, Masks()).read(complete=True) == Excerpt(b"", b"", 0)


def test_long_output_keeps_both_halves(path: Path) -> None:
    path.write_bytes(bytes(range(256)) * 10)
    excerpt = OutputFile(path, 200, Masks()).read(complete=True)
    assert excerpt == Excerpt(bytes(range(100)), bytes(range(156, 256)), 2360)


@pytest.mark.parametrize("size", range(38, 90, 4))
def test_no_part_of_a_secret_survives_at_any_border(path: Path, size: int) -> None:
    """The secret stands at every place relative to the inner edges of head and tail."""
    for at in range(size - 10):
        path.write_bytes(b"." * at + b"SECRETWORD" + b"," * (size - 10 - at))
        excerpt = OutputFile(path, 40, Masks(["SECRETWORD"])).read(complete=True)
        shown = excerpt.head + b"|" + excerpt.tail
        for part in (b"S", b"E", b"C", b"R", b"T", b"W", b"O", b"D"):
            assert part not in shown
        hidden = shown.count(b"***")
        assert len(shown) - 1 - 3 * hidden + excerpt.omitted + 10 * hidden == size


def test_a_secret_that_is_being_written_is_held_back(path: Path) -> None:
    output = OutputFile(path, 1000, Masks(["SECRETWORD"]))
    path.write_bytes(b"token SECRET")
    assert output.read(complete=False).head == b"token "
    path.write_bytes(b"token SECRETWORD and")
    assert output.read(complete=False).head == b"token *** and"


def test_trimming_frees_the_middle_and_disturbs_nobody(path: Path) -> None:
    limit = 64 * 1024
    output = OutputFile(path, limit, Masks(["SECRETWORD"]))
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    block = bytes(range(256)) * 4
    try:
        for number in range(4 * 1024):
            os.write(descriptor, number.to_bytes(4, "big") + block[4:])
            if number % 256 == 0:
                output.trim()
        output.trim()
        excerpt = output.read(complete=True)
    finally:
        os.close(descriptor)
    whole = b"".join(number.to_bytes(4, "big") + block[4:] for number in range(4 * 1024))
    assert excerpt == Excerpt(whole[: limit // 2], whole[-limit // 2 :], len(whole) - limit)
    found = os.stat(path)
    assert found.st_size == len(whole)
    assert found.st_blocks * 512 < 8 * limit


def test_a_symbolic_link_is_not_followed(path: Path, tmp_path: Path) -> None:
    (tmp_path / "other").write_text("somebody else's")
    path.symlink_to(tmp_path / "other")
    with pytest.raises(OSError, match="symbolic"):
        OutputFile(path, 100, Masks()).read(complete=True)
