"""The words in which schemas are written; what a caller may not see is null, so everything may be."""

from __future__ import annotations

from scheduler.web.values import Schema

TEXT: Schema = {"type": ["string", "null"]}
INSTANT: Schema = {"type": ["string", "null"], "format": "date-time"}
NUMBER: Schema = {"type": ["number", "null"]}
COUNT: Schema = {"type": ["integer", "null"]}
FLAG: Schema = {"type": ["boolean", "null"]}
ANY: Schema = {}
OBJECT: Schema = {"type": ["object", "null"]}


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def maybe(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def many(schema: Schema) -> Schema:
    return {"type": ["array", "null"], "items": schema}


def words(*known: str) -> Schema:
    return {"enum": [*known, None]}


def record(**properties: Schema) -> Schema:
    """An object that has all of these keys."""
    return {"type": "object", "properties": properties, "required": list(properties)}
