"""The database of this installation: locked, opened, migrated, and known to be the right one."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from scheduler.core.errors import StartError
from scheduler.settings import Settings
from scheduler.store.store import SqlStore, open_store, sqlite_file
from scheduler.supervisor.file_lock import FileLock

ENVIRONMENT = "environment"
"""Under this name the database remembers which installation it belongs to."""


def lock_database(settings: Settings, stack: ExitStack) -> tuple[int, ...]:
    """SQLite coordinates nobody: the file is for one daemon, whatever state directories there are. The descriptors of
    the locks, held until `stack` is closed."""
    file = sqlite_file(settings.database_url, settings.state_dir)
    if file is None:
        return ()
    lock = FileLock.acquire(file, create=True)
    stack.callback(lock.release)
    return lock.fds


def folders(settings: Settings) -> list[Path]:
    """Where this daemon writes."""
    file = sqlite_file(settings.database_url, settings.state_dir)
    return [settings.state_dir] if file is None else [settings.state_dir, file.parent]


def open_own_store(settings: Settings, release: str) -> SqlStore:
    """Raises what `open_store` raises, and StartError when the database belongs to another environment."""
    store = open_store(settings.database_url, settings.state_dir, release=release, after_restore=settings.after_restore)
    try:
        with store.begin() as tx:
            if not tx.generations.swap_value(ENVIRONMENT, None, settings.environment):
                known = tx.generations.value(ENVIRONMENT)
                if known != settings.environment:
                    raise StartError(
                        f"the database belongs to environment {known!r}, this daemon to {settings.environment!r}",
                        hint="correct SCHEDULER_ENVIRONMENT or SCHEDULER_DATABASE_URL",
                    )
    except BaseException:
        store.close()
        raise
    return store
