"""What the OpenAPI document says of webhooks, which are served beside the API's operations."""

from __future__ import annotations

from scheduler.web.shapes import FLAG, TEXT, record, ref
from scheduler.web.values import Schema
from scheduler.web.webhooks import ROUTE

_SOURCE: Schema = {
    "name": "source",
    "in": "path",
    "required": True,
    "description": "A source of jobs.yaml.",
    "schema": {"type": "string", "minLength": 1},
}
_PROBLEM: Schema = {"application/problem+json": {"schema": ref("Problem")}}
_STORED = """Takes an event of a source: signed as the source says, and on disk, with the runs that it makes, before the
answer.

No token is needed: the signature is the proof. A source or its preset may answer with another status and text."""
_REFUSED = {
    "400": "signed, but it cannot be read, or is without an id",
    "401": "not signed as it must be; which check failed is told to the operator alone",
    "404": "there is no such source",
    "405": "another method",
    "413": "larger than the source's `max_body`",
    "415": "neither JSON nor a form",
    "429": "more than the source's `rate`",
    "503": "try again after Retry-After",
}

PATHS: dict[str, Schema] = {
    ROUTE: {
        "post": {
            "operationId": "post_webhooks_source",
            "summary": "Takes an event of a source",
            "description": _STORED,
            "parameters": [_SOURCE],
            "requestBody": {"required": True, "content": {"*/*": {"schema": {}}}},
            "responses": {
                "200": {"description": "the answer to a handshake: nothing is stored"},
                "202": {
                    "description": "stored, or `duplicate`: it was there",
                    "content": {"application/json": {"schema": record(event=TEXT, duplicate=FLAG)}},
                },
                **{status: {"description": words, "content": _PROBLEM} for status, words in _REFUSED.items()},
            },
        },
        "get": {
            "operationId": "get_webhooks_source",
            "summary": "Tells a probe that the source is there",
            "description": "Tells a probe that the source is there.",
            "parameters": [_SOURCE],
            "responses": {
                "200": {
                    "description": "it is",
                    "content": {"application/json": {"schema": record(status=TEXT)}},
                },
                **{status: {"description": _REFUSED[status], "content": _PROBLEM} for status in ("404", "503")},
            },
        },
    }
}
