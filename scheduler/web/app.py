"""The app: routes, and what errors become."""

from __future__ import annotations

from collections.abc import Sequence

from anyio import CapacityLimiter
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp

from scheduler.core.errors import SchedulerError
from scheduler.web import configuration, control, enqueue, health, jobs, runs, signin, state, tokens
from scheduler.web.answers import Malformed, Problem, problem_of
from scheduler.web.backend import Backend
from scheduler.web.enqueue import Porter
from scheduler.web.guard import Guard
from scheduler.web.operation import Operation
from scheduler.web.waiting import RunWatch

OPERATIONS: Sequence[Operation] = (
    *enqueue.operations,
    *health.operations,
    *state.operations,
    *jobs.operations,
    *runs.operations,
    *control.operations,
    *configuration.operations,
    *tokens.operations,
    *signin.operations,
)


def create_app(backend: Backend, *, trusted: bool) -> ASGIApp:
    """The HTTP face of one daemon. `trusted`: callers were let in by the socket's mode and may do everything."""
    app = Starlette(
        routes=[operation.route for operation in OPERATIONS],
        exception_handlers={
            SchedulerError: _scheduler_error,
            HTTPException: _http_error,
            ClientDisconnect: _gone,
            Exception: _bug,
        },
    )
    app.state.backend = backend
    app.state.watch = RunWatch(backend.bus)
    app.state.porter = Porter(backend.commands)
    app.state.scrapes = CapacityLimiter(1)
    app.state.strangers = CapacityLimiter(1)
    return Guard(app, backend.gate, trusted=trusted)


def _scheduler_error(request: Request, error: Exception) -> Response:
    if isinstance(error, Malformed):
        return Problem(error.status, error.reason, hint=error.hint)
    assert isinstance(error, SchedulerError)
    return problem_of(error)


def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        return Problem(404, "there is no such page", hint="the API begins at /v1/jobs, /v1/runs, /v1/status")
    return Problem(error.status_code, error.detail, headers=error.headers)


def _gone(request: Request, error: Exception) -> Response:
    return Problem(400, "the request ended before its body did")


def _bug(request: Request, error: Exception) -> Response:
    return Problem(500, f"{type(error).__name__} inside the daemon", hint="its log has the details")
