"""Clocks that can be set under a program: the wall clock of its machine, with libfaketime, and the one that a database
tells. Clocks that nobody sets stay as they are."""

from __future__ import annotations

import ctypes.util
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import psycopg
import pytest
from psycopg import sql

PLACES = (
    "/usr/lib/x86_64-linux-gnu/faketime",
    "/usr/lib/aarch64-linux-gnu/faketime",
    "/usr/lib/faketime",
    "/usr/local/lib/faketime",
)
_NAME = "libfaketimeMT.so.1"


def installed() -> str | None:
    """The library, if it is here."""
    for place in PLACES:
        if (Path(place) / _NAME).exists():
            return str(Path(place) / _NAME)
    return ctypes.util.find_library("faketimeMT")


def library() -> str:
    """The library; where it is missing the test is skipped, loudly, and fails in CI."""
    found = installed()
    if found is None:
        if os.environ.get("CI"):
            pytest.fail("libfaketime is missing: .ci/run installs it")
        pytest.skip("LOUDLY: no libfaketime here, so no clock is set; apt-get install faketime brings it")
    return found


class _Clock:
    """A clock that reads from a file how many seconds it is ahead of the real one: `offset`, in the words `told`."""

    told: ClassVar[str] = "{:+.3f}\n"

    def __init__(self, path: Path) -> None:
        """`path`: a file of its own, in a folder that the programs' user may enter."""
        self._path = path
        self.offset = 0.0
        self.set(0.0)

    def step(self, seconds: float) -> None:
        """From now on the clock shows so many seconds more (or less) than it would have."""
        self.set(self.offset + seconds)

    def set(self, offset: float) -> None:
        """From now on the clock is so far ahead of the real one. Whoever reads meanwhile reads the old or the new."""
        self.offset = offset
        fresh = self._path.with_name(self._path.name + ".new")
        fresh.write_text(self.told.format(offset))
        fresh.chmod(0o644)
        fresh.rename(self._path)


class FakeClock(_Clock):
    """The wall clock of all programs that are started with `environment`: the real one plus `offset` seconds, also
    while they run. CLOCK_MONOTONIC and CLOCK_BOOTTIME stay real."""

    def __init__(self, path: Path) -> None:
        self._library = library()
        super().__init__(path)

    @property
    def environment(self) -> Mapping[str, str]:
        return {
            "LD_PRELOAD": self._library,
            "FAKETIME_TIMESTAMP_FILE": str(self._path),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            # Its remedy for an old glibc makes every wait of a thread for the interpreter's lock end at once: twelve
            # times as much work for a program with several threads.
            "FAKETIME_FORCE_MONOTONIC_FIX": "0",
        }


class DatabaseClock(_Clock):
    """What a PostgreSQL says when somebody asks for the time by `clock_timestamp()`, in all sessions that begin after
    `install`: the real time plus `offset` seconds. Its own time limits stay as they are, as under a clock that is set
    while nobody waits. (With libfaketime they grow by as much as the clock is ahead, which no clock does.)"""

    told: ClassVar[str] = "{:+.3f} seconds"

    def install(self, connection: psycopg.Connection[Any]) -> None:
        """In the database of this superuser's connection."""
        told = sql.SQL("pg_read_file({})::interval").format(sql.Literal(str(self._path)))
        connection.execute(
            sql.SQL(
                "CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE "
                "RETURN pg_catalog.clock_timestamp() + {}"
            ).format(told)
        )
        # Without its place in the list pg_catalog comes first.
        path = sql.SQL("ALTER DATABASE {} SET search_path = public, pg_catalog")
        connection.execute(path.format(sql.Identifier(connection.info.dbname)))
