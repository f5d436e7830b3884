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
from scheduler.config.models.channel import ChannelModel
from scheduler.config.models.job import DefaultsModel, JobModel
from scheduler.config.models.queue import QueueModel
from scheduler.config.models.source import SourceModel
from scheduler.config.schemes import Schemes, schemes

_OPTIONS = {
    "header": "The header that holds the signature.",
    "prefix": "What stands before the signature there: sha256=",
    "separator": 'What stands between several signatures there: ","',
    "encoding": "Of the signature: hex (default) or base64.",
    "algorithm": "The hash: sha256 unless written.",
    "key": "How the secret is read: utf8 (default), base64 or hex.",
    "template": "The signed text, of {timestamp} {id} {url} {body}; {body} unless written.",
    "timestamp": "Where the signed time lies: header:NAME, or item:PREFIX for an item of the signature's header.",
    "timestamp_unit": "s (default) or ms.",
    "id": "Where the signed id lies: header:NAME.",
}
"""Options of `signature`, in words."""

_NOISE = ("title", "default", "discriminator")


def schema(actions: Actions | None = None) -> dict[str, Any]:
    """The schema; `actions` are the kinds of actions (all that are found)."""
    kinds = discover() if actions is None else actions
    job = _mapping(JobModel)
    after = job["properties"]["after"]
    job["properties"]["after"] = {"description": after.pop("description"), "anyOf": [NAME_SCHEMA, after]}
    on_event = job["properties"]["on_event"]
    job["properties"]["on_event"] = {"description": on_event.pop("description"), "anyOf": [NAME_SCHEMA, on_event]}
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
            "notify": {
                "description": "How people are told, by name: channels that jobs name in their own `notify`.",
                "type": "object",
                "additionalProperties": {"description": "One channel.", **_channel()},
                **names,
            },
            "sources": {
                "description": "Who sends webhooks, by name: received at /webhooks/NAME.",
                "type": "object",
                "additionalProperties": {"description": "One sender of webhooks.", **_source(schemes())},
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


def _channel() -> dict[str, Any]:
    """One of the two ways."""
    made = _mapping(ChannelModel)
    made["oneOf"] = [{"required": [way]} for way in made["properties"]]
    return made


def _source(known: Schemes) -> dict[str, Any]:
    """A source, with the presets, schemes and options of schemes that there are."""
    made = _mapping(SourceModel)
    keys = made["properties"]
    keys["preset"]["enum"] = sorted(known.presets())
    signature = keys["signature"]
    signature["additionalProperties"] = False
    kinds = sorted(known.discover())
    signature["properties"]["scheme"]["enum"] = kinds
    for kind in kinds:
        for name in known.options(kind):
            if name not in keys:
                words = _OPTIONS.get(name, f"An option of {kind}.")
                option = {"description": words, "type": ["string", "number"]}
                signature["properties"].setdefault(name, option)
    return made


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
