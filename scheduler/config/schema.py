"""JSON Schema (draft-07) of jobs.yaml, for editors: made from the models, never by hand.

`python -m scheduler.config.schema` prints it.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pydantic import BaseModel

from scheduler.config.actions.registry import Actions, discover
from scheduler.config.bundle import VERSION
from scheduler.config.fields import NAME_SCHEMA
from scheduler.config.models.job import DefaultsModel, JobModel
from scheduler.config.models.queue import QueueModel

_NOISE = ("title", "default", "discriminator")


def schema(actions: Actions | None = None) -> dict[str, Any]:
    """The schema; `actions` are the kinds of actions (all that are found)."""
    kinds = discover() if actions is None else actions
    job = _mapping(JobModel)
    after = job["properties"]["after"]
    job["properties"]["after"] = {"description": after.pop("description"), "anyOf": [NAME_SCHEMA, after]}
    for kind, options in kinds.items():
        job["properties"][kind] = {"description": options.summary, **_clean(_inlined(options.json_schema()))}
    job["oneOf"] = [{"required": [kind]} for kind in kinds]
    names = {"propertyNames": NAME_SCHEMA}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "jobs.yaml",
        "description": "Jobs: when they run, what they do, and their policies.",
        "type": "object",
        "additionalProperties": False,
        "patternProperties": {"^x-": {"description": "Yours: a place for anchors."}},
        "properties": {
            "version": {"const": VERSION, "description": "Of this format."},
            "include": {
                "description": "Further files, relative to this one: jobs.d/*.yaml",
                "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
            },
            "defaults": {"description": "What every job inherits.", **_mapping(DefaultsModel)},
            "queues": {
                "description": "How much may run at once, and how fast runs may start, by name.",
                "type": "object",
                "additionalProperties": {
                    "description": "One queue.",
                    "anyOf": [_mapping(QueueModel), {"type": "null"}],
                },
                **names,
            },
            "jobs": {
                "description": "The jobs by name. A name is forever: under another one it is another job.",
                "type": "object",
                "additionalProperties": {"description": "One job.", **job},
                **names,
            },
        },
    }


def text(actions: Actions | None = None) -> str:
    """The schema as it is printed and committed."""
    return json.dumps(schema(actions), indent=2, ensure_ascii=False) + "\n"


def main() -> int:
    sys.stdout.write(text())
    return 0


def _mapping(model: type[BaseModel]) -> dict[str, Any]:
    found: dict[str, Any] = _clean(_inlined(model.model_json_schema(by_alias=True)))
    found.pop("description", None)
    return found


def _inlined(found: dict[str, Any]) -> dict[str, Any]:
    """Without `$defs`, which draft-07 does not know: what they hold is small and put in place."""
    definitions = found.pop("$defs", {})

    def put(value: Any) -> Any:
        if isinstance(value, dict):
            name = value.get("$ref", "").removeprefix("#/$defs/") if isinstance(value.get("$ref", ""), str) else ""
            if name in definitions:
                rest = {key: put(one) for key, one in value.items() if key != "$ref"}
                return {**put(definitions[name]), **rest}
            return {key: put(one) for key, one in value.items()}
        return [put(one) for one in value] if isinstance(value, list) else value

    return {key: put(one) for key, one in found.items()}


def _clean(value: Any, *, names: bool = False) -> Any:
    """Without what editors do not show, and without null: a key without a value is allowed, but says nothing."""
    if isinstance(value, list):
        return [_clean(one) for one in value]
    if not isinstance(value, dict):
        return value
    kept = {key: _clean(one, names=key == "properties") for key, one in value.items() if names or key not in _NOISE}
    choices = kept.get("anyOf")
    if names or not isinstance(choices, list) or {"type": "null"} not in choices:
        return kept
    rest = [one for one in choices if one != {"type": "null"}]
    kept["anyOf"] = rest
    if len(rest) == 1:
        del kept["anyOf"]
        kept = {**rest[0], **kept}
    return kept


if __name__ == "__main__":
    sys.exit(main())
