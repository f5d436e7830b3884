"""`schedctl db`: the database behind the daemon."""

from __future__ import annotations

import shlex
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from scheduler.cli.surface import Surface
from scheduler.cli.text import command_line, counted, plain
from scheduler.cli.verb import SETTINGS, verb
from scheduler.cli.verbs.db_copy import copy
from scheduler.core.errors import Refused
from scheduler.core.queries import COUNTED

UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


@click.group(context_settings=SETTINGS)
def db() -> None:
    """The database behind the daemon."""


@verb("schedctl db status")
def status(surface: Surface) -> int:
    """Kind, place, schema revision, size and rows per table. While the database does not answer, the daemon says why,
    and what to look at; exit 3."""
    found = surface.daemon.get("/v1/database")
    if surface.structured(found, [found["url"]]):
        return 3 if found["away"] else 0
    surface.out(f"{found['kind']}  {found['url']}")
    if found["away"]:
        return _away(surface, found)
    surface.out(f"schema {found['revision']}, may be used from release {found['oldest_release']} on")
    surface.out(f"size {size(found['size'])}")
    for table, rows in found["rows"].items():
        surface.out(f"  {table:<20} {rows_of(rows, found['kind']):>12}")
    surface.then("schedctl status")
    return 0


def _away(surface: Surface, found: dict[str, Any]) -> int:
    why = found["away"].removeprefix(f"database {found['url']}: ")
    surface.out(surface.style("missed", f"✗ it does not answer: {plain(why)}"))
    if found["hint"]:
        surface.out(f"    {found['hint']}")
    surface.out(f"    → {found['look']}   on the daemon's machine")
    surface.out("size, schema and rows are unknown meanwhile; `status` and `show` are answered without it")
    surface.then(command_line("status"))
    return 3


@verb(
    "schedctl db backup /srv/backups/",
    "schedctl db backup /srv/backups/scheduler-$(date +%F).db",
    "schedctl db backup --database /srv/old/scheduler.db before-the-move.db",
)
@click.argument("target")
@click.option("--database", metavar="FILE", help="The database (default: the daemon's, running or not).")
def backup(surface: Surface, target: str, database: str | None) -> int:
    """Copies the database to TARGET, a new file, or a directory (`/`) where it gets a name with the time.

    The daemon goes on meanwhile. The copy is of one moment, checked, and there only if it is whole. For SQLite;
    PostgreSQL brings pg_dump."""
    from scheduler.cli.database import find_database
    from scheduler.store.backup import back_up
    from scheduler.store.store import sqlite_file

    file = sqlite_file(find_database(surface, database), Path())
    place = _place_of(target, surface.now())
    if file is None:
        raise Refused(
            "the ledger is in PostgreSQL, which makes consistent copies itself",
            hint=f"{shlex.join(['pg_dump', '--format=custom', f'--file={place}'])} and the database's URL",
        )
    if not place.parent.is_dir():
        raise Refused(
            f"there is no directory {place.parent}",
            hint=f"make it first: {shlex.join(['mkdir', '-p', str(place.parent)])}",
        )
    done = back_up(file, place)
    shown = {"path": str(done.path), "size": done.size, "revision": done.revision, "runs": done.runs}
    if surface.structured(shown, [str(done.path)]):
        return 0
    surface.out(str(done.path))
    surface.say(f"✓ {size(done.size)} with {counted(done.runs, 'run')}, schema {done.revision}; integrity checked")
    return 0


def _place_of(target: str, now: datetime) -> Path:
    """The file that is meant: in a directory, there or named as one with a `/`, one with the time in its name."""
    place = Path(target)
    if target.endswith("/") or place.is_dir():
        return place / f"scheduler-{now:%Y%m%dT%H%M%SZ}.db"
    return place


def rows_of(count: int, kind: str) -> str:
    """`12`; `~4000000` where that is an estimate."""
    return f"~{count}" if kind == "postgresql" and count > COUNTED else str(count)


for one in (status, backup, copy):
    db.add_command(one)


def size(count: int) -> str:
    """`12.3 MiB`."""
    number, unit = float(count), 0
    while number >= 1024 and unit < len(UNITS) - 1:
        number, unit = number / 1024, unit + 1
    return f"{number:.1f} {UNITS[unit]}" if unit else f"{count} B"
