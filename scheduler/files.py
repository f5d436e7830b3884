"""The jobs file of this daemon: read, remembered as long as its texts stay the same, and judged."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from pathlib import Path

from scheduler.config.advice import advise
from scheduler.config.canary import with_canary, without_canary
from scheduler.config.diff import describe
from scheduler.config.load import Loaded, load, load_texts, texts_of
from scheduler.config.problem import ConfigError
from scheduler.config.sources import Disk
from scheduler.core.job import Configuration


class JobsFile:
    """`path`: a file, or a folder whose *.yaml files are the configuration. Any thread may use it. Beside what is
    written there, what is loaded has the canary."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._advice: tuple[str, tuple[str, ...]] | None = None
        self._loaded: Loaded | None = None

    @property
    def folder(self) -> Path:
        """What relative paths in it are relative to."""
        return self.path if self.path.is_dir() else self.path.parent

    def load(self) -> Configuration:
        """ConfigError with every error of the file."""
        self._loaded = load(Disk(self.path), environ=os.environ)
        return with_canary(self._loaded.configuration)

    def load_texts(self, files: Mapping[str, str]) -> Configuration:
        """A configuration that was stored, with the values that this machine's environment gives it."""
        return with_canary(load_texts(files, environ=os.environ))

    def warnings(self, configuration: Configuration, jobs: Collection[str] | None = None) -> tuple[str, ...]:
        """What `check` would say of it, if it is the one that was read last; given some `jobs`, only of these."""
        if jobs is None and self._advice is not None and self._advice[0] == configuration.hash:
            return self._advice[1]
        loaded = self._loaded or self._read_again()
        if loaded is None or loaded.configuration.hash != configuration.hash:
            return ()
        said = tuple(str(one) for one in advise(loaded, datetime.now(UTC), os.environ, jobs=jobs))
        if jobs is None:
            self._advice = (configuration.hash, said)
        return said

    def let_go(self) -> None:
        """Of the texts and trees from which the configuration was made: several times what it takes itself. Who asks
        for warnings later waits until they are read again."""
        self._loaded = None

    def _read_again(self) -> Loaded | None:
        try:
            return load(Disk(self.path), environ=os.environ)
        except ConfigError:
            return None

    @staticmethod
    def describe(old: Configuration | None, new: Configuration) -> Mapping[str, tuple[str, ...]]:
        return describe(None if old is None else without_canary(old), without_canary(new))

    def fingerprint(self) -> str | None:
        """Changes when any text of the configuration does; None while it cannot be read at all."""
        try:
            texts = texts_of(self.path)
        except ConfigError as error:
            return hashlib.sha256(str(error).encode("utf-8", "surrogatepass")).hexdigest()
        return hashlib.sha256(repr(sorted(texts.items())).encode("utf-8", "surrogatepass")).hexdigest()
