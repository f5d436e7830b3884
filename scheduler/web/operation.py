"""An operation of the API: declared once, for routing, for who may call it, and for the OpenAPI document."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from difflib import get_close_matches
from inspect import iscoroutinefunction
from typing import cast

from anyio import CapacityLimiter, to_thread
from starlette.requests import Request
from starlette.responses import Response

from scheduler.core.access import Access, Caller
from scheduler.core.errors import InvalidInput
from scheduler.core.value_object import value_object
from scheduler.web.answers import Answer, Problem
from scheduler.web.facts import facts
from scheduler.web.fields import Body
from scheduler.web.values import Schema, Value

Endpoint = Callable[[Request], Response] | Callable[[Request], Awaitable[Response]]

_HOW = "`schedctl token create NAME --role {role}` makes one; or use the Unix socket, as schedctl does"


@value_object
class Operation:
    """`answer`: the schema of what comes with `status`. `media`: if that is no JSON. `repeated`: also answered with
    200, when the request had been made before. The endpoint's docstring is the description."""

    method: str
    path: str
    endpoint: Endpoint
    access: Access
    answer: Schema
    query: Sequence[Value] = ()
    headers: Sequence[Value] = ()
    body: Body | None = None
    status: int = 200
    repeated: bool = False
    media: str = "application/json"

    async def serve(self, request: Request) -> Response:
        """The answer, or why this caller gets none. Raises SchedulerError."""
        caller = caller_of(request)
        refusal = self._refusal(caller)
        if refusal is not None:
            return refusal
        if request.scope["query_string"]:
            self._check_query(request)
        answer = await self._call(request, caller)
        if (
            self.access is Access.FACTS
            and not caller.trusted
            and isinstance(answer, Answer)
            and answer.status_code < 300
        ):
            return answer.with_content(facts(answer.content))
        return answer

    async def _call(self, request: Request, caller: Caller) -> Response:
        if iscoroutinefunction(self.endpoint):
            return await cast(Callable[[Request], Awaitable[Response]], self.endpoint)(request)
        # Those of whom nothing is known share one thread: they cannot keep others waiting, nor the engine.
        strangers: CapacityLimiter | None = None if caller.trusted else request.app.state.strangers
        return await to_thread.run_sync(cast(Callable[[Request], Response], self.endpoint), request, limiter=strangers)

    def _refusal(self, caller: Caller) -> Problem | None:
        if caller.may(self.access):
            return None
        if self.access is Access.LOCAL:
            return Problem(403, "this is only done on the Unix socket", hint="use schedctl on that machine")
        role = self.access.name.lower()
        hint = _HOW.format(role=role)
        if caller.role is None:
            what = "acting" if self.access is Access.OPERATE else "seeing what jobs print, carry and answer"
            return Problem(401, f"{what} over TCP needs a token", hint=hint, headers={"WWW-Authenticate": "Bearer"})
        return Problem(403, f"a token of role {caller.role} may not do that; it takes role {role}", hint=hint)

    def _check_query(self, request: Request) -> None:
        """A misspelled filter must not look like one that found everything."""
        known = [one.name for one in self.query]
        for name in request.query_params:
            if name not in known:
                close = get_close_matches(name, known, 1)
                takes = f"this request takes {', '.join(known)}" if known else "this request takes none"
                hint = f"did you mean `{close[0]}`? {takes}" if close else takes
                raise InvalidInput(f"unknown parameter `{ascii(name[:60])[1:-1]}`", hint=hint)


def caller_of(request: Request) -> Caller:
    """Who asks, as the guard found out."""
    caller: Caller = request.scope["caller"]
    return caller


def author_of(request: Request) -> str:
    """Who is written down as having asked."""
    return caller_of(request).name
