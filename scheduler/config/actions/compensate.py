"""`compensate`: a scan of a provider's list for the events whose webhook never came."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import timedelta
from typing import Annotated, Any, ClassVar

from pydantic import Field, PlainValidator, ValidationError, ValidationInfo, WithJsonSchema
from pydantic_core import InitErrorDetails, PydanticCustomError

from scheduler.config.actions.base import Options
from scheduler.config.compensators import compensators
from scheduler.config.fields import Duration, Name, PositiveDuration, to_line
from scheduler.config.interpolation import Interpolation, interpolation_of
from scheduler.config.models.secret import SecretModel
from scheduler.config.problem import Path
from scheduler.config.refusal import refuse, shown
from scheduler.core.durations import format_duration
from scheduler.core.errors import InvalidInput
from scheduler.core.model import Json
from scheduler.core.secret import Secret
from scheduler.core.source import Compensate

Value = Json | SecretModel | dict[str, Json | SecretModel]


def _compensator(value: object, info: ValidationInfo) -> str:
    """The name of one that can be loaded."""
    kind = to_line(value)
    known = compensators()
    try:
        known.options(kind, known.folders_of(interpolation_of(info).plugins))
    except InvalidInput as error:
        refuse(error.reason, error.hint)
    return kind


def _with(value: object, info: ValidationInfo) -> dict[str, Value]:
    """Values with `${NAME}` replaced; those that name a secret are SecretModels."""
    if not isinstance(value, Mapping):
        refuse(f"{shown(value)} is not a mapping", "write one `name: value` per line below it")
    kind = info.data.get("compensator")
    if kind is None:  # was told already
        return {}
    interpolation = interpolation_of(info)
    known = compensators()
    secret = {one.name for one in known.options(kind, known.folders_of(interpolation.plugins)) if one.secret}
    made: dict[str, Value] = {}
    wrong: list[InitErrorDetails] = []
    for name, one in value.items():
        try:
            if one is not None:
                made[name] = _value(name, one, secret, interpolation)
        except PydanticCustomError as error:
            wrong.append({"type": error, "loc": (name,), "input": one})
        except ValidationError as error:
            wrong.extend(_below(name, error))
    if wrong:
        raise ValidationError.from_exception_data("with", wrong)
    return made


def _value(name: str, value: object, secret: Collection[str], interpolation: Interpolation) -> Value:
    inner = value.values() if isinstance(value, Mapping) else ()
    if name not in secret and any(map(_names_secret, (value, *inner))):
        others = f"; secrets may be {', '.join(sorted(secret))}" if secret else ""
        refuse(f"`{name}` cannot be a secret", f"write its value{others}")
    if _names_secret(value):
        return SecretModel.model_validate(value)
    if isinstance(value, Mapping):
        return {
            key: SecretModel.model_validate(one) if _names_secret(one) else interpolation.fill_all(one)
            for key, one in value.items()
        }
    return interpolation.fill_all(value)


def _names_secret(value: object) -> bool:
    return isinstance(value, dict) and bool(value) and value.keys() <= SecretModel.model_fields.keys()


def _below(name: str, error: ValidationError) -> Iterator[InitErrorDetails]:
    for one in error.errors(include_url=False):
        context = one.get("ctx") or {}
        kind = PydanticCustomError("refused", "{reason}", context) if one["type"] == "refused" else one["type"]
        yield {"type": kind, "loc": (name, *one["loc"]), "input": one["input"]}


Compensator = Annotated[str, PlainValidator(_compensator), WithJsonSchema({"type": "string", "minLength": 1})]
With = Annotated[dict[str, Any], PlainValidator(_with), WithJsonSchema({"type": "object"})]


class CompensateOptions(Options):
    kind: ClassVar[str] = "compensate"
    summary: ClassVar[str] = "Scans a provider's list of events for those whose webhook never came."
    default_timeout: ClassVar[timedelta] = timedelta(hours=1)
    replaced: ClassVar[tuple[Path, ...]] = (("with",),)

    source: Annotated[Name, Field(description="The source whose events it lists, one of `sources`.")]
    compensator: Annotated[Compensator, Field(description="How they are listed: stripe_events, http_list, …")]
    settle: Annotated[Duration, Field(description="Younger events may still arrive by themselves.")] = timedelta(
        minutes=5
    )
    margin: Annotated[
        Duration, Field(description="Every scan lists again this much before where the last one ended.")
    ] = timedelta(hours=1)
    first_window: Annotated[PositiveDuration, Field(description="How far back the first scan starts.")] = timedelta(
        hours=24
    )
    alarm_after: Annotated[
        PositiveDuration, Field(description="An event that is found this late is worth an alarm.")
    ] = timedelta(hours=1)
    arguments: Annotated[With, Field(alias="with", description="What the compensator needs to know.")] = Field(
        default_factory=dict
    )

    def options(self) -> dict[str, Json]:
        durations = {name: getattr(self, name) for name in ("settle", "margin", "first_window", "alarm_after")}
        made: dict[str, Json] = {"source": self.source, "compensator": self.compensator}
        made.update((name, format_duration(value)) for name, value in durations.items())
        return {**made, "with": _each(self.arguments, SecretModel.written)} if self.arguments else made

    def secrets(self) -> dict[Path, Secret]:
        found: dict[Path, Secret] = {}
        for name, value in self.arguments.items():
            if isinstance(value, SecretModel):
                found["with", name] = value.noun()
            elif isinstance(value, dict):
                inner = {key: one for key, one in value.items() if isinstance(one, SecretModel)}
                found.update((("with", name, key), one.noun()) for key, one in inner.items())
        return found

    def noun(self) -> Compensate:
        return Compensate(
            source=self.source,
            compensator=self.compensator,
            settle=self.settle,
            margin=self.margin,
            first_window=self.first_window,
            alarm_after=self.alarm_after,
            options=_each(self.arguments, SecretModel.noun),
        )


def _each(values: Mapping[str, Any], made: Callable[[SecretModel], Json]) -> dict[str, Json]:
    """The values with something else in place of each secret."""
    return {
        name: made(one) if isinstance(one, SecretModel) else _each(one, made) if isinstance(one, dict) else one
        for name, one in values.items()
    }
