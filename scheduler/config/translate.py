"""What pydantic found → complaints in plain words."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from scheduler.config.models.base import Nested
from scheduler.config.problem import Path
from scheduler.config.refusal import shown
from scheduler.config.suggest import did_you_mean, suggestion

LATER = {
    "steps": "a job of several steps",
    "calendars": "a calendar of holidays",
    "callback": "calling back when a run has ended",
    "wait_for": "waiting for an approval",
}
"""Keys that have a meaning in a later release, in words."""

Complaint = tuple[Path, str, str | None, bool]
"""Path, reason, hint, and whether the key is meant rather than the value."""


def complaints(error: ValidationError, model: type[BaseModel], told: Collection[Path] = ()) -> Iterator[Complaint]:
    """One complaint per mistake, with its path below the validated value. What lies at `told` was taken out after a
    complaint about it: that it is missing is none."""
    for one in error.errors(include_url=False):
        path = tuple(part for part in one["loc"] if part != "[key]")
        context: Mapping[str, Any] = one.get("ctx") or {}
        kind = one["type"]
        if kind == "extra_forbidden":
            yield path, *unknown_key(str(path[-1]), _keys_at(model, path[:-1])), True
        elif kind == "missing":
            if path in told:
                continue
            yield path[:-1], f"`{path[-1]}` is missing", f"add {path[-1]}", True
        elif kind == "refused":
            yield path, str(context["reason"]), context["hint"], False
        elif kind in ("model_type", "dict_type", "model_attributes_type"):
            yield path, f"{shown(one['input'])} is not a mapping", _mapping_hint(model, path), False
        elif kind == "list_type":
            yield path, f"{shown(one['input'])} is not a list", "write one item per line, each after `- `", False
        else:
            yield path, f"{shown(one['input'])} is not accepted ({one['msg']})", "compare with schedctl schema", False


def unknown_key(word: str, known: set[str]) -> tuple[str, str]:
    """Reason and hint for a key that does not exist here."""
    if word in LATER:
        return f"`{word}` ({LATER[word]}) is not supported by this release", "remove it"
    return f"unknown key `{word[:100]}`", did_you_mean(word, known)


def meant(path: Path, model: type[BaseModel]) -> Path:
    """The path with the key in place of which a misspelled one was probably written."""
    *above, word = path
    near = suggestion(str(word), _keys_at(model, tuple(above)))
    return path if near is None else (*above, near)


def keys_of(model: type[BaseModel]) -> set[str]:
    """The keys as they are written."""
    return {field.alias or name for name, field in model.model_fields.items()}


def _mapping_hint(model: type[BaseModel], path: Path) -> str:
    keys = sorted(_keys_at(model, path))
    return f"write keys below it: {', '.join(keys[:8])}" if keys else "write one `key: value` per line below it"


def _keys_at(model: type[BaseModel], path: Path) -> set[str]:
    """The keys that may be written in the mapping at `path`."""
    found: type[BaseModel] | None = model
    for part in path:
        if isinstance(part, int) or found is None:
            continue
        field = next((one for name, one in found.model_fields.items() if part in (name, one.alias)), None)
        if field is not None:
            found = _model_in((field.annotation, *field.metadata))
    return keys_of(found) if found is not None else set()


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, Nested):
        return annotation.model
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    parts = annotation if isinstance(annotation, tuple) else get_args(annotation)
    found = (_model_in(part) for part in parts)
    return next((one for one in found if one is not None), None)
