"""`none`: nothing is checked. Only for senders that a network keeps apart from everybody else, and that has to be
written: `trust: network`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from scheduler.core.errors import InvalidInput
from scheduler.core.preset import Preset
from scheduler.core.signature import Accepted, Incoming, LiveSecret, Signed, Verdict


@dataclass(frozen=True, slots=True)
class Unsigned:
    kind: ClassVar[str] = "none"
    preset: ClassVar[Preset | None] = None
    signs_time: ClassVar[bool] = False
    needs_url: ClassVar[bool] = False
    needs_secret: ClassVar[bool] = False

    trust: str

    def __post_init__(self) -> None:
        if self.trust != "network":
            raise InvalidInput(
                "without a signature anybody who reaches this address can send events",
                hint="write trust: network if only the sender can reach it, else choose another scheme",
            )

    def verify(
        self, request: Incoming, secrets: Sequence[LiveSecret], *, tolerance: timedelta, now: datetime
    ) -> Verdict:
        return Accepted(None, "")

    def sign(self, body: bytes, secret: LiveSecret, *, now: datetime, url: str = "", delivery: str = "") -> Signed:
        return Signed({}, body)
