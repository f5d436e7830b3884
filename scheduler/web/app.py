"""The app: all operations, and what they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from anyio import CapacityLimiter
from starlette.requests import Request
from starlette.types import ASGIApp

from scheduler.core.access import Access
from scheduler.web import (
    amends,
    cancels,
    configuration,
    control,
    enqueue,
    health,
    jobs,
    notifications,
    rates,
    received,
    runs,
    scans,
    send_test,
    signin,
    state,
    stream,
    tokens,
)
from scheduler.web.answers import Answer
from scheduler.web.backend import Backend, backend_of
from scheduler.web.events import Hub
from scheduler.web.guard import Guard
from scheduler.web.openapi import document
from scheduler.web.operation import Operation
from scheduler.web.outside import Branch
from scheduler.web.ping_paths import PATHS as PING_PATHS
from scheduler.web.ping_words import PREFIX as PINGS
from scheduler.web.pings import Pings
from scheduler.web.porter import Porter
from scheduler.web.rates import Lines
from scheduler.web.router import Router
from scheduler.web.shapes import OBJECT
from scheduler.web.waiting import RunWatch
from scheduler.web.webhook_paths import PATHS as WEBHOOK_PATHS
from scheduler.web.webhooks import PREFIX as WEBHOOKS
from scheduler.web.webhooks import Webhooks

BESIDE = {**WEBHOOK_PATHS, **PING_PATHS}
"""What is served beside the operations, as the OpenAPI document tells it."""


async def openapi(request: Request) -> Answer:
    """This API, as OpenAPI 3.1."""
    return Answer(document(OPERATIONS, backend_of(request).version, BESIDE))


OPERATIONS: Sequence[Operation] = (
    *enqueue.operations,
    *health.operations,
    *state.operations,
    *jobs.operations,
    *runs.operations,
    *cancels.operations,
    *amends.operations,
    *rates.operations,
    *scans.operations,
    *notifications.operations,
    *control.operations,
    *received.operations,
    *send_test.operations,
    *stream.operations,
    *configuration.operations,
    *tokens.operations,
    *signin.operations,
    Operation("GET", "/openapi.json", openapi, Access.ANYBODY, OBJECT),
)


def create_app(backend: Backend, hub: Hub, *, trusted: bool) -> ASGIApp:
    """The HTTP face of one daemon. `trusted`: callers were let in by the socket's mode and may do everything."""
    app = Router(OPERATIONS, _way_back, backend.served)
    app.state.backend = backend
    app.state.hub = hub
    app.state.watch = RunWatch(backend.bus, backend.elsewhere)
    app.state.lines = Lines()
    app.state.porter = Porter(backend.commands.submit)
    app.state.inbox_porter = Porter(backend.inbox.submit)
    app.state.scrapes = CapacityLimiter(1)
    app.state.strangers = CapacityLimiter(1)
    beside = {WEBHOOKS: create_webhooks(backend), PINGS: create_pings(backend, trusted=trusted)}
    return Branch(beside, Guard(app, backend.gate, trusted=trusted))


def create_outside(backend: Backend) -> Mapping[str, ASGIApp]:
    """What strangers may reach, by the beginning of its path."""
    return {WEBHOOKS: create_webhooks(backend), PINGS: create_pings(backend, trusted=False)}


def create_webhooks(backend: Backend) -> ASGIApp:
    """Where senders of webhooks post, for one address."""
    return Webhooks(backend.receptions, backend.inbox, backend.served, backend.received)


def create_pings(backend: Backend, *, trusted: bool) -> ASGIApp:
    """Where external jobs tell how they are, for one address."""
    return Pings(backend.signs, backend.gate, backend.jobs, backend.served, trusted=trusted)


def _way_back(path: str) -> str:
    if path.rstrip("/") in {operation.path for operation in OPERATIONS}:
        return f"without the slash: {path.rstrip('/')}"
    return "the API begins at /v1/jobs, /v1/runs, /v1/status"
