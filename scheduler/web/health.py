"""`/healthz` (the process answers), `/readyz` (it can do its work) and `/metrics` (from memory)."""

from __future__ import annotations

from anyio import CapacityLimiter, to_thread
from starlette.requests import Request
from starlette.responses import Response

from scheduler.core.access import Access
from scheduler.web.answers import Answer
from scheduler.web.backend import Backend, backend_of
from scheduler.web.operation import Operation
from scheduler.web.shapes import OBJECT, TEXT, record

EXPOSITION = "text/plain; version=0.0.4; charset=utf-8"


async def healthz(request: Request) -> Answer:
    """The process answers."""
    return Answer({"status": "ok", "version": backend_of(request).version})


async def readyz(request: Request) -> Answer:
    """Whether this node can do its work. 200 if every check is content, else 503; either way with each check's answer
    (`ok` or the reason)."""
    failed, shown = run_checks(backend_of(request))
    return Answer({"status": "not ready" if failed else "ready", "checks": shown}, status_code=503 if failed else 200)


async def metrics(request: Request) -> Response:
    """For Prometheus, from memory."""
    # One scrape at a time, in a thread of its own: neither a slow database nor another scrape delays it.
    limiter: CapacityLimiter = request.app.state.scrapes
    body = await to_thread.run_sync(backend_of(request).metrics, limiter=limiter)
    return Response(body, headers={"content-type": EXPOSITION})


def run_checks(backend: Backend) -> tuple[dict[str, str], dict[str, str]]:
    """The failed checks with their reasons, and all of them."""
    answers: dict[str, str] = {}
    failed: dict[str, str] = {}
    for name, check in backend.checks.items():
        try:
            reason = check()
        except Exception as error:
            reason = f"the check itself failed: {type(error).__name__}: {error}"
        if reason is not None:
            failed[name] = reason
        answers[name] = reason or "ok"
    return failed, answers


operations = [
    Operation("GET", "/healthz", healthz, Access.ANYBODY, record(status=TEXT, version=TEXT)),
    Operation("GET", "/readyz", readyz, Access.ANYBODY, record(status=TEXT, checks=OBJECT)),
    Operation("GET", "/metrics", metrics, Access.ANYBODY, TEXT, media="text/plain"),
]
