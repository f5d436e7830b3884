from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest

from compensators import registry
from compensators.common.options import fit
from scheduler.core.errors import InvalidInput

GOOD = '''
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import ClassVar, Literal

from scheduler.core.compensator import Coverage


@dataclass(frozen=True, slots=True)
class Mine:
    kind: ClassVar[str] = "mine"
    secret_options: ClassVar[tuple[str, ...]] = ("key",)
    source_options: ClassVar[tuple[str, ...]] = ("id", "type")

    id: str
    """Where the id
    lies."""
    key: str = field(repr=False)
    type: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    back: timedelta | None = None
    order: Literal["up", "down"] = "up"

    def coverage(self):
        return Coverage(None)

    def pages(self, window, cursor):
        yield from ()
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(GOOD)
    return tmp_path


def problem(folder: Path, kind: str = "mine", event: Mapping[str, str] | None = None, **written: Any) -> str:
    with pytest.raises(InvalidInput) as error:
        registry.build(kind, written, {"id": "data.id"} if event is None else event, [str(folder)])
    assert error.value.hint, "says what to do"
    return str(error.value)


def test_ours_are_there_and_every_option_says_what_it_is() -> None:
    found = registry.discover()
    assert set(found) == {"github_deliveries", "http_list", "shopify_updated", "sql_query", "stripe_events"}
    undocumented = [f"{kind}.{one.name}" for kind in found for one in registry.options(kind) if not one.doc]
    assert not undocumented


def test_options_are_what_the_dataclass_has(folder: Path) -> None:
    options = {one.name: one for one in registry.options("mine", [str(folder)])}
    assert list(options) == ["id", "key", "type", "headers", "back", "order"]
    assert options["id"].doc == "Where the id lies."
    assert [one.name for one in options.values() if one.required] == ["key"]
    assert [one.name for one in options.values() if one.secret] == ["key"]
    assert [one.name for one in options.values() if one.from_source] == ["id", "type"]
    assert options["back"].type == timedelta | None
    assert (get_origin(options["order"].type), get_args(options["order"].type)) == (Literal, ("up", "down"))


def test_values_become_what_the_fields_are(folder: Path) -> None:
    written = {"key": 17, "back": "2d", "headers": {"X-A": 1}, "order": "down"}
    made: Any = registry.build("mine", written, {"id": "data.id", "type": ""}, [str(folder)])
    assert dataclasses.asdict(made) == {
        "id": "data.id",
        "key": "17",
        "type": "",
        "headers": {"X-A": "1"},
        "back": timedelta(days=2),
        "order": "down",
    }
    assert registry.build("mine", {"key": "k", "id": "own"}, {"id": "data.id"}, [str(folder)]).id == "own"  # type: ignore[attr-defined]


def test_what_cannot_be_is_refused_with_its_place(folder: Path) -> None:
    assert problem(folder, key="k", ky=1).startswith("with.ky: mine has no such option; did you mean key?")
    assert "no such option; there are id key" in problem(folder, key="k", zzz=1)
    assert problem(folder).startswith("with.key: mine needs it")
    assert problem(folder, key=["k"]).startswith("with.key: it is not a text")
    assert problem(folder, key="k", back="5").startswith("with.back: duration '5' has no unit")
    assert problem(folder, key="k", order="left").startswith("with.order: 'left' is not known; write one of up down")
    assert problem(folder, key="k", headers=[1]).startswith("with.headers: it is not names with values")
    assert problem(folder, event={}, key="k").startswith("with.id: mine needs it; write it: Where the id lies.")
    assert "a list has no headers" in problem(folder, event={"id": "header:X-Id"}, key="k")


@pytest.mark.parametrize(
    ("type_", "value", "what"),
    [(int, "5", "a whole number"), (bool, 1, "true or false"), (float, True, "a number"), (str, None, "a text")],
)
def test_types_are_not_taken_for_each_other(type_: Any, value: Any, what: str) -> None:
    with pytest.raises(InvalidInput, match=f"here: it is not {what}"):
        fit(type_, value, "here")


def test_a_text_is_a_list_of_one() -> None:
    assert fit(tuple[str, ...], "a", "here") == ("a",)
    assert fit(tuple[str, ...], ["a", 2], "here") == ("a", "2")


def test_names_that_are_nearly_right(folder: Path) -> None:
    assert problem(folder, "mien").startswith("there is no compensator mien; did you mean mine?")
    assert "github_deliveries http_list mine" in problem(folder, "zzz")
    with pytest.raises(InvalidInput, match="SCHEDULER_PLUGINS names folders"):
        registry.load("mine")


def test_a_broken_file_is_an_error_for_those_who_name_it_alone(folder: Path) -> None:
    (folder / "broken.py").write_text("x = 1\nimport there_is_no_such_module\n")
    (folder / "typo.py").write_text("def f(:\n")
    (folder / "leaves.py").write_text("raise SystemExit(3)\n")
    assert problem(folder, "broken").startswith(f"{folder / 'broken.py'}:2: the compensator cannot be imported: Module")
    assert problem(folder, "typo").startswith(
        f"{folder / 'typo.py'}:1: the compensator cannot be imported: SyntaxError"
    )
    assert "SystemExit: 3" in problem(folder, "leaves")
    assert registry.build("mine", {"key": "k"}, {"id": "x"}, [str(folder)])
    assert set(registry.discover([str(folder)])) == {*registry.discover(), "mine"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("class Mine", "class Other"), ""),
        (
            ('kind: ClassVar[str] = "mine"', 'kind: ClassVar[str] = "other"'),
            "its kind is 'other' and the file is named",
        ),
        (("def pages", "def page"), "Mine is no compensator: it has no pages"),
        (("def coverage", "def cover"), "Mine is no compensator: it has no coverage"),
        (("@dataclass(frozen=True, slots=True)", ""), "Mine is no compensator: it is no dataclass"),
        (("timedelta | None = None", "complex = 1j"), "the field back has a type that jobs.yaml cannot hold"),
        (("timedelta | None = None", "Nope = None"), "name 'Nope' is not defined"),
    ],
)
def test_what_is_no_compensator_is_told_what_it_lacks(folder: Path, change: tuple[str, str], said: str) -> None:
    (folder / "mine.py").write_text(GOOD.replace(*change))
    if not said:
        assert registry.load("mine", [str(folder)]).__name__ == "Other"
        return
    told = problem(folder, key="k")
    assert said in told
    assert str(folder / "mine.py") in told


def test_a_file_without_any_says_so(folder: Path) -> None:
    (folder / "mine.py").write_text("x = 1\n")
    assert "defines no compensator; define a dataclass with `kind`" in problem(folder)


def test_two_of_one_name_are_both_named(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    (other / "mine.py").write_text(GOOD)
    (folder / "http_list.py").write_text(GOOD)
    with pytest.raises(InvalidInput, match="several compensators mine: ") as error:
        registry.load("mine", [str(folder), str(other)])
    assert str(other / "mine.py") in str(error.value)
    assert "rename one" in problem(folder, "http_list")


def test_files_that_begin_with_an_underscore_are_none(folder: Path) -> None:
    (folder / "_helper.py").write_text("raise AssertionError\n")
    (folder / "not-a-name.py").write_text("raise AssertionError\n")
    assert set(registry.files([str(folder), str(folder / "nowhere")])) == {*registry.files(), "mine"}


def test_a_changed_file_is_read_anew(folder: Path) -> None:
    before = registry.load("mine", [str(folder)])
    assert registry.load("mine", [str(folder)]) is before
    (folder / "mine.py").write_text(GOOD.replace('type: str = ""', 'type: str = "x"'))
    after: Any = registry.load("mine", [str(folder)])
    assert after("id", "key").type == "x"


def test_folders_of_the_setting() -> None:
    assert registry.folders_of("/a:b:") == ("/a", "b")
    assert registry.folders_of(None) == ()
