"""The main file and all it includes, put together: one `defaults`, all queues, channels, sources and jobs, each at its
place."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import PydanticCustomError

from scheduler.config.interpolation import REFERENCE, REPLACED, Interpolation
from scheduler.config.places import Place
from scheduler.config.problem import ConfigError, Path, Problem
from scheduler.config.refusal import shown
from scheduler.config.sources import ROOT, Source
from scheduler.config.syntax import parse
from scheduler.config.translate import unknown_key
from scheduler.config.tree import Tree

TOP = {"version", "include", "defaults", "queues", "notify", "sources", "jobs"}
SECTIONS = ("defaults", "queues", "notify", "sources", "jobs")
MERGED = ("env", "secrets", "limits")
"""Mappings that a job adds to those of `defaults`; everything else replaces it."""
VERSION = 1
MOST_FILES = 1_000
_OF_A_JOB = {"schedule", "command", "http"}
"""Keys by which a job is known that was written at the top."""
_JOBS_HINT = "write `jobs:` and the jobs below it; `jobs: {}` if there shall be none"


@dataclass(slots=True)
class Bundle:
    """`sections` hold the plain values by section and key, `trees` the file in which each was written."""

    source: Source
    files: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    sections: dict[str, dict[str, Any]] = field(default_factory=lambda: {name: {} for name in SECTIONS})
    trees: dict[tuple[str, str], Tree] = field(default_factory=dict)
    has_jobs: bool = False

    def place(self, path: Path, *, key: bool = False) -> tuple[str, Place] | None:
        """File and place of `(section, key, …)`; None if nobody wrote it."""
        tree = self.trees.get((str(path[0]), str(path[1]))) if len(path) > 1 else None
        return None if tree is None else (tree.name, tree.places.of(path, key=key))

    def origin(self, job: str, key: str) -> Path | None:
        """The path at which a job's value was written: in the job, or in `defaults`; None if it was not."""
        own = self.sections["jobs"].get(job)
        if isinstance(own, dict) and own.get(key) is not None:
            return ("jobs", job, key)
        return ("defaults", key) if self.sections["defaults"].get(key) is not None else None

    def written_at(self, job: str, path: Path) -> Path:
        """Where the value at a path below a job was written: in the job or in `defaults`; nowhere: the job itself."""
        if not path:
            return ("jobs", job)
        key = str(path[0])
        own, common = self.sections["jobs"].get(job), self.sections["defaults"].get(key)
        mine = own.get(key) if isinstance(own, dict) else None
        inherited = key in MERGED and len(path) > 1 and isinstance(common, dict) and path[1] in common
        if inherited and not (isinstance(mine, dict) and path[1] in mine):
            return ("defaults", *path)
        origin = self.origin(job, key)
        return ("jobs", job) if origin is None else (*origin, *path[1:])

    def _has_reference(self, path: Path) -> bool:
        """Whether the value at a path is a text with a `${NAME}` of which nobody takes notice."""
        value: Any = self.sections
        for part in path:
            try:
                value = value if isinstance(value, str) else value[part]
            except (KeyError, IndexError, TypeError):
                return False
        filled = {"url", "workdir", "with", "headers", "secrets"} & {*path}
        return isinstance(value, str) and not filled and REFERENCE.search(value) is not None

    def complain(self, path: Path, reason: str, hint: str | None, *, key: bool = False, job: str | None = None) -> None:
        """Adds a problem at a value, or at its key."""
        if hint is not None and self._has_reference(path):
            hint = f"{REPLACED}; write the value out"
        file, (line, column) = self.place(path, key=key) or (self.source.shown(self.source.main), (0, 0))
        self.problems.append(Problem(file, line, column, path, reason, hint, job))


def gather(source: Source, interpolation: Interpolation) -> Bundle:
    """Reads and parses everything. Problems are collected; what could be read is there nevertheless."""
    bundle = Bundle(source)
    try:
        text = source.read(ROOT)
    except ConfigError as error:
        bundle.problems.extend(error.problems)
        return bundle
    _add(bundle, ROOT, text, interpolation)
    if not bundle.has_jobs and not bundle.problems:
        file = source.shown(source.main)
        if len(bundle.files) == 1:
            bundle.problems.append(Problem(file, 0, 0, (), "no *.yaml file in this folder", "write one: schedctl init"))
        else:
            bundle.problems.append(Problem(file, 1, 1, (), "there is no `jobs` key", _JOBS_HINT))
    return bundle


