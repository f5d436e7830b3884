"""Wall clocks that can be set under a program, with libfaketime; clocks that nobody sets stay as they are."""

from __future__ import annotations

import ctypes.util
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

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


class FakeClock:
    """The wall clock of all programs that are started with `environment`: the real one plus `offset` seconds, also
    while they run. CLOCK_MONOTONIC and CLOCK_BOOTTIME stay real. `path`: a file of its own, in a folder that the
    programs' user may enter."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._library = library()
        self.offset = 0.0
        self.set(0.0)

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

    def step(self, seconds: float) -> None:
        """From now on the clock shows so many seconds more (or less) than it would have."""
        self.set(self.offset + seconds)

    def set(self, offset: float) -> None:
        """From now on the clock is so far ahead of the real one."""
        self.offset = offset
        fresh = self._path.with_name(self._path.name + ".new")
        fresh.write_text(f"{offset:+.3f}\n")
        fresh.chmod(0o644)
        fresh.rename(self._path)
