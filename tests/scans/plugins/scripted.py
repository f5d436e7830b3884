"""What jobs.yaml names in the tests of scans; what is listed there, a test says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from scheduler.core.compensator import Coverage, Cursor, Page, Window


@dataclass(frozen=True, slots=True)
class Scripted:
    kind: ClassVar[str] = "scripted"
    secret_options: ClassVar[tuple[str, ...]] = ()
    account: str = ""

    def pages(self, window: Window, cursor: Cursor | None) -> Iterator[Page]:
        yield Page(())

    def coverage(self) -> Coverage:
        return Coverage(None)