def _add(bundle: Bundle, name: str, text: str, interpolation: Interpolation) -> None:
    bundle.files[name] = text
    try:
        tree = parse(text, bundle.source.shown(name))
    except ConfigError as error:
        bundle.problems.extend(error.problems)
        return
    bundle.problems.extend(tree.problems)
    top = tree.data
    if not isinstance(top, dict):
        reason = "the file is empty" if top is None else f"{shown(top)} where keys are expected"
        bundle.problems.append(Problem(tree.name, 1, 1, (), reason, _JOBS_HINT))
        return
    for key in top:
        if key not in TOP and not key.startswith("x-"):
            reason, remedy = unknown_key(key, TOP)
            if isinstance(top[key], dict) and top[key].keys() & _OF_A_JOB:
                remedy = "a job belongs below `jobs:`, indented"
            _complain(bundle, tree, (key,), reason, remedy, key=True)
    version = top.get("version")
    if version is not None and (version != VERSION or isinstance(version, bool)):
        _complain(bundle, tree, ("version",), f"version {shown(version)} is unknown", f"write version: {VERSION}")
    for section in SECTIONS:
        _section(bundle, tree, section, top)
    _include(bundle, tree, name, top.get("include"), interpolation)


def _section(bundle: Bundle, tree: Tree, section: str, top: dict[str, Any]) -> None:
    values = top.get(section)
    if values is None:
        if section == "jobs" and section in top:
            _complain(bundle, tree, (section,), "`jobs` has no value", _JOBS_HINT)
            bundle.has_jobs = True
        return
    if not isinstance(values, dict):
        hint = "write one name per line below it, and its keys below the name"
        _complain(bundle, tree, (section,), f"{shown(values)} is not a mapping", hint)
        bundle.has_jobs = bundle.has_jobs or section == "jobs"
        return
    bundle.has_jobs = bundle.has_jobs or section == "jobs"
    merged, trees = bundle.sections[section], bundle.trees
    for key, value in values.items():
        first = trees.setdefault((section, key), tree)
        if first is tree:
            merged[key] = value
            continue
        line, _ = first.places.of((section, key), key=True)
        _complain(
            bundle,
            tree,
            (section, key),
            f"`{key[:100]}` is given twice, first in {first.name}:{line}",
            "keep one of the two",
            key=True,
        )


def _include(bundle: Bundle, tree: Tree, name: str, patterns: Any, interpolation: Interpolation) -> None:
    if patterns is None:
        return
    listed = [patterns] if isinstance(patterns, str) else patterns
    if not isinstance(listed, list):
        _complain(
            bundle, tree, ("include",), f"{shown(patterns)} is not a list of files", 'write include: ["jobs.d/*.yaml"]'
        )
        return
    for index, pattern in enumerate(listed):
        path: Path = ("include", index) if isinstance(patterns, list) else ("include",)
        if not isinstance(pattern, str) or not pattern.strip():
            _complain(bundle, tree, path, f"{shown(pattern)} is not a file name", 'write include: ["jobs.d/*.yaml"]')
            continue
        try:
            filled = pattern if name == ROOT else interpolation.fill(pattern)
        except PydanticCustomError as error:
            context = error.context or {}
            _complain(bundle, tree, path, str(context.get("reason")), context.get("hint"))
            continue
        wanted = posixpath.join(posixpath.dirname(name), filled)
        if "\0" in wanted:
            _complain(bundle, tree, path, "a NUL character in a file name", "remove it")
            continue
        found = bundle.source.find(wanted)
        if not found and not any(sign in wanted for sign in "*?["):
            _one_file(bundle, tree, name, path, posixpath.normpath(wanted), interpolation)
        for one in found:
            if len(bundle.files) > MOST_FILES:
                _complain(bundle, tree, path, f"more than {MOST_FILES} files", "put several jobs into one file")
                return
            if one not in bundle.files:
                _one_file(bundle, tree, name, path, one, interpolation)


def _one_file(bundle: Bundle, tree: Tree, name: str, path: Path, file: str, interpolation: Interpolation) -> None:
    """Reads the file that `name` includes at `path`."""
    try:
        text = bundle.source.read(file)
    except ConfigError as error:
        (problem,) = error.problems
        if name == ROOT or problem.line:
            bundle.problems.append(problem)
        else:
            folder = problem.reason.endswith("Is a directory")
            hint = f"write {file}/*.yaml" if folder else "the path is relative to this file"
            _complain(bundle, tree, path, f"{shown(file)} cannot be included: {problem.reason}", hint)
    else:
        _add(bundle, file, text, interpolation)


def _complain(bundle: Bundle, tree: Tree, path: Path, reason: str, hint: str | None, *, key: bool = False) -> None:
    line, column = tree.places.of(path, key=key)
    bundle.problems.append(Problem(tree.name, line, column, path, reason, hint))
