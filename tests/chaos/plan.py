"""The plan of faults: a pure function of the seed and of what was asked for, so that a campaign can be had again."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

DATABASE = "database"
PEOPLE = "people"


@dataclass(frozen=True)
class Kind:
    """A fault: whom it befalls (node, DATABASE or PEOPLE), and how long it lasts: at least and at most so many seconds,
    and so many leases. `leased`: it must be longer than a lease."""

    name: str
    target: str
    least: float = 0.0
    most: float = 0.0
    leased: bool = False
    amounts: tuple[float, ...] = (0.0,)


NODE = "node"
KINDS = (
    Kind("kill-daemon", NODE, 0.1, 6.0),
    Kind("kill-supervisor", NODE),
    Kind("kill-node", NODE, 0.5, 9.0),
    Kind("stop-daemon", NODE, 1.0, 4.0, leased=True),
    Kind("stop-supervisor", NODE, 1.0, 4.0, leased=True),
    Kind("freeze-node", NODE, 1.0, 4.0, leased=True),
    Kind("stop-in-transaction", NODE, 1.0, 4.0, leased=True),
    Kind("cut-drop", NODE, 0.5, 12.0),
    Kind("cut-reset", NODE, 0.5, 12.0),
    Kind("cut-black-hole", NODE, 0.5, 12.0),
    Kind("cut-half-open", NODE, 0.5, 12.0),
    Kind("cut-slow", NODE, 3.0, 8.0, amounts=(2_000.0, 20_000.0)),
    Kind("clock", NODE, 2.0, 8.0, amounts=(30.0, -30.0, 3600.0, -3600.0)),
    Kind("drain", NODE),
    Kind("restart-fast", DATABASE, 0.0, 3.0),
    Kind("restart-immediate", DATABASE, 0.0, 3.0),
    Kind("clock-database", DATABASE, 5.0, 12.0, amounts=(40.0, -40.0)),
    Kind("reload", PEOPLE),
    Kind("pause", PEOPLE, 2.0, 8.0),
    Kind("run-now", PEOPLE),
)
BY_NAME = {kind.name: kind for kind in KINDS}


@dataclass(frozen=True)
class Fault:
    """`at` and `lasts` in seconds, from the start of the campaign; `whom` a node's name, DATABASE or PEOPLE."""

    at: float
    kind: str
    whom: str
    lasts: float
    amount: float = 0.0

    def __str__(self) -> str:
        amount = f" ({self.amount:+g})" if self.amount else ""
        return f"{self.at:7.2f} s  {self.whom:8} {self.kind}{amount}, for {self.lasts:.2f} s"


def plan(seed: int, nodes: Sequence[str], seconds: float, lease: float, names: Sequence[str] = ()) -> list[Fault]:
    """In the order of their beginnings. Each node, the database and the people have a lane of their own, in which one
    fault ends before the next one begins; lanes know nothing of each other. `names`: only these kinds."""
    chosen = [kind for kind in KINDS if not names or kind.name in names]
    lanes = {**dict.fromkeys(nodes, NODE), DATABASE: DATABASE, PEOPLE: PEOPLE}
    faults: list[Fault] = []
    for whom, target in lanes.items():
        # A text seeds the same everywhere; and no lane depends on how many draws another one made.
        chance = random.Random(f"{seed} {whom}")
        faults += _lane(chance, whom, [kind for kind in chosen if kind.target == target], seconds, lease)
    return sorted(faults, key=lambda fault: fault.at)


SHORT = 40.0
"""A campaign that is shorter has shorter lulls, so that something happens in it."""
_LULLS = {NODE: (2.0, 9.0), DATABASE: (12.0, 30.0), PEOPLE: (1.0, 5.0)}


def _lane(chance: random.Random, whom: str, kinds: Sequence[Kind], seconds: float, lease: float) -> list[Fault]:
    """Every kind comes once before one comes a second time."""
    faults: list[Fault] = []
    deck: list[Kind] = []
    at = 0.0
    while kinds:
        if not deck:
            deck = list(kinds)
            chance.shuffle(deck)
        kind = deck.pop()
        least, most = _LULLS[kind.target]
        at += chance.uniform(least, most) * min(1.0, seconds / SHORT)
        lasts = chance.uniform(kind.least, kind.most) + (lease if kind.leased else 0.0)
        amount = chance.choice(kind.amounts)
        if at + lasts > seconds:
            break
        faults.append(Fault(at, kind.name, whom, lasts, amount))
        at += lasts
    return faults
