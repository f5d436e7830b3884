"""Several files as one configuration, from disk and from a stored generation."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.config.load import load_file, load_texts, texts_of
from scheduler.config.problem import ConfigError


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_yaml", ".yaml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def job(name: str) -> str:
    return f"jobs: {{{name}: {{command: x}}}}\n"


def test_includes_are_relative_to_the_file_that_includes(tmp_path: Path) -> None:
    write(
        tmp_path,
        jobs_yaml='include: ["jobs.d/*.yaml"]\njobs: {}\n',
        **{"jobs.d__a_yaml": "include: sub/b.yaml\n" + job("a"), "jobs.d__sub__b_yaml": job("b")},
    )
    configuration = load_file(tmp_path / "jobs.yaml")
    assert list(configuration.jobs) == ["a", "b"]
    assert set(configuration.files) == {".", "jobs.yaml", "jobs.d/a.yaml", "jobs.d/sub/b.yaml"}


def test_a_generation_is_read_like_the_files_it_came_from(tmp_path: Path) -> None:
    write(
        tmp_path,
        jobs_yaml='include: ["jobs.d/**/*.yaml"]\ndefaults: {grace: 5m}\njobs: {}\n',
        **{"jobs.d__a_yaml": job("a"), "jobs.d__deep__er__b_yaml": job("b"), "jobs.d__.hidden_yaml": job("c")},
    )
    from_disk = load_file(tmp_path / "jobs.yaml")
    again = load_texts(dict(sorted(from_disk.files.items(), reverse=True)))
    assert list(from_disk.jobs) == ["a", "b"]
    assert (again.hash, dict(again.jobs), again.files) == (from_disk.hash, dict(from_disk.jobs), from_disk.files)


def test_a_folder_is_all_its_yaml_files(tmp_path: Path) -> None:
    write(tmp_path, a_yaml="defaults: {grace: 5m}\n" + job("a"), b_yaml=job("b"), **{"c.yml": job("c")})
    configuration = load_file(tmp_path)
    assert list(configuration.jobs) == ["a", "b"]
    assert configuration.jobs["b"].watch.grace.total_seconds() == 300
    assert load_texts(configuration.files).hash == configuration.hash


def test_a_folder_without_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no \*.yaml file"):
        load_file(tmp_path)


def test_a_name_given_twice_names_both_places(tmp_path: Path) -> None:
    write(tmp_path, a_yaml="\n" + job("x"), b_yaml=job("x"))
    with pytest.raises(ConfigError) as caught:
        load_file(tmp_path)
    (found,) = caught.value.problems
    assert str(found).startswith(f"{tmp_path}/b.yaml:1:8: jobs.x: `x` is given twice, first in {tmp_path}/a.yaml:2")


def test_defaults_of_two_files_are_one(tmp_path: Path) -> None:
    write(tmp_path, a_yaml="defaults: {grace: 5m}\njobs: {}\n", b_yaml="defaults: {grace: 6m}\n" + job("b"))
    with pytest.raises(ConfigError, match="`grace` is given twice"):
        load_file(tmp_path)


def test_an_included_file_that_was_emptied_is_refused(tmp_path: Path) -> None:
    write(tmp_path, jobs_yaml="include: [b.yaml]\njobs: {}\n", b_yaml="")
    with pytest.raises(ConfigError, match=r"b\.yaml:1:1: the file is empty"):
        load_file(tmp_path / "jobs.yaml")


def test_files_that_include_each_other_are_read_once(tmp_path: Path) -> None:
    write(tmp_path, jobs_yaml="include: [b.yaml]\n" + job("a"), b_yaml="include: [jobs.yaml]\n" + job("b"))
    assert list(load_file(tmp_path / "jobs.yaml").jobs) == ["a", "b"]


def test_errors_of_all_files_come_at_once(tmp_path: Path) -> None:
    write(tmp_path, a_yaml=job("a") + "foo: 1\n", b_yaml="jobs: {b: {command: x, timeout: 5}}\n", c_yaml="jobs: [a\n")
    with pytest.raises(ConfigError) as caught:
        load_file(tmp_path)
    assert [(one.file.rpartition("/")[2], one.line) for one in caught.value.problems] == [
        ("a.yaml", 2),
        ("c.yaml", 1),
        ("b.yaml", 1),
    ]


def test_a_pattern_that_matches_nothing_is_fine_and_a_name_is_not(tmp_path: Path) -> None:
    write(tmp_path, jobs_yaml="include: ['jobs.d/*.yaml']\njobs: {}\n", b_yaml="include: [c.yaml]\njobs: {}\n")
    assert load_file(tmp_path / "jobs.yaml").jobs == {}
    with pytest.raises(ConfigError, match=r"`c\.yaml` cannot be included"):
        load_file(tmp_path / "b.yaml")


def test_include_is_interpolated(tmp_path: Path) -> None:
    write(tmp_path, jobs_yaml="include: ['${WHERE}.yaml']\njobs: {}\n", prod_yaml=job("p"))
    assert list(load_file(tmp_path / "jobs.yaml", environ={"WHERE": "prod"}).jobs) == ["p"]


def test_a_main_file_with_odd_characters_in_its_name(tmp_path: Path) -> None:
    path = tmp_path / 'a [b] $$"c".yaml'
    path.write_text(job("a"))
    configuration = load_file(path)
    assert load_texts(configuration.files).hash == configuration.hash


def test_a_file_elsewhere_keeps_its_path(tmp_path: Path) -> None:
    write(tmp_path, conf__jobs_yaml=f"include: ['{tmp_path}/else/*.yaml', ../up.yaml]\njobs: {{}}\n")
    write(tmp_path, else__e_yaml=job("e"), up_yaml=job("u"))
    configuration = load_file(tmp_path / "conf" / "jobs.yaml")
    assert list(configuration.jobs) == ["e", "u"]
    assert {f"{tmp_path}/else/e.yaml", "../up.yaml"} < set(configuration.files)
    assert load_texts(configuration.files).jobs.keys() == configuration.jobs.keys()


def test_texts_without_judgement(tmp_path: Path) -> None:
    write(tmp_path, jobs_yaml="include: [b.yaml]\njobs: {}\n", b_yaml=job("b") + "foo: 1\n")
    with pytest.raises(ConfigError):
        texts_of(tmp_path / "jobs.yaml")
    write(tmp_path, b_yaml="jobs: {b: {bar: 1}}\n")
    assert set(texts_of(tmp_path / "jobs.yaml")) == {".", "jobs.yaml", "b.yaml"}


def test_a_folder_is_included_by_a_pattern(tmp_path: Path) -> None:
    write(tmp_path, jobs_yaml="include: [jobs.d]\njobs: {}\n", **{"jobs.d__a_yaml": job("a")})
    with pytest.raises(ConfigError, match=r"write jobs\.d/\*\.yaml"):
        load_file(tmp_path / "jobs.yaml")
