"""Where the database is, for verbs that work on it themselves."""

from __future__ import annotations

import os
from pathlib import Path

from scheduler.cli.surface import Surface
from scheduler.core.errors import InvalidInput, NotFound, Refused, Unavailable
from scheduler.database_url import usable_url
from scheduler.settings import load_settings

SETTINGS = ("SCHEDULER_DATABASE_URL", "SCHEDULER_DATABASE_URL_FILE", "SCHEDULER_STATE_DIR")
FILE = "scheduler.db"


def find_database(surface: Surface, given: str | None) -> str:
    """A URL: the one that was given (or the path of a file), else that of this process's environment, else what the
    running daemon says, else the file in one of the usual places. NotFound lists where it looked; Refused for a daemon
    on another machine, whose paths mean nothing here."""
    if given is not None:
        return as_url(given, "--database")
    if any(name in surface.environ for name in SETTINGS):
        return load_settings({}, surface.environ).database_url
    if surface.environ.get("SCHEDCTL_URL"):
        raise Refused(
            "SCHEDCTL_URL names a daemon elsewhere, and this works on the database itself",
            hint="type it where the database can be reached, and name that with --database",
        )
    try:
        return as_url(str(surface.daemon.get("/v1/database")["url"]), "the daemon's database")
    except Unavailable:
        pass
    places = usual_places(surface)
    for place in places:
        if os.path.isfile(place):  # False, too, where this person may not look.
            return f"sqlite:///{place}"
    raise NotFound(
        "no daemon runs, and there is no database in " + ", ".join(str(place.parent) for place in places),
        hint="name it with --database",
    )


def as_url(text: str, what: str) -> str:
    """A URL that the store takes; the path of a file is one of SQLite."""
    if "://" not in text:
        return f"sqlite:///{Path(text).absolute()}"
    try:
        return usable_url(text)
    except ValueError as error:
        raise InvalidInput(f"{what}: {error}") from None


def usual_places(surface: Surface) -> list[Path]:
    home = surface.environ.get("HOME", str(Path.home()))
    state = surface.environ.get("XDG_STATE_HOME") or os.path.join(home, ".local", "state")
    return [Path(folder).absolute() / FILE for folder in ("var", "/var/lib/schedulerd", f"{state}/schedulerd")]
