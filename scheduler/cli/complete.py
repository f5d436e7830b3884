"""What the shell offers when somebody presses Tab: names of jobs and sources, runs and events."""

from __future__ import annotations

from typing import Any

import click

from scheduler.cli.daemon import Daemon
from scheduler.cli.surface import Surface
from scheduler.core.errors import SchedulerError

PATIENCE = 2.0
"""Seconds that somebody who pressed Tab waits at most."""


def complete_job(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Jobs whose name begins so; none where no daemon can be asked."""
    found = _ask(context, "/v1/jobs", {"q": incomplete})
    names = [str(job["name"]) for job in found.get("jobs", ())]
    return [name for name in names if name.startswith(incomplete)]


def complete_source(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Sources whose name begins so, by the jobs file that --config or the environment names; none if it cannot be
    read."""
    from scheduler.config.bundle import gather
    from scheduler.config.interpolation import Interpolation
    from scheduler.config.sources import Disk

    environ = (context.find_object(Surface) or Surface()).environ
    file = context.params.get("file") or environ.get("SCHEDULER_CONFIG") or "jobs.yaml"
    bundle = gather(Disk(file), Interpolation(environ))
    return [name for name in bundle.sections["sources"] if name.startswith(incomplete)]


def complete_run(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[Any]:
    """The same, and the last runs by their short ids."""
    from click.shell_completion import CompletionItem

    names = complete_job(context, parameter, incomplete)
    found = _ask(context, "/v1/runs", {"skips": "false", "limit": 20})
    runs = [
        CompletionItem(str(run["short_id"]), help=f"{run['job']}, {run['status'].lower()}")
        for run in found.get("entries", ())
        if run["short_id"].startswith(incomplete)
    ]
    return [*map(CompletionItem, names), *runs]


def complete_event(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """The last events, as SOURCE/ID."""
    found = _ask(context, "/v1/events", {"limit": 20})
    names = [f"{one['source']}/{one['id']}" for one in found.get("events", ())]
    return [name for name in names if name.startswith(incomplete)]


def _ask(context: click.Context, path: str, query: dict[str, Any]) -> dict[str, Any]:
    surface = context.find_object(Surface) or Surface()
    try:
        return dict(Daemon(surface.socket, surface.environ).get(path, query, timeout=PATIENCE))
    except SchedulerError:
        return {}
