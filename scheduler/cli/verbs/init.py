"""`schedctl init`: a first jobs.yaml; offline."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from scheduler.cli.surface import Surface
from scheduler.cli.text import command_line
from scheduler.cli.verb import verb
from scheduler.core.errors import InvalidInput, Refused
from scheduler.core.zone import zone_of


@verb("schedctl init", "schedctl init --timezone Europe/Paris", "schedctl init - | less")
@click.argument("file", default="jobs.yaml")
@click.option("--timezone", "--tz", "zone", metavar="ZONE", help="The zone of its jobs (default: yours).")
def init(surface: Surface, file: str, zone: str | None) -> int:
    """Writes a first FILE (default: jobs.yaml; - for stdout) with one job and examples, and beside it jobs.schema.json,
    with which editors help. Never overwrites anything."""
    from scheduler.config.schema import text as schema
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
    if not _write(Path(file), text):
        raise Refused(f"{file} exists", hint=f"{command_line('check', file)}, or give another name")
    beside = Path(file).with_name("jobs.schema.json")
    made = [file, str(beside)] if _write(beside, schema()) else [file]
    for name in made:
        surface.out(name)
    surface.say(f"wrote {' and '.join(made)} (times in {zone})")
    surface.say(f"to start with it: {shlex.join(['schedulerd', '--config', file])}")
    surface.then(command_line("check", file))
    return 0


def _write(path: Path, text: str) -> bool:
    """Whether it was made; False if it exists."""
    try:
        with path.open("x", encoding="utf-8") as made:
            made.write(text)
    except FileExistsError:
        return False
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror}", hint="give a place of yours") from None
    return True
