from __future__ import annotations

import json
from pathlib import Path

import pytest

from scheduler.executors.attempts.reports import Reported, ReportReader
from scheduler.executors.attempts.values import RESULT_LIMIT


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "report.jsonl"


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def test_lines_are_taken_as_they_come_and_the_newest_counts(path: Path) -> None:
    reader = ReportReader(path)
    assert not reader.read()
    append(path, b'{"progress": 40, "message": "page 2"}\n{"progress": 5')
    assert reader.read()
    assert reader.reported == Reported(progress=40, message="page 2")
    assert not reader.read()
    append(path, b'0}\n{"checkpoint": {"page": 3}}\n{"checkpoint": {"page": 4}}\n')
    assert reader.read()
    assert reader.reported == Reported(50, "page 2", None, {"page": 4})


def test_last_line_without_newline_counts_at_the_end(path: Path) -> None:
    reader = ReportReader(path)
    append(path, b'{"result": {"rows": 3}}')
    assert not reader.read()
    assert reader.read(complete=True)
    assert reader.reported.result == {"rows": 3}


@pytest.mark.parametrize(
    "line",
    [
        b"not json",
        b"\xff\xfe",
        b"[1]",
        b"{}",
        b'{"unknown": 1}',
        b'{"progress": "40"}',
        b'{"progress": 101}',
        b'{"progress": true}',
        b'{"progress": NaN}',
        b'{"message": 3}',
        b'{"result": 1e999}',
        b'{"result": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"message": "' + b"x" * 70_000 + b'"}',
        b'{"result": "' + b"x" * (RESULT_LIMIT + 5000) + b'"}',
    ],
    ids=lambda line: line[:20].decode("latin-1"),
)
def test_garbage_is_counted_and_disturbs_nothing(path: Path, line: bytes) -> None:
    reader = ReportReader(path)
    append(path, b'{"progress": 1}\n' + line + b'\n{"message": "after"}\n')
    reader.read()
    assert reader.reported == Reported(progress=1, message="after")
    assert reader.ignored == 1
    assert reader.first_problem


def test_large_result_is_kept_up_to_its_limit(path: Path) -> None:
    reader = ReportReader(path)
    append(path, json.dumps({"result": "x" * (RESULT_LIMIT - 100)}).encode() + b"\n")
    reader.read()
    assert len(reader.reported.result) == RESULT_LIMIT - 100


def test_text_that_databases_refuse_is_replaced(path: Path) -> None:
    reader = ReportReader(path)
    append(path, b'{"message": "a\\u0000b", "result": {"k\\u0000": ["\\ud800"]}}\n')
    reader.read()
    assert reader.reported.message == "a\ufffdb"
    assert "\0" not in json.dumps(reader.reported.result, ensure_ascii=False)
    json.dumps(reader.reported.result, ensure_ascii=False).encode("utf-8")


def test_what_is_no_plain_file_is_not_read(path: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text('{"result": "not mine"}\n')
    path.symlink_to(elsewhere)
    reader = ReportReader(path)
    assert not reader.read(complete=True)
    assert reader.reported.result is None
