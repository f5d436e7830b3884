"""Reading a list that moves while it is read: again and again, until two passes show the same."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from compensators.common.items import Item
from scheduler.core.compensator import Cursor, ListedEvent


@dataclass(frozen=True, slots=True)
class Passes:
    """Where the reading stands: page `at` of a pass, which begins after `offset` items, the sum over what this pass has
    shown so far, and over what the last one has. Sums do not depend on the order. `settled`: they were the same."""

    at: int = 0
    offset: int = 0
    sum: str = "0"
    before: str = ""
    passes: int = 0
    settled: bool = False

    @staticmethod
    def of(cursor: Cursor | None) -> Passes:
        """Reads what `cursor` wrote. One without an offset does not say which items its pages had: from the start."""
        return Passes(**cursor) if isinstance(cursor, dict) and "offset" in cursor else Passes()

    def after(self, items: tuple[Item, ...], length: int, *, last: bool) -> Passes:
        """`items` are those of the page that count, `length` is how many it had: maybe fewer than were asked for."""
        total = (int(self.sum, 16) + sum(map(_number, items))) % (1 << 128)
        text = f"{total:x}"
        if not last:
            return Passes(self.at + 1, self.offset + length, text, self.before, self.passes)
        return Passes(before=text, passes=self.passes + 1, settled=text == self.before)

    def cursor(self) -> Cursor:
        return {"at": self.at, "offset": self.offset, "sum": self.sum, "before": self.before, "passes": self.passes}


def _number(item: Item) -> int:
    """What is no event does not count: it may be another one each time."""
    if not isinstance(item, ListedEvent):
        return 0
    return int.from_bytes(hashlib.sha256(item.id.encode("utf-8", "surrogatepass")).digest()[:16], "big")
