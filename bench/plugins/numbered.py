"""A provider whose list is made of numbers, so that nothing but the scan takes time; copied to where a daemon looks.

Where a file `statements` lies beside it, what scans say to the daemon's database is noted there: thread and statement.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import ClassVar

from scheduler.core.compensator import Coverage, Cursor, ListedEvent, Page, Window

STEP = timedelta(milliseconds=3)
"""From one event to the next."""


@dataclass(frozen=True, slots=True)
class Numbered:
    """Events 1 to `count`, the first one STEP after `begin`, in pages of `page`."""

    kind: ClassVar[str] = "numbered"
    secret_options: ClassVar[tuple[str, ...]] = ()
    begin: str
    count: int
    page: int = 1000

    def pages(self, window: Window, cursor: Cursor | None) -> Iterator[Page]:
        first = int(cursor or 1)
        while True:
            after = min(first + self.page, self.count + 1)
            following = after if after <= self.count else None
            yield Page(tuple(self._event(number) for number in range(first, after)), following)
            if following is None:
                return
            first = following

    def coverage(self) -> Coverage:
        return Coverage(None)

    def _event(self, number: int) -> ListedEvent:
        name = f"evt-{number:08}"
        body = {"id": name, "type": "order.changed", "order": number % 1000, "text": "x" * 600}
        return ListedEvent(name, datetime.fromisoformat(self.begin) + number * STEP, body, "order.changed")


_NOTES = Path(__file__).with_name("statements")

if _NOTES.exists():
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    def _note(connection: object, cursor: object, statement: str, *rest: object) -> None:
        thread = threading.current_thread().name
        if thread.startswith("scan "):
            with _NOTES.open("a") as file:
                file.write(f"{thread}\t{' '.join(statement.split())}\n")

    event.listen(Engine, "before_cursor_execute", _note)
