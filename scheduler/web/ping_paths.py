"""What the OpenAPI document says of pings, which are served beside the API's operations."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler.web.values import Schema

_ABOUT = """A job that runs elsewhere tells that a run ended well. The key is a token of role `ping`; with `-` in its
place it is in the header Authorization. Whoever has no right key hears 404, whatever was asked for."""
_WORDS = """The same; `what` is `start`, `fail`, `log`, or an exit code from 0 to 255. The last 10 kB of the body are
kept as output."""

_TEXT: Schema = {"text/plain": {"schema": {"type": "string"}}}
_ANSWERS: Mapping[str, str] = {
    "200": "it is on disk; Schedctl-Run is the run",
    "400": "it cannot be understood",
    "404": "no right key, or no such job",
    "405": "another method",
    "409": "the job runs here",
    "429": "too many pings of this job",
    "503": "try again after Retry-After",
}
_QUERY = (
    ("rid", "Ties the pings of one run together.", {"type": "string", "format": "uuid"}),
    ("took", "How many seconds the run was at work; with its end.", {"type": "number", "minimum": 0}),
    ("ago", "How many seconds ago it became true.", {"type": "number", "minimum": 0}),
)


def _operation(method: str, path: str, summary: str, about: str) -> Schema:
    names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    shown: Schema = {
        "operationId": f"{method}_ping_{'_'.join(names)}",
        "summary": summary,
        "description": " ".join(about.split()),
        "parameters": [
            *(
                {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
                for name in names
            ),
            *(
                {"name": name, "in": "query", "required": False, "description": help_, "schema": schema}
                for name, help_, schema in _QUERY
            ),
        ],
        "responses": {status: {"description": words, "content": _TEXT} for status, words in _ANSWERS.items()},
    }
    if method == "post":
        shown["requestBody"] = {"required": False, "content": {"*/*": {"schema": {}}}}
    return shown


_SUMMARY = {"/ping/{key}/{job}": "A run elsewhere ended well", "/ping/{key}/{job}/{what}": "How a run elsewhere goes"}
PATHS: Mapping[str, Schema] = {
    path: {method: _operation(method, path, summary, about) for method in ("get", "post")}
    for (path, summary), about in zip(_SUMMARY.items(), (_ABOUT, _WORDS), strict=True)
}
"""Paths of an OpenAPI document."""
