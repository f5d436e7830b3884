"""What a daemon knows is wrong with itself, for people."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Remark:
    """`about` is one word for what it concerns (`database loops disk clock supervisor leaving configuration canary
    ping` or an invariant), `what` a sentence, `since` when it began as far as is known, `command` what to type first
    (None: `what` says all there is to do)."""

    about: str
    what: str
    since: datetime | None = None
    command: str | None = None
