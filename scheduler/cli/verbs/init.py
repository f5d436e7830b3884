"""`schedctl init`: a first jobs.yaml; offline."""

from __future__ import annotations

from pathlib import Path

import click

from scheduler.cli.surface import Surface
from scheduler.cli.verb import verb
from scheduler.core.errors import InvalidInput, Refused
from scheduler.core.zone import zone_of


@verb("schedctl init", "schedctl init --timezone Europe/Paris", "schedctl init - | less")
@click.argument("file", default="jobs.yaml")
@click.option("--timezone", "--tz", "zone", metavar="ZONE", help="The zone of its jobs (default: yours).")
def init(surface: Surface, file: str, zone: str | None) -> int:
    """Writes a first FILE (default: jobs.yaml; - for stdout) with one job and examples. Never overwrites anything."""
    from scheduler.config.starter import starter

    zone = zone or surface.zone
    try:
        zone_of(zone)
    except InvalidInput as error:
        raise click.UsageError(f"{error.reason}; {error.hint}") from None
    text = starter(zone)
    if file == "-":
        surface.out(text.rstrip("\n"))
        return 0
    try:
        with Path(file).open("x", encoding="utf-8") as made:
            made.write(text)
    except FileExistsError:
        raise Refused(f"{file} exists", hint=f"schedctl check {file}, or give another name") from None
    except OSError as error:
        raise InvalidInput(f"{file} cannot be written: {error.strerror}", hint="give a place of yours") from None
    surface.out(file)
    surface.say(f"wrote {file} (times in {zone})")
    surface.then(f"schedctl check {file}, then schedulerd --config {file}")
    return 0
