"""README.md, README.zh-CN.md and docs/comparison.md: what they show works, agrees, and has its source."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from scheduler.config.check import check
from scheduler.config.sources import Stored
from scheduler.config.syntax import parse
from tests.docs.markdown import DOCS, ROOT, anchors, blocks, commands, links, sections, tables, unfenced

ENGLISH = ROOT / "README.md"
CHINESE = ROOT / "README.zh-CN.md"
COMPARISON = DOCS / "comparison.md"
BOTH = pytest.mark.parametrize("path", [ENGLISH, CHINESE], ids=lambda path: path.name)
EVERY = pytest.mark.parametrize("path", [ENGLISH, CHINESE, COMPARISON], ids=lambda path: path.name)

(ROWS,) = tables(ENGLISH.read_text("utf-8"))
PROGRAMS = ROWS[0][1:]
SOURCES = {
    name: rows[1:]
    for name, body in sections(COMPARISON.read_text("utf-8"), 2).items()
    for rows in tables(body)
    if rows[0] == ["program", "answer", "what it rests on"]
}


def kinds(text: str) -> list[str]:
    """Its headings, list items and tables in their order, each as what it is: the skeleton of a translation."""
    return re.findall(r"^(#+|\*\*|- |\||```\w*)", text, re.MULTILINE)


@BOTH
def test_it_is_short(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= 195


@EVERY
def test_links_lead_somewhere(path: Path) -> None:
    """Files of this repository, and headings in them."""
    for link in links(path.read_text("utf-8")):
        if link.startswith("https://"):
            continue
        file, _, anchor = link.partition("#")
        target = path.parent / file if file else path
        assert target.exists(), link
        assert not anchor or anchor in anchors(target.read_text("utf-8")), link


@BOTH
def test_what_make_is_told_are_its_targets(path: Path) -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    told = re.findall(r"(?:`|^\$ )make ([a-z]+)", path.read_text("utf-8"), re.MULTILINE)
    assert {"run", "bench"} <= set(told) <= set(targets)


@BOTH
def test_the_jobs_are_good(path: Path) -> None:
    (example,) = (one for one in blocks(path.read_text("utf-8"), "yaml") if "jobs" in parse(one, "f").data)
    report = check(Stored({"f": example}, "f"), datetime(2026, 1, 1, tzinfo=UTC), environ={}, elsewhere=True)
    assert not report.errors, report.errors
    assert {one.code for one in report.warnings} <= {"clock-change"}


# ------------------------------------------------------------ two languages


def test_both_show_the_same_commands_and_outputs() -> None:
    english, chinese = (path.read_text("utf-8") for path in (ENGLISH, CHINESE))
    assert len(commands(english)) >= 12
    assert blocks(chinese, "console") == blocks(english, "console")


def test_both_show_the_same_files() -> None:
    """But for what the comments say."""
    english, chinese = (
        re.sub(r" +# .*", "", "\n".join(blocks(path.read_text("utf-8"), "yaml"))) for path in (ENGLISH, CHINESE)
    )
    assert english
    assert chinese == english


def test_both_have_the_same_skeleton_and_links() -> None:
    english, chinese = (path.read_text("utf-8") for path in (ENGLISH, CHINESE))
    assert kinds(chinese) == kinds(english)
    assert [one for one in links(chinese) if "README" not in one] == [
        one for one in links(english) if "README" not in one
    ]


def test_both_name_the_same_things_in_every_cell() -> None:
    """What is typed, numbers, and the dash are the same in every language."""
    (chinese,) = tables(CHINESE.read_text("utf-8"))
    assert [len(row) for row in chinese] == [len(row) for row in ROWS]
    assert chinese[0] == ROWS[0]
    fixed = r"`[^`]*`|\d[\d:,.]*|^–$"
    for english, translated in zip(ROWS[1:], chinese[1:], strict=True):
        for ours, theirs in zip(english, translated, strict=True):
            assert re.findall(fixed, theirs) == re.findall(fixed, ours), (ours, theirs)


def test_chinese_sentences_have_chinese_punctuation() -> None:
    plain = re.sub(r"`[^`]*`|\([^)]*\)", "", unfenced(CHINESE.read_text("utf-8")))
    assert not re.search(r"[\u4e00-\u9fff] ?[,;:!?]|[,;:!?] ?[\u4e00-\u9fff]", plain)


# ------------------------------------------------------------ the comparison


def test_each_row_has_its_sources() -> None:
    named = [re.fullmatch(r"\[(.*)\]\(docs/comparison\.md#.*\)", row[0]) for row in ROWS[1:]]
    assert [one and one[1] for one in named] == list(SOURCES)


@pytest.mark.parametrize("name", SOURCES)
def test_each_cell_is_the_one_that_has_a_source(name: str) -> None:
    (row,) = (row for row in ROWS[1:] if row[0].startswith(f"[{name}]"))
    sources = SOURCES[name]
    assert [source[0] for source in sources] == PROGRAMS
    assert [source[1] for source in sources] == row[1:]
    assert all(len(source) == 3 and len(source[2]) >= 10 for source in sources)


@pytest.mark.parametrize("name", SOURCES)
def test_what_is_said_of_others_can_be_looked_up(name: str) -> None:
    """An address, a trial that is described, or that the question is none for it."""
    settled = (
        "tried",
        "it runs nothing",
        "it has none",
        "part of most systems",
        "nothing is recorded",
        "are not recorded",
        "source, `",
    )
    above = ("the same library", "the row above")
    for program, answer, source in SOURCES[name][1:]:
        assert "https://" in source or any(words in source for words in (*settled, *above)), (program, answer)


def test_nothing_is_promised_in_the_table() -> None:
    for row in ROWS[1:]:
        assert not re.search(r"webhook|planned|soon|later|scan", row[1]), row
