"""What goes wrong at a provider, and how often. Everything is decided by the seed and what it is about: the same seed
gives the same misfortune, whoever asks first."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Faults:
    """Shares are between 0 and 1. Without arguments nothing goes wrong."""

    drop: float = 0.0
    """Of the events, whose webhook is never sent."""
    duplicate: float = 0.0
    """Of the sent ones, which are sent twice."""
    delay: float = 0.0
    """Of the sent ones, which are sent late."""
    delay_by: timedelta = timedelta(hours=3)
    """How late at most."""
    reorder: float = 0.0
    """Of the sent ones, which change places with the next."""
    ties: float = 0.5
    """Of the events, which occur in the same second as the one before."""
    lag: timedelta = timedelta(0)
    """An event is in the list this much after it occurred, at the latest: lists are read from copies."""
    drift: float = 0.0
    """Of the pages that are asked for by number, before which something was put in front of the list or taken away."""
    throttle: float = 0.0
    """Of the calls, which are answered 429."""
    retry_after: str = "0"
    """What these say: seconds, or an HTTP date."""
    outage: float = 0.0
    """Of the calls, which are answered 503 or by closing the connection."""
    expire: float = 0.0
    """Of the calls with a cursor, which are told that it is not known."""
    poison: float = 0.0
    """Of the calls, whose page has an item more that is no event; in a list by page or offset, of the items, behind
    which one lies."""
    clock: timedelta = timedelta(0)
    """The provider's clock minus ours."""
    keeps: timedelta | None = None
    """How long the list reaches back; None: for ever."""


CALM = Faults()
"""Nothing goes wrong."""
HOSTILE = Faults(
    drop=0.3,
    duplicate=0.1,
    delay=0.05,
    reorder=0.1,
    lag=timedelta(seconds=2),
    drift=0.2,
    throttle=0.05,
    outage=0.03,
    expire=0.01,
    poison=0.01,
    clock=timedelta(seconds=7),
)
"""All at once, bearable."""


class Luck:
    """Decisions that can be asked in any order, by any thread."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def strikes(self, share: float, *about: object) -> bool:
        return share > 0 and self.number(*about) < share

    def number(self, *about: object) -> float:
        """In [0, 1)."""
        return random.Random(f"{self._seed} {about}").random()  # noqa: S311  # has to be the same again
