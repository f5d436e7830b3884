"""`schedctl db copy`: the ledger moves to another database."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import click

from scheduler.cli.database import as_url, find_database
from scheduler.cli.surface import Surface
from scheduler.cli.verb import verb
from scheduler.core.errors import InvalidInput, NotFound, Refused, SchedulerError, StartError, Unavailable

if TYPE_CHECKING:
    from scheduler.store.dialects.base import Database

AUDITED = timedelta(days=7)
"""How far back the audits of both sides are compared."""
OFTEN = 5.0
"""Seconds between two lines about the same table."""


@verb(
    "schedctl db copy --to-file /etc/schedulerd/credentials/database-url",
    "schedctl db copy --to sqlite:////srv/new.db --database postgresql://db/ledger",
)
@click.option("--to", metavar="URL", help="The new database: postgresql://… or sqlite:////….")
@click.option("--to-file", metavar="FILE", type=click.Path(path_type=Path), help="A file with that URL (passwords).")
@click.option("--database", metavar="URL", help="The present one (default: as for backup).")
def copy(surface: Surface, to: str | None, to_file: Path | None, database: str | None) -> int:
    """Copies the ledger to another, empty database, compares both, and marks the old one as moved.

    All daemons must be stopped. When interrupted, type the same again: it goes on."""
    target_url, source_url = _target(to, to_file), find_database(surface, database)
    try:
        return _copy(surface, source_url, target_url)
    except Unavailable as error:
        raise Unavailable(
            error.reason, hint="see to that, or correct the URL, and type the same again: it goes on where it was"
        ) from error


def _copy(surface: Surface, source_url: str, target_url: str) -> int:
    from scheduler.store.store import open_database, sqlite_file
    from scheduler.store.transfer import Begun, Transfer

    file, target_file = (sqlite_file(url, Path()) for url in (source_url, target_url))
    if file is not None and not os.path.isfile(file):
        raise NotFound(f"{file}: there is no such database", hint="name it with --database")
    if file is not None and target_file is not None and file.resolve() == target_file.resolve():
        raise Refused("both are the same database", hint="name another one with --to")
    with ExitStack() as stack:
        for one in (file, target_file):
            stack.enter_context(_alone(one))
        source = stack.enter_context(closing(open_database(source_url, Path())))
        target = stack.enter_context(closing(open_database(target_url, Path())))
        if source.place() == target.place():
            raise Refused("both are the same database", hint="name another one with --to")
        transfer = Transfer(source, target)
        begun = transfer.begin(version("schedulerd"))
        if begun is Begun.DONE:
            if not surface.structured({"from": source.place(), "to": target.place(), "rows": None}, [target.place()]):
                surface.say(f"{source.place()} was copied to {target.place()} before: nothing is left to do")
            return 0
        if begun is not Begun.NEW:
            surface.say(begun.value)
        rows = transfer.copy(_Teller(surface).tell)
        differences = transfer.compare() or _audits_differ(surface, source, target)
        if differences:
            raise SchedulerError(
                f"the copy differs: {'; '.join(differences)}",
                hint="nothing was marked; use the old one, and report this",
            )
        transfer.finish()
    shown = {"from": source.place(), "to": target.place(), "rows": rows}
    if surface.structured(shown, [target.place()]):
        return 0
    surface.say(f"✓ {rows:,} rows are in {target.place()}; numbers and audits agree")
    surface.say(f"{source.place()} is marked as moved: no daemon starts on it by accident")
    surface.say("set SCHEDULER_DATABASE_URL (or _FILE) to the new one and start the daemon")
    return 0


def _target(to: str | None, to_file: Path | None) -> str:
    if (to is None) == (to_file is None):
        raise click.UsageError("name the new database with --to URL or --to-file FILE")
    if to is not None:
        return as_url(to, "--to")
    assert to_file is not None
    try:
        return as_url(to_file.read_text().strip(), "--to-file")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"--to-file {to_file}: {error}") from None


@contextmanager
def _alone(file: Path | None) -> Iterator[None]:
    """No daemon uses that file, and none begins to."""
    from scheduler.supervisor.file_lock import FileLock, InUse

    if file is None:
        yield
        return
    try:
        lock = FileLock.acquire(file)
    except InUse as error:
        raise Refused(error.reason, hint="stop it first (systemctl stop schedulerd)") from None
    except StartError as error:
        raise Refused(error.reason, hint=error.hint) from None
    try:
        yield
    finally:
        lock.release()


def _audits_differ(surface: Surface, source: Database, target: Database) -> list[str]:
    from scheduler.engine.audit import audit
    from scheduler.store.store import SqlStore

    until = surface.now()
    old, new = (audit(SqlStore(one), until - AUDITED, until).jobs for one in (source, target))
    return [] if old == new else [f"the audits of the last {AUDITED.days} days do not agree"]


class _Teller:
    """Says how far it is: once per table, and now and then while one takes its time."""

    def __init__(self, surface: Surface) -> None:
        self._surface = surface
        self._said = time.monotonic()

    def tell(self, table: str, there: int, wanted: int) -> None:
        now = time.monotonic()
        if there == wanted or now - self._said >= OFTEN:
            self._said = now
            self._surface.say(f"{table}: {there:,}" + (f" of {wanted:,}" if there < wanted else ""))
