"""Scans for tests of executors: a compensator that does what its options say, and an engine that only reads on."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from scheduler.core.compensator import (
    Compensator,
    Coverage,
    Known,
    ListingFailed,
    Page,
    Throttled,
    Window,
    answering,
)
from scheduler.core.errors import Refused
from scheduler.core.job import Job
from scheduler.core.model import FailReason, Run
from scheduler.core.outcome import Failed, Outcome, Snoozed, Succeeded
from scheduler.core.preset import EventFields
from scheduler.core.source import Source

LISTING = """
from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import ClassVar

from scheduler.core.compensator import Coverage, ListedEvent, ListingFailed, Page, Throttled, known_to_inbox


@dataclass(frozen=True, slots=True)
class Listing:
    kind: ClassVar[str] = "listing"
    secret_options: ClassVar[tuple[str, ...]] = ("key", "headers")
    source_options: ClassVar[tuple[str, ...]] = ("id",)
    id: str
    does: str = "echo"
    key: str = field(default="", repr=False)
    headers: dict[str, str] = field(default_factory=dict, repr=False)

    def coverage(self):
        return Coverage(None)

    def pages(self, window, cursor):
        print("begun", self.key, self.headers, flush=True)
        if self.does == "fail":
            raise RuntimeError("broken on purpose")
        if self.does == "tell":
            raise ListingFailed(f"401 for {self.key}", final=True)
        if self.does == "throttle":
            raise Throttled(f"429 for {self.key}", 90.0)
        if self.does == "hang":
            time.sleep(600)
        if self.does == "ask":
            print("known", sorted(known_to_inbox(["a", "b"])), sorted(known_to_inbox(["c"])), flush=True)
        for number in range(3):
            body = {"key": self.key, "id": self.id}
            yield Page((ListedEvent(f"e{number}", window.start, body),), number if number < 2 else None)
"""


def plug_in(folder: Path) -> str:
    """A folder with the compensator `listing`."""
    folder.mkdir(exist_ok=True)
    (folder / "listing.py").write_text(LISTING)
    return str(folder)


class ReadingOn:
    """Implements core.execution.Scanning. `pages`: what was read."""

    def __init__(self) -> None:
        self.coverages: list[Coverage] = []
        self.pages: list[Page] = []
        self.known: Known = lambda ids: {"a"} & set(ids)

    def source(self, name: str) -> Source:
        if name != "payments":
            raise Refused(f"there is no source {name}")
        fields = EventFields(id="data.id")
        return Source(name, "{}", "f", "hmac", fields, timedelta(days=30), timedelta(minutes=5))

    def scan(self, run: Run, job: Job, compensator: Compensator) -> Outcome:
        try:
            self.coverages.append(compensator.coverage())
            window = Window(run.created_at - timedelta(hours=1), run.created_at)
            with answering(self.known):
                for page in compensator.pages(window, None):
                    self.pages.append(page)
        except ListingFailed as error:
            return Failed(FailReason.HTTP, str(error), retryable=not error.final)
        except Throttled as error:
            return Snoozed(timedelta(seconds=error.retry_after or 0), str(error))
        return Succeeded({"seen": run.payload})
