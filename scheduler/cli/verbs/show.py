"""`schedctl show`: effective values, each with the place that gave it."""

from __future__ import annotations

from typing import Any

import click

from scheduler.cli.complete import complete_job
from scheduler.cli.sheet import written
from scheduler.cli.surface import Surface
from scheduler.cli.table import Column
from scheduler.cli.text import command_line
from scheduler.cli.verb import verb
from scheduler.core.errors import NotFound

Shown = dict[str, Any]


@verb(
    "schedctl show",
    "schedctl show weekly-report",
    "schedctl show stripe  # a source",
    "schedctl show --file jobs.yaml weekly-report",
)
@click.argument("job", required=False, shell_complete=complete_job)
@click.option("--file", metavar="FILE", help="Of a file instead of what the daemon has in force; needs no daemon.")
@click.option("--no-defaults", is_flag=True, help="Only what somebody wrote.")
def show(surface: Surface, job: str | None, file: str | None, no_defaults: bool) -> int:
    """Shows the values of JOB (default: of all channels, sources and jobs) as they are in force, and where each
    was written.

    A source or channel is shown if its name is given and no job has it; `"source NAME"` is always the source,
    `"channel NAME"` the channel."""
    if file is None:
        values = surface.daemon.get("/v1/effective", {"job": job})["values"]
    else:
        values = _of_file(surface, file, job)
    if no_defaults:
        values = [one for one in values if not one["where"].startswith("(")]
    if surface.structured(_by_job(values), dict.fromkeys(one["job"] for one in values)):
        return 0
    keys = [Column("JOB", 10)] if job is None else []
    columns = [*keys, Column("KEY"), Column("VALUE", 20, wrap=True), Column("WHERE", 10)]
    rows = [[one["job"], one["key"], written(one["value"]), one["where"]][-len(columns) :] for one in values]
    surface.table(columns, rows)
    if values:
        first = values[-1]["job"]
        kind, _, name = first.rpartition(" ")
        after = {"source": ("verify", name, "--help"), "channel": ("notify", "test", name)}
        surface.then(command_line(*after.get(kind, ("describe", first))))
    return 0


def _of_file(surface: Surface, file: str, job: str | None) -> list[Shown]:
    from scheduler.config.load import load
    from scheduler.config.show import show as effective
    from scheduler.config.sources import Disk

    loaded = load(Disk(file), environ=surface.environ)
    try:
        values = effective(loaded, job)
    except KeyError:
        known = loaded.configuration
        there = [*known.jobs, *known.sources, *known.channels]
        hint = f"it has {', '.join(there[:10])}" if there else "it has none at all"
        raise NotFound(f"{file} has no job, source or channel `{job}`", hint=hint) from None
    return [{"job": one.job, "key": one.key, "value": one.value, "where": one.where} for one in values]


def _by_job(values: list[Shown]) -> dict[str, dict[str, Shown]]:
    found: dict[str, dict[str, Shown]] = {}
    for one in values:
        found.setdefault(one["job"], {})[one["key"]] = {"value": one["value"], "where": one["where"]}
    return found
