"""Output files: written by children, read and trimmed by the daemon."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from scheduler.supervisor import output
from scheduler.supervisor.output import OutputFile, create, mark
from scheduler.supervisor.spec import Exited
from tests.supervisor.harness import Harness, wait_until

LIMIT = 64 * 1024
HALF = LIMIT // 2


def written(path: Path, data: bytes) -> Path:
    fd = create(path)
    os.write(fd, data)
    os.close(fd)
    return path


def numbered(lines: int) -> bytes:
    return b"".join(b"%015d\n" % number for number in range(lines))


def test_create_is_private_and_new(tmp_path: Path) -> None:
    path = written(tmp_path / "o", b"x")
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        create(path)


@pytest.mark.parametrize("size", [0, 1, HALF - 1, HALF, HALF + 1, LIMIT - 1, LIMIT])
def test_up_to_the_limit_everything_is_kept(tmp_path: Path, size: int) -> None:
    data = os.urandom(size)
    with OutputFile(written(tmp_path / "o", data), limit=LIMIT) as file:
        file.trim()
        assert file.kept() == data
        assert file.omitted == 0


@pytest.mark.parametrize("more", [1, 4095, 4096, 100_000, 1_000_000])
def test_beyond_the_limit_both_halves_are_kept(tmp_path: Path, more: int) -> None:
    data = os.urandom(LIMIT + more)
    with OutputFile(written(tmp_path / "o", data), limit=LIMIT) as file:
        before = file.kept()
        assert file.trim()
        assert file.kept() == before == data[:HALF] + mark(more) + data[-HALF:]
        assert file.size == LIMIT + more
        assert file.omitted == more


def test_any_piece_can_be_read_back(tmp_path: Path) -> None:
    data = os.urandom(LIMIT * 4)
    with OutputFile(written(tmp_path / "o", data), limit=LIMIT) as file:
        file.trim()
        assert file.read(10, 5).data == data[10:15]
        assert file.read(HALF - 2, 5).data == data[HALF - 2 : HALF]
        jumped = file.read(HALF, 5)
        assert (jumped.offset, jumped.omitted, jumped.data) == (LIMIT * 4 - HALF, LIMIT * 3, data[-HALF : 5 - HALF])
        assert file.read(LIMIT * 4 - 3, 100).data == data[-3:]
        at_end = file.read(LIMIT * 4)
        assert (at_end.data, at_end.end) == (b"", LIMIT * 4)


def test_following(tmp_path: Path) -> None:
    fd = create(tmp_path / "o")
    with OutputFile(tmp_path / "o", limit=LIMIT) as file:
        offset = 0
        seen = b""
        for number in range(1000):
            os.write(fd, b"%015d\n" % number)
            piece = file.read(offset)
            assert piece.omitted == 0
            seen += piece.data
            offset = piece.end
        assert seen == numbered(1000)
    os.close(fd)


def test_a_child_that_writes_without_end_costs_its_limit(supervisor: Harness) -> None:
    total = 300_000_000
    supervisor.sh("r", f"head -c {total} /dev/zero | tr '\\0' x; printf END; exit 3")
    path = supervisor.folder / "r.out"
    most = 0

    def look() -> bool:
        nonlocal most
        file.trim()
        most = max(most, path.stat().st_blocks * 512)
        return any(isinstance(event, Exited) for event in supervisor.events) or not supervisor.inbox.empty()

    supervisor.started("r")
    with OutputFile(path) as file:
        wait_until(look, 60)
        assert supervisor.exited("r", 60).code == 3
        if not file.trim():
            pytest.skip("THIS FILE SYSTEM cannot punch holes")
        assert file.size == total + 3
        assert path.stat().st_blocks * 512 < 2 * output.LOG_LIMIT
        assert most < total // 2
        kept = file.kept()
        assert kept.startswith(b"x" * (output.LOG_LIMIT // 2))
        assert kept.endswith(b"xEND")
        assert mark(total + 3 - output.LOG_LIMIT) in kept
        assert b"\0" not in kept


def test_a_reader_never_sees_the_hole(supervisor: Harness) -> None:
    supervisor.sh("r", "head -c 60000000 /dev/zero | tr '\\0' x")
    supervisor.started("r")
    path = supervisor.folder / "r.out"
    with OutputFile(path, limit=LIMIT) as trims, OutputFile(path, limit=LIMIT) as reads:
        offset = total = 0
        while offset < 60_000_000:
            trims.trim()
            piece = reads.read(offset)
            trims.trim()
            assert piece.data.strip(b"x") == b""
            total += len(piece.data) + piece.omitted
            offset = piece.end
        assert total == offset == 60_000_000
    assert supervisor.exited("r").code == 0


def test_what_is_trimmed_while_it_is_read_is_not_returned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "o", b"x" * LIMIT * 4)
    real = os.pread
    growth = [LIMIT // 8, LIMIT, 0]

    def overtaken(fd: int, count: int, offset: int) -> bytes:
        with path.open("ab") as child:
            child.write(b"y" * growth.pop(0))
        with OutputFile(path, limit=LIMIT) as other:
            other.trim()
        return real(fd, count, offset)

    with OutputFile(path, limit=LIMIT) as file:
        monkeypatch.setattr(os, "pread", overtaken)
        part = file.read(LIMIT)
        assert (part.offset, part.omitted) == (LIMIT * 4 + LIMIT // 8 - HALF, LIMIT * 3 + LIMIT // 8 - HALF)
        assert part.data == b"x" * (HALF - LIMIT // 8) + b"y" * (LIMIT // 8)
        whole = file.read(LIMIT)
        assert whole.end == file.size == LIMIT * 5 + LIMIT // 8
        assert whole.data == b"y" * HALF


def test_where_holes_cannot_be_punched_nothing_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Refuses:
        def fallocate(self, *_arguments: int) -> int:
            return -1

    monkeypatch.setattr(output, "_libc", Refuses())
    data = os.urandom(LIMIT * 3)
    with OutputFile(written(tmp_path / "o", data), limit=LIMIT) as file:
        assert not file.trim()
        assert file.kept() == data[:HALF] + mark(LIMIT * 2) + data[-HALF:]
    assert (tmp_path / "o").read_bytes() == data
