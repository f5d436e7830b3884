"""The OpenAPI document, built from the operations: it cannot say anything else than what is served."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from inspect import cleandoc
from types import MappingProxyType

from scheduler.core.access import Access
from scheduler.web.operation import Operation
from scheduler.web.schemas import COMPONENTS
from scheduler.web.shapes import ref
from scheduler.web.values import Schema, Value

_ABOUT = """Runs, jobs and their history. Over TCP without a token only facts are told: what people wrote, printed or
sent is null there. Instants are RFC 3339 in UTC, durations are in seconds. Answers may have further keys."""

_ACCESS = {
    Access.ANYBODY: None,
    Access.FACTS: "Without a token (role `read`) only facts are told.",
    Access.READ: "Needs role `read`.",
    Access.OPERATE: "Needs role `operate`.",
    Access.LOCAL: "Only on the Unix socket.",
}

_NOTHING: Mapping[str, Schema] = MappingProxyType({})


def document(operations: Iterable[Operation], version: str, beside: Mapping[str, Schema] = _NOTHING) -> Schema:
    """OpenAPI 3.1. `beside`: paths that are served by no operation."""
    paths: dict[str, Schema] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "schedulerd", "version": version, "description": " ".join(_ABOUT.split())},
        "paths": {**paths, **beside},
        "components": {
            "schemas": COMPONENTS,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "schedctl token create NAME --role read"}
            },
        },
    }


def _operation(operation: Operation) -> Schema:
    about = [cleandoc(operation.endpoint.__doc__ or ""), _ACCESS[operation.access]]
    text = "\n\n".join(part for part in about if part)
    shown: Schema = {
        "operationId": _id(operation),
        "summary": " ".join(re.split(r"[.:;]\s|\n\n|\.$", text)[0].split()),
        "description": text,
        "parameters": [
            *_in_path(operation.path),
            *_given("query", operation.query),
            *_given("header", operation.headers),
        ],
        "responses": _responses(operation),
    }
    if operation.body is not None:
        content = {operation.body.media: {"schema": operation.body.schema}}
        shown["requestBody"] = {"required": operation.body.required, "content": content}
    if operation.access in (Access.READ, Access.OPERATE):
        shown["security"] = [{"token": []}]
    elif operation.access is Access.FACTS:
        shown["security"] = [{}, {"token": []}]
    return shown


def _id(operation: Operation) -> str:
    """`post_v1_jobs_name_runs`."""
    return re.sub(r"\W+", "_", f"{operation.method.lower()}{operation.path}").strip("_")


def _in_path(path: str) -> list[Schema]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in re.findall(r"\{(\w+)\}", path)
    ]


def _given(place: str, parameters: Sequence[Value]) -> list[Schema]:
    return [
        {"name": one.name, "in": place, "required": False, "description": one.help, "schema": one.schema}
        for one in parameters
    ]


def _responses(operation: Operation) -> Schema:
    answer = {"content": {operation.media: {"schema": operation.answer}}}
    good = [operation.status, *([200] if operation.repeated else [])]
    pages = {operation.media: {"schema": operation.answer}} if operation.media == "text/html" else {}
    problem = {"description": "what is wrong, and what to do about it", "content": {**_PROBLEM, **pages}}
    responses = {str(status): {"description": HTTPStatus(status).phrase, **answer} for status in good}
    if operation.path == "/readyz":
        responses["503"] = {"description": "not ready", **answer}
        return responses
    return {**responses, "4XX": problem, "503": problem}


_PROBLEM = {"application/problem+json": {"schema": ref("Problem")}}
