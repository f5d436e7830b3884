"""Where the texts of a configuration come from: files below the main one, or a stored generation.

A name is the path relative to the main file's folder, with `/`, so that a stored generation means the same on
every node; files elsewhere keep their absolute path.
"""

from __future__ import annotations

import errno
import fnmatch
import glob
import json
import os
import posixpath
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from scheduler.config.problem import ConfigError, Problem
from scheduler.config.text import MAX_BYTES, decode

ROOT = "."
"""The name of a text that only includes the main file, or all files of a folder: where every reading begins."""


class Source(Protocol):
    """Texts by name."""

    main: str
    """The file, or the folder, that a person would name."""

    @property
    def folder(self) -> Path | None:
        """What relative paths in it are relative to; None if that is unknown."""
        ...

    def read(self, name: str) -> str:
        """ConfigError if there is no such text, or it is none."""
        ...

    def find(self, pattern: str) -> list[str]:
        """The names that match a pattern (relative to the main file's folder), sorted."""
        ...

    def shown(self, name: str) -> str:
        """The name as messages tell it."""
        ...


class Disk:
    """Files: `path` is the main file, or a folder whose *.yaml files are the configuration."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._given = Path(path)
        folder = self._given.is_dir()
        self._base = self.folder = self._given if folder else self._given.parent
        self._root = "*.yaml" if folder else glob.escape(self._given.name)
        self.main = ROOT if folder else self._given.name

    def read(self, name: str) -> str:
        if name == ROOT:
            return f"include: [{json.dumps(self._root)}]\n"
        path, shown = self._base / name, self.shown(name)
        try:
            # Opening a pipe would wait for somebody to write into it.
            with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
                if stat.S_ISFIFO(os.fstat(file.fileno()).st_mode):
                    raise OSError(errno.EINVAL, "it is a pipe, not a file")
                raw = file.read(MAX_BYTES + 1)
        except OSError as error:
            reason = f"cannot be read: {error.strerror or error}"
            hint = "check the path and the permissions; `schedctl init` writes a first one"
            raise ConfigError([Problem(shown, 0, 0, (), reason, hint)]) from None
        return decode(raw, shown)

    def find(self, pattern: str) -> list[str]:
        found = glob.glob(pattern, root_dir=self._base, recursive=True)
        return sorted(posixpath.normpath(one) for one in found if (self._base / one).is_file())

    def shown(self, name: str) -> str:
        return str(self._given if name == ROOT else self._base / name)


class Stored:
    """Texts of a generation, as `Configuration.files` holds them."""

    folder: Path | None = None

    def __init__(self, files: Mapping[str, str], main: str | None = None) -> None:
        self._files = dict(files)
        if main is not None and ROOT not in files:
            self._files[ROOT] = f"include: [{json.dumps(glob.escape(main))}]\n"
        self.main = main or ROOT

    def read(self, name: str) -> str:
        try:
            return self._files[name]
        except KeyError:
            raise ConfigError([Problem(name, 0, 0, (), "is not part of this generation", "reload the files")]) from None

    def find(self, pattern: str) -> list[str]:
        wanted = posixpath.normpath(pattern).split("/")
        return sorted(name for name in self._files if name != ROOT and _matches(name.split("/"), wanted))

    def shown(self, name: str) -> str:
        return name


def _matches(parts: list[str], wanted: list[str]) -> bool:
    if not wanted:
        return not parts
    if wanted[0] == "**":
        return _matches(parts, wanted[1:]) or (bool(parts) and _matches(parts[1:], wanted))
    if not parts or (parts[0].startswith(".") and not wanted[0].startswith(".")):
        return False
    return fnmatch.fnmatchcase(parts[0], wanted[0]) and _matches(parts[1:], wanted[1:])
