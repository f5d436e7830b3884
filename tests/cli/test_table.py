from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.cli.sheet import written
from scheduler.cli.table import Column, table
from scheduler.cli.text import broken, clip, pad, plain, visible, visible_json, width
from scheduler.cli.verbs.db import size

COLUMNS = [Column("NAME", 4), Column("ID"), Column("TEXT", 6), Column("EXTRA", spare=1)]
ROWS = [["每周报告", "1", "a long text that tells a story", "x"], ["plain", "22", "short", "yy"]]


def test_as_wide_as_the_content_without_a_limit() -> None:
    assert table(COLUMNS, ROWS, None) == [
        "NAME      ID  TEXT                            EXTRA",
        "每周报告  1   a long text that tells a story  x",
        "plain     22  short                           yy",
    ]


def test_soft_columns_give_way_first_then_spare_ones_go() -> None:
    assert table(COLUMNS, ROWS, 40) == [
        "NAME      ID  TEXT                 EXTRA",
        "每周报告  1   a long text that t…  x",
        "plain     22  short                yy",
    ]
    narrow = table(COLUMNS, ROWS, 20)
    assert "EXTRA" not in narrow[0]
    assert max(map(width, narrow)) <= 20


@given(st.lists(st.lists(st.text(max_size=40), min_size=4, max_size=4), max_size=5), st.integers(22, 200))
def test_no_line_is_wider_than_the_terminal(rows: list[list[str]], total: int) -> None:
    lines = table([Column("A", 3), Column("B", 3), Column("C", 3, spare=1), Column("D", 3, spare=2)], rows, total)
    assert len(lines) == len(rows) + 1
    assert max(map(width, lines)) <= total
    assert all("\n" not in line and "\x1b" not in line for line in lines)


@given(st.text(max_size=50), st.integers(1, 30))
def test_clip_and_pad(text: str, columns: int) -> None:
    text = plain(text)
    assert width(clip(text, columns)) <= columns
    assert width(pad(clip(text, columns), columns)) == columns


def test_widths() -> None:
    assert [width(text) for text in ("abc", "寿司", "é", "e\u0301", "")] == [3, 4, 1, 1, 0]
    assert clip("寿司寿司", 5) == "寿司…"


def test_control_characters_cannot_move_the_cursor() -> None:
    assert plain("a\x1b[31mb\nc\td\u202e\r\n\x9b\x00\ud800") == r"a\x1b[31mb c d\u202e \x9b\x00\ud800"
    assert visible("a\x1b\nb\t\r") == "a\\x1b\nb\t\\r"
    assert visible("每周　报告\u00a0x") == "每周　报告\u00a0x"


@given(st.text())
def test_json_with_everything_visible_is_the_same_json(text: str) -> None:
    shown = visible_json(json.dumps({text: [text]}, ensure_ascii=False, indent=2))
    assert visible(shown) == shown
    assert json.loads(shown) == {text: [text]}


@pytest.mark.parametrize(
    ("value", "text"),
    [(True, "true"), (None, "-"), ([], "-"), (["a", 1], "[a, 1]"), ({"a": {"b": False}}, "{a: {b: false}}"), (0, "0")],
)
def test_values_as_a_file_has_them(value: object, text: str) -> None:
    assert written(value) == text


def test_breaking_into_lines() -> None:
    assert broken("a bb ccc dddd", 6) == ["a bb", "ccc", "dddd"]
    assert broken("waytoolongword x", 5) == ["wayto", "olong", "word", "x"]
    assert broken("x waytoolong", 5) == ["x", "wayto", "olong"]
    assert broken("", 5) == [""]


@given(st.text(max_size=80), st.integers(2, 30))
def test_nothing_is_lost_by_breaking(text: str, columns: int) -> None:
    lines = broken(plain(text), columns)
    assert max(map(width, lines)) <= columns
    assert "".join(lines).replace(" ", "") == plain(text).replace(" ", "")


def test_a_wrapped_cell_goes_on_in_further_lines() -> None:
    columns = [Column("KEY"), Column("VALUE", 6, wrap=True), Column("WHERE")]
    rows = [["command", "one two three", "a:1"], ["x", "y", "b:2"]]
    assert table(columns, rows, 24) == [
        "KEY      VALUE     WHERE",
        "command  one two   a:1\n         three",
        "x        y         b:2",
    ]
    assert "one two three" in table(columns, rows, None)[1]


def test_a_long_cell_moves_only_its_own_line_where_nothing_limits_the_width() -> None:
    lines = table([Column("A"), Column("B")], [["x" * 100, "1"], ["y", "2"]], None)
    assert lines == ["A" + " " * 61 + "B", "x" * 100 + "  1", "y" + " " * 61 + "2"]


@pytest.mark.parametrize(("count", "text"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (1 << 50, "1024.0 TiB")])
def test_sizes(count: int, text: str) -> None:
    assert size(count) == text
