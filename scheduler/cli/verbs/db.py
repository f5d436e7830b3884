"""`schedctl db`: the state of the database."""

from __future__ import annotations

import click

from scheduler.cli.surface import Surface
from scheduler.cli.verb import SETTINGS, verb

UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


@click.group(context_settings=SETTINGS)
def db() -> None:
    """The database behind the daemon."""


@verb("schedctl db status")
def status(surface: Surface) -> int:
    """Kind, place, schema revision, size and rows per table."""
    found = surface.daemon.get("/v1/database")
    if surface.structured(found, [found["url"]]):
        return 0
    surface.out(f"{found['kind']}  {found['url']}")
    surface.out(f"schema {found['revision']}, may be used from release {found['oldest_release']} on")
    surface.out(f"size {size(found['size'])}")
    for table, rows in found["rows"].items():
        surface.out(f"  {table:<20} {rows:>12}")
    surface.then("schedctl status")
    return 0


db.add_command(status)


def size(count: int) -> str:
    """`12.3 MiB`."""
    number, unit = float(count), 0
    while number >= 1024 and unit < len(UNITS) - 1:
        number, unit = number / 1024, unit + 1
    return f"{number:.1f} {UNITS[unit]}" if unit else f"{count} B"
