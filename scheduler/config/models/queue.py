"""Queues: how much may run at once, and how fast runs may start."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field, PlainValidator, WithJsonSchema

from scheduler.config.fields import Whole
from scheduler.config.models.base import Model
from scheduler.config.refusal import refuse, shown
from scheduler.core.job import Queue

_RATE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)/(s|m|h|d)")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}

SCANS = "scans"
"""The queue of scans, unless they name another."""

DEFAULT_QUEUES = {"default": Queue("default", concurrency=64), SCANS: Queue(SCANS, concurrency=4)}


def _rate(value: object) -> float:
    found = _RATE.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        refuse(f"{shown(value)} is not a rate", "write a number per unit of time: 5/s, 120/m, 1000/h, 5000/d")
    rate = float(found[1]) / _SECONDS[found[2]]
    if not rate:
        refuse("a rate of zero lets nothing through", "write more than that; to stop it for a while, pause it")
    return rate


def rate_text(rate: float) -> str:
    """The shortest text of a number per second."""
    for unit, seconds in _SECONDS.items():
        number = round(rate * seconds, 6)
        if number and number == round(number):
            return f"{round(number)}/{unit}"
    return f"{rate:.6f}/s"


Rate = Annotated[
    float, PlainValidator(_rate), WithJsonSchema({"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?/[smhd]$"})
]


class QueueModel(Model):
    """Limits over all nodes."""

    concurrency: Annotated[
        int | None, Whole(1, 1_000_000), Field(description="Runs at once, over all nodes; without it, no limit.")
    ] = None
    rate: Annotated[Rate | None, Field(description="How often runs may start: 5/s, 120/m, 1000/h, 5000/d.")] = None
    burst: Annotated[int, Whole(1, 1_000_000), Field(description="How many may start at once after a quiet time.")] = 1

    def noun(self, name: str) -> Queue:
        return Queue(name, concurrency=self.concurrency, rate=self.rate, burst=self.burst)
