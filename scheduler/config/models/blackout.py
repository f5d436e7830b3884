"""Blackouts: stretches of time in which occurrences are skipped."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Self

from pydantic import Field, PlainValidator, WithJsonSchema, model_validator

from scheduler.config.fields import Line, PositiveDuration, Text
from scheduler.config.models.base import Model
from scheduler.config.refusal import refuse, shown


def _moment(value: object) -> datetime:
    try:
        if not isinstance(value, str):
            raise ValueError
        moment = datetime.fromisoformat(value.strip())
        if not 1970 <= moment.year < 9000:
            raise ValueError
    except ValueError:
        refuse(f"{shown(value)} is not a date or time", "write 2026-12-24 or 2026-12-24T18:00 (in the job's zone)")
    return moment


Moment = Annotated[
    datetime,
    PlainValidator(_moment),
    WithJsonSchema({"type": "string", "pattern": "^[0-9]{4}-?[0-9]{2}-?[0-9]{2}", "examples": ["2026-12-24T18:00"]}),
]


class BlackoutModel(Model):
    """`{from, to, reason}` or `{schedule, for, reason}`."""

    start: Annotated[Moment | None, Field(alias="from", description="Its begin, in the job's zone.")] = None
    end: Annotated[Moment | None, Field(alias="to", description="Its end (not part of it), in the job's zone.")] = None
    schedule: Annotated[Line | None, Field(description="A cron expression: it begins at each of its instants,")] = None
    length: Annotated[PositiveDuration | None, Field(alias="for", description="and lasts this long.")] = None
    reason: Annotated[Text, Field(description="Shown wherever an occurrence was skipped because of it.")] = "blackout"

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        fixed = self.start is not None or self.end is not None
        recurring = self.schedule is not None or self.length is not None
        if fixed == recurring:
            refuse("a blackout has one of two forms", "write {from, to, reason} or {schedule, for, reason}")
        if fixed and (self.start is None or self.end is None):
            refuse("a blackout needs both ends", "write `from` and `to`")
        if recurring and (self.schedule is None or self.length is None):
            refuse("a recurring blackout needs a begin and a length", "write `schedule` and `for`")
        return self

    def written(self) -> dict[str, str | timedelta | None]:
        """Its keys as jobs.yaml has them."""
        return self.model_dump(by_alias=True, exclude_none=True)
