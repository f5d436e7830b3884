"""`retries`: a number, the waits themselves, or a mapping."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

from pydantic import Field, PlainValidator, WithJsonSchema

from scheduler.config.fields import DURATION_SCHEMA, Duration, Whole, to_duration
from scheduler.config.models.base import Model, Nested
from scheduler.config.refusal import refuse, shown
from scheduler.core.durations import format_duration
from scheduler.core.job import Retries

MOST = 100
NONE = Retries(limit=0)
PAYLOAD = Retries(limit=4, waits=tuple(timedelta(minutes=n) for n in (1, 5, 30, 120)))


def _factor(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value <= 100:
        refuse(f"{shown(value)} is not a factor", "write a number from 1 to 100")
    return float(value)


Factor = Annotated[float, PlainValidator(_factor), WithJsonSchema({"type": "number", "minimum": 1, "maximum": 100})]


class RetriesModel(Model):
    """Further attempts with growing waits."""

    max: Annotated[int, Whole(0, MOST), Field(description="How many further attempts.")]
    delay: Annotated[Duration, Field(description="The wait before the first one.")] = timedelta(seconds=30)
    backoff: Annotated[Factor, Field(description="Each wait is this many times the one before.")] = 2.0
    max_delay: Annotated[Duration, Field(description="No wait is longer.")] = timedelta(minutes=30)


def to_retries(value: object) -> Retries:
    """Any of the three forms."""
    if isinstance(value, bool) or not isinstance(value, int | list | dict):
        form = "write a number, a list of waits such as [1m, 10m], or {max, delay, backoff, max_delay}"
        refuse(f"{shown(value)} is not understood", form)
    if isinstance(value, int):
        return Retries(limit=Whole(0, MOST).check(value))
    if isinstance(value, list):
        if len(value) > MOST:
            refuse(f"{len(value)} waits are too many", f"write at most {MOST}")
        return Retries(limit=len(value), waits=tuple(to_duration(one) for one in value))
    model = RetriesModel.model_validate(value)
    return Retries(limit=model.max, delay=model.delay, backoff=model.backoff, max_delay=model.max_delay)


def written(retries: Retries) -> int | list[str] | dict[str, Any]:
    """The shortest form in jobs.yaml that means the same."""
    if retries.waits:
        return [format_duration(wait) for wait in retries.waits]
    if not retries.limit or retries == Retries(limit=retries.limit):
        return retries.limit
    return {
        "max": retries.limit,
        "delay": format_duration(retries.delay),
        "backoff": retries.backoff,
        "max_delay": format_duration(retries.max_delay),
    }


RetriesField = Annotated[
    Retries,
    PlainValidator(to_retries),
    Nested(RetriesModel),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 0, "maximum": MOST},
                {"type": "array", "items": DURATION_SCHEMA, "maxItems": MOST},
                RetriesModel.model_json_schema(),
            ]
        }
    ),
]
