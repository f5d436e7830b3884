"""From a path to its operation, and from an exception to a problem.

The framework's own router asks one pattern after the other and wraps each request in layers that this API does not use;
where thousands of runs a second are asked for, that is a third of the work.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from urllib.parse import unquote_to_bytes

from starlette.datastructures import State
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from scheduler.core.errors import SchedulerError
from scheduler.web.answers import Malformed, Problem, problem_of
from scheduler.web.backend import Served
from scheduler.web.operation import Operation

_Methods = dict[str, Operation]


class Router:
    """An ASGI app of these operations. `state` is what they find as `request.app.state`."""

    def __init__(self, operations: Iterable[Operation], fallback: Callable[[str], str], served: Served) -> None:
        """`fallback`: the hint for a path that leads nowhere; `served` hears of each answer, once it is known."""
        self.state = State()
        self._fallback = fallback
        self._served = served
        self._plain: dict[str, _Methods] = {}
        self._patterns: dict[int, list[tuple[Sequence[str], _Methods]]] = {}
        for operation in operations:
            self._methods_at(operation.path)[operation.method] = operation

    def _methods_at(self, path: str) -> _Methods:
        if "{" not in path:
            return self._plain.setdefault(path, {})
        parts = path.split("/")
        patterns = self._patterns.setdefault(len(parts), [])
        for known, methods in patterns:
            if known == parts:
                return methods
        patterns.append((parts, {}))
        return patterns[-1][1]

    def find(self, path: str) -> tuple[_Methods, dict[str, str]] | None:
        """The operations at a path as it was sent, by method, and the parameters in it."""
        plain = self._plain.get(path)
        if plain is not None:
            return plain, {}
        parts = path.split("/")
        for pattern, methods in self._patterns.get(len(parts), ()):
            found = _match(pattern, parts)
            if found is not None:
                return methods, found
        return None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["app"] = self
        request = Request(scope, receive)
        begun = time.perf_counter()
        try:
            response = await self._answer(scope, request)
        except Exception as error:
            response = problem_for(error)
            self._tell(scope, response, begun)
            if response.status_code == 500:
                await response(scope, receive, send)
                raise  # Whoever is around this one writes it down.
        else:
            self._tell(scope, response, begun)
        await response(scope, receive, send)

    def _tell(self, scope: Scope, response: Response, begun: float) -> None:
        operation: Operation | None = scope.get("route")
        route, method = ("other", "other") if operation is None else (operation.path, operation.method)
        self._served(route, method, response.status_code, time.perf_counter() - begun)

    async def _answer(self, scope: Scope, request: Request) -> Response:
        path = (scope.get("raw_path") or scope["path"].encode()).decode("latin-1")
        found = self.find(path)
        if found is None:
            return Problem(404, "there is no such page", hint=self._fallback(path))
        methods, scope["path_params"] = found
        method = scope["method"]
        operation = methods.get("GET" if method == "HEAD" else method)
        if operation is None:
            allowed = ", ".join([*methods, *(["HEAD"] if "GET" in methods else [])])
            return Problem(405, f"this page takes {allowed}", headers={"Allow": allowed})
        scope["route"] = operation
        return await operation.serve(request)


def _match(pattern: Sequence[str], parts: Sequence[str]) -> dict[str, str] | None:
    found: dict[str, Any] = {}
    for wanted, part in zip(pattern, parts, strict=True):
        if wanted[:1] == "{":
            if not part:
                return None
            found[wanted[1:-1]] = unquote_to_bytes(part).decode("utf-8", "replace") if "%" in part else part
        elif wanted != part:
            return None
    return found


def problem_for(error: Exception) -> Problem:
    """What an exception becomes; 500 for those that are ours."""
    if isinstance(error, Malformed):
        return Problem(error.status, error.reason, hint=error.hint)
    if isinstance(error, SchedulerError):
        return problem_of(error)
    if isinstance(error, ClientDisconnect):
        return Problem(400, "the request ended before its body did")
    return Problem(500, f"{type(error).__name__} inside the daemon", hint="its log has the details")
