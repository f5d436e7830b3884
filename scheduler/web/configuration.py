"""The configuration that this node has in force: its texts, and its values with the places that gave them."""

from __future__ import annotations

from starlette.requests import Request

from scheduler.config.load import load
from scheduler.config.show import show
from scheduler.config.sources import Stored
from scheduler.core.access import Access
from scheduler.core.errors import NotFound, Unavailable
from scheduler.core.job import Configuration
from scheduler.web.answers import Answer
from scheduler.web.backend import backend_of
from scheduler.web.operation import Operation
from scheduler.web.parameters import Text
from scheduler.web.shapes import ANY, OBJECT, TEXT, many, record

JOB = Text("job", "Only this job, or else this source.")


def configuration(request: Request) -> Answer:
    """The files in force, as they were read. For those who may act: people write all kinds of things into files."""
    found = _in_force(request)
    return Answer({"hash": found.hash, "files": dict(found.files)})


def effective(request: Request) -> Answer:
    """Every value that is in force, with the `file:line` that gave it, or `(default)`."""
    found = _in_force(request)
    name = JOB.read(request) or None
    try:
        values = show(load(Stored(found.files)), name)
    except KeyError:
        hint = "`schedctl list` shows all jobs"
        raise NotFound(f"no job, source or channel is named `{name}`", hint=hint) from None
    return Answer(
        {"values": [{"job": one.job, "key": one.key, "value": one.value, "where": one.where} for one in values]}
    )


def _in_force(request: Request) -> Configuration:
    found = backend_of(request).configuration()
    if found is None:
        raise Unavailable("no configuration is in force yet", hint="try again in a moment")
    return found


operations = [
    Operation("GET", "/v1/configuration", configuration, Access.OPERATE, record(hash=TEXT, files=OBJECT)),
    Operation(
        "GET",
        "/v1/effective",
        effective,
        Access.READ,
        record(values=many(record(job=TEXT, key=TEXT, value=ANY, where=TEXT))),
        query=(JOB,),
    ),
]
