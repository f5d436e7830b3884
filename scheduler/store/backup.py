"""A copy of a SQLite database that is in use: of one moment, checked, and there only if it is whole."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from scheduler.core.canary import CANARY
from scheduler.core.errors import InvalidInput, Refused, SchedulerError
from scheduler.core.value_object import value_object
from scheduler.store.dialects.base import PATIENCE


@value_object
class Backup:
    """`size` in bytes; `revision` of the schema; `runs`: those of the ledger but for the canary's, so that people see
    what they have."""

    path: Path
    size: int
    revision: str
    runs: int


def back_up(source: Path, target: Path) -> Backup:
    """Copies `source`, which a daemon may be reading and writing all the while, to `target` (0600), a new file.

    The copy is read through once (`integrity_check`, `foreign_key_check`) and on disk before it gets its name. Raises
    InvalidInput for a source or a target that cannot be used, Refused for a target that is there, SchedulerError for a
    copy that is damaged; then there is no target."""
    if os.path.lexists(target):
        raise Refused(f"{target} is there already", hint="name another file: a backup never replaces one")
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as error:
        raise InvalidInput(
            f"{target.parent}: {error.strerror}", hint="name a file in a directory that you can write"
        ) from None
    os.close(descriptor)
    draft = Path(name)
    try:
        revision, runs = _copy(source, draft)
        size = _on_disk(draft)
        draft.rename(target)
        _on_disk(target.parent)
    except BaseException:
        for left in (draft, *draft.parent.glob(f"{draft.name}-*")):
            left.unlink(missing_ok=True)
        raise
    return Backup(target, size, revision, runs)


def _copy(source: Path, draft: Path) -> tuple[str, int]:
    with closing(_opened(source)) as old, closing(sqlite3.connect(draft, isolation_level=None)) as new:
        try:
            old.backup(new)
            # One file, without those that belong to a database in use.
            new.execute("PRAGMA journal_mode=DELETE")
        except sqlite3.Error as error:
            raise SchedulerError(f"{source} could not be copied: {error}", hint="is there room for the copy?") from None
        try:
            broken = [row[0] for row in new.execute("PRAGMA integrity_check") if row[0] != "ok"]
            broken += [f"a row of {row[0]} without its {row[2]}" for row in new.execute("PRAGMA foreign_key_check")]
        except sqlite3.DatabaseError as error:
            broken = [str(error)]
        if broken:
            raise SchedulerError(
                f"{source} is damaged: {broken[0]}" + (f" (and {len(broken) - 1} more)" if broken[1:] else ""),
                hint="keep the last good backup; `sqlite3 FILE .recover` reads what can be read",
            )
        return _about(new, source)


def _opened(source: Path) -> sqlite3.Connection:
    """For reading; the database of a daemon stays as it is, whoever reads it."""
    try:
        with source.open("rb"):
            pass
    except OSError as error:
        hint = (
            "name it with --database" if isinstance(error, FileNotFoundError) else "only its user and root may read it"
        )
        raise InvalidInput(f"{source}: {error.strerror}", hint=hint) from None
    connection = sqlite3.connect(
        f"{source.absolute().as_uri()}?mode=ro", uri=True, timeout=PATIENCE.total_seconds(), isolation_level=None
    )
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error as error:
        connection.close()
        raise InvalidInput(f"{source}: {error}", hint="is it the database of a schedulerd?") from None
    return connection


def _about(copy: sqlite3.Connection, source: Path) -> tuple[str, int]:
    try:
        (revision,) = copy.execute("SELECT version_num FROM alembic_version").fetchone()
        (runs,) = copy.execute("SELECT count(*) FROM runs WHERE job <> ?", (CANARY,)).fetchone()
    except (sqlite3.Error, TypeError):
        raise InvalidInput(f"{source} is no database of schedulerd", hint="name it with --database") from None
    return str(revision), int(runs)


def _on_disk(path: Path) -> int:
    """Waits until it is there after a power cut, too; its size."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
        return os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)
