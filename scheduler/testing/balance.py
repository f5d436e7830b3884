"""What became of a provider's events, counted from what the provider and the handlers themselves wrote down."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Handled:
    """What the handlers wrote down: one line for each time that one was at work. `ways`: how often for each event;
    `first`: by which way each came, `webhook` or `scan`, the first time."""

    ways: Counter[str]
    first: Mapping[str, str]

    @classmethod
    def read(cls, path: Path) -> Handled:
        """From lines that are payloads of events. A line without an end is still being written, and left out."""
        ways: Counter[str] = Counter()
        first: dict[str, str] = {}
        text = path.read_text("utf-8") if path.exists() else ""
        for line in text.splitlines(keepends=True):
            if line.endswith("\n"):
                event = json.loads(line)["event"]
                ways[event["id"]] += 1
                first.setdefault(event["id"], event["via"])
        return cls(ways, first)

    def via(self, way: str) -> set[str]:
        return {event for event, one in self.first.items() if one == way}


@dataclass(frozen=True, slots=True)
class Balance:
    """`happened = by_webhook + by_scan + unaccounted`, by ids. `never_sent`: events whose webhook was never sent;
    `requests`: webhooks that were sent, the doubled ones twice; `received`: events of which one was answered with 2xx;
    `twice`: handled more than once; `unknown`: handled, and the provider knows nothing of it."""

    happened: int
    never_sent: int
    requests: int
    received: int
    by_webhook: int
    by_scan: int
    overtaken: int
    once: int
    twice: tuple[str, ...]
    unaccounted: tuple[str, ...]
    unknown: tuple[str, ...]

    @classmethod
    def of(cls, events: Iterable[str], sent: Mapping[str, int], received: Set[str], handled: Handled) -> Balance:
        """`events`: the provider's own list; `sent`: how often it sent each; `received`: what it was answered 2xx."""
        happened = set(events)
        found = handled.via("scan")
        return cls(
            happened=len(happened),
            never_sent=len(happened - set(sent)),
            requests=sum(sent.values()),
            received=len(received),
            by_webhook=len(happened & handled.via("webhook")),
            by_scan=len(happened & found),
            overtaken=len(found & set(sent)),
            once=sum(handled.ways[one] == 1 for one in happened),
            twice=tuple(sorted(one for one, times in handled.ways.items() if times > 1)),
            unaccounted=tuple(sorted(happened - set(handled.ways))),
            unknown=tuple(sorted(set(handled.ways) - happened)),
        )

    @property
    def good(self) -> bool:
        """Everything was handled once, and nothing else."""
        return not (self.twice or self.unaccounted or self.unknown)

    def lines(self) -> list[str]:
        """For a person, at most 80 columns wide."""
        rows: list[tuple[str, int, str]] = [
            ("events that happened", self.happened, "in the provider's own list"),
            ("webhook never sent", self.never_sent, ""),
            ("webhook sent", self.happened - self.never_sent, f"in {self.requests} requests"),
            ("webhook received", self.received, "answered with 2xx"),
            ("found by scan", self.by_scan, f"{self.overtaken} of them before their webhook came"),
            ("handled exactly once", self.once, "in the handlers' own file"),
            ("handled twice", len(self.twice), _some(self.twice)),
            ("unaccounted", len(self.unaccounted), _some(self.unaccounted)),
        ]
        if self.unknown:
            rows.append(("handled, and never happened", len(self.unknown), _some(self.unknown)))
        told = [f"  {name:<28}{count:>7}   {more}".rstrip() for name, count, more in rows]
        mark = "✓" if self.good else "✗"
        sum_ = f"{self.by_webhook} by webhook + {self.by_scan} found by scan + {len(self.unaccounted)} unaccounted"
        return [*told, "", f"{mark} {self.happened} = {sum_}"]


def _some(events: tuple[str, ...]) -> str:
    """The first two, by name."""
    return ", ".join(events[:2]) + (" …" if len(events) > 2 else "")
