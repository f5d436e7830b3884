"""YAML as cron people write it: what is text stays text, what repeats stays small."""

from __future__ import annotations

import codecs
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from scheduler.config.load import load_file
from scheduler.config.syntax import parse
from tests.config.texts import load, one, problems


def data(text: str) -> Any:
    tree = parse(text, "f")
    assert not tree.problems
    return tree.data


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("12:30:45", "12:30:45"),
        ("23:59", "23:59"),
        ("8:30", "8:30"),
        ("08:30", "08:30"),
        ("1:30", "1:30"),
        ("010", "010"),
        ("090", "090"),
        ("0777", "0777"),
        ("1_000", "1_000"),
        ("0x1F", "0x1F"),
        ("0o17", "0o17"),
        ("2026-03-01", "2026-03-01"),
        ("2026-13-01", "2026-13-01"),
        ("2026-03-01 02:30:00", "2026-03-01 02:30:00"),
        ("no", "no"),
        ("on", "on"),
        ("True", "True"),
        ("NO", "NO"),
        ("=", "="),
        ("+5", "+5"),
        (".5", ".5"),
        (".inf", ".inf"),
        (".nan", ".nan"),
        ("true", True),
        ("false", False),
        ("null", None),
        ("~", None),
        ("0", 0),
        ("-7", -7),
        ("1.5", 1.5),
        ("!!str 5", "5"),
        ("9" * 30, "9" * 30),
    ],
)
def test_plain_scalars(written: str, value: object) -> None:
    found = data(f"a: {written}\n")["a"]
    assert found == value
    assert isinstance(found, type(value))


def test_on_is_a_key_like_any_other() -> None:
    assert data("on: push\n") == {"on": "push"}


def test_numbers_keep_their_spelling_where_text_is_wanted() -> None:
    job = one("command: [sleep, 1.10, 5, -1], env: {A: 1.10, B: true, C: 08, D: no}")
    assert job.action.options == {"command": ["sleep", "1.10", "5", "-1"]}
    assert job.child.env == {"A": "1.10", "B": "true", "C": "08", "D": "no"}


def test_a_key_without_a_value_counts_as_absent() -> None:
    assert one("command: x, timeout: , retries: ~, env: , http: , limits: {memory: }") == one("command: x, limits: {}")


def test_a_default_holds_where_the_job_has_the_key_without_a_value() -> None:
    job = load("defaults: {grace: 5m}\njobs:\n  a:\n    command: x\n    grace:\n").jobs["a"]
    assert job.watch.grace.total_seconds() == 300


def test_merge_keys_anchors_and_own_keys() -> None:
    text = (
        "x-base: &b {command: x, grace: 5m}\njobs:\n  a: {<<: *b}\n  b: {<<: *b, grace: 6m}\n  c: {grace: 6m, <<: *b}\n"
    )
    jobs = load(text).jobs
    assert [job.watch.grace.total_seconds() for job in jobs.values()] == [300, 360, 360]


def test_of_several_merged_mappings_the_first_wins() -> None:
    text = "x-a: &a {command: x, grace: 5m}\nx-b: &b {command: y, timeout: 9m}\njobs:\n  a: {<<: [*a, *b]}\n"
    job = load(text).jobs["a"]
    assert (job.action.options["command"], job.timeout.total_seconds()) == ("x", 540)


def test_a_mistake_in_a_merged_mapping_is_told_where_it_is_written() -> None:
    (found,) = problems("x-base: &b\n  grace: 5\njobs:\n  a: {<<: *b, command: x}\n  b: {<<: *b, command: y}\n")[:1]
    assert (found.line, found.column) == (2, 10)


@pytest.mark.parametrize(
    "raw",
    [
        codecs.BOM_UTF8 + "jobs: {ä: {}}".encode(),
        b"version: 1\r\njobs: {}\r\n",
        codecs.BOM_UTF16_LE + "version: 1\njobs: {}\n".encode("utf-16-le"),
        codecs.BOM_UTF16_BE + "version: 1\njobs: {}\n".encode("utf-16-be"),
    ],
    ids=["bom", "crlf", "utf-16-le", "utf-16-be"],
)
def test_files_from_windows(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "jobs.yaml"
    path.write_bytes(raw.replace("ä: {}".encode(), b""))
    assert load_file(path).jobs == {}


def test_lines_are_counted_alike_with_any_line_break() -> None:
    for end in ("\n", "\r\n", "\r"):
        text = end.join(["jobs:", "  a:", "    command: x", "    foo: 1", ""])
        assert problems(text)[0].line == 4


def test_aliases_that_grow_are_refused_at_once() -> None:
    levels = "abcdefgh"
    lines = ["x-a: &a [1,1,1,1,1,1,1,1,1]"]
    lines += [f"x-{b}: &{b} [{','.join([f'*{a}'] * 9)}]" for a, b in pairwise(levels)]
    text = "\n".join([*lines, "jobs: {}", ""])
    assert len(text) < 400
    started = time.monotonic()
    found = problems(text)
    assert "aliases repeat too much" in found[0].reason
    assert time.monotonic() - started < 5


def test_ten_thousand_jobs_may_share_a_merged_mapping() -> None:
    text = "x-base: &b {timezone: UTC, grace: 5m, timeout: 5m, env: {A: 1, B: 2}}\njobs:\n" + "".join(
        f'  j{n}: {{<<: *b, schedule: "{n % 60} {n // 60 % 24} * * *", command: x}}\n' for n in range(10_000)
    )
    assert len(load(text).jobs) == 10_000


def test_alias_of_an_alias_cannot_loop() -> None:
    assert "contains itself" in problems("jobs: &j\n  a: *j\n")[0].reason
    assert "contains itself" in problems("x-a: &a {<<: *a}\njobs: {}\n")[0].reason
    twice = problems("jobs:\n  a: &a {<<: [*a, *a], command: x, env: {<<: [*a, *a]}, foo: 1}\n")
    assert any("unknown key `foo`" in found.reason for found in twice)


def test_tabs_that_harm_nobody() -> None:
    text = "jobs:\t# a comment\n  a:\t\n    command: |\n      x:\ty\n    description: 'a:\tb'\t# c\n"
    job = load(text).jobs["a"]
    assert (job.action.options["command"], job.description) == ("x:\ty\n", "a:\tb")
