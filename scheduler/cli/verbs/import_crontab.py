"""`schedctl import-crontab`: a crontab as jobs.yaml; offline."""

from __future__ import annotations

import os
import pwd
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from scheduler.cli.surface import Surface
from scheduler.cli.verb import verb
from scheduler.core.errors import InvalidInput, NotFound
from scheduler.core.zone import zone_of

if TYPE_CHECKING:
    from scheduler.config.crontab import Given


@verb(
    "schedctl import-crontab > jobs.yaml",
    "schedctl import-crontab /etc/crontab /etc/cron.d > jobs.yaml",
    "crontab -l -u www-data | schedctl import-crontab - --user www-data --faithful",
    "ssh db7 crontab -l | schedctl import-crontab - --external > jobs.yaml",
)
@click.argument("files", nargs=-1, metavar="[FILE|FOLDER|-]...")
@click.option("--system", is_flag=True, help="Lines have a column for the user, as in /etc/crontab and /etc/cron.d.")
@click.option("--user", metavar="USER", help="Whose crontab it is, if it is not yours: its jobs run as this user.")
@click.option("--timezone", "--tz", "zone", metavar="ZONE", help="The zone in which cron read them (default: yours).")
@click.option("--faithful", is_flag=True, help="Cron's policies instead of ours: overlaps, no catch-up, no repeats.")
@click.option("--shadow", is_flag=True, help="Every job disabled, to look first.")
@click.option("--external", is_flag=True, help="The lines stay where they are, and only tell how it went.")
def import_crontab(
    surface: Surface,
    files: tuple[str, ...],
    system: bool,
    user: str | None,
    zone: str | None,
    faithful: bool,
    shadow: bool,
    external: bool,
) -> int:
    """Writes a jobs.yaml with the jobs of crontabs (default: yours, from `crontab -l`).

    On stderr: what could not be taken over, what will be different from cron, and the steps of the switch. Exit 1 if
    lines were lost, which are named, or nothing was found."""
    from scheduler.config.crontab_columns import Known
    from scheduler.config.crontab_homes import Homes
    from scheduler.config.crontab_writer import import_crontab as convert

    zone = zone or surface.zone
    try:
        zone_of(zone)
    except InvalidInput as error:
        raise click.UsageError(f"{error.reason}; {error.hint}") from None
    if external and (faithful or shadow):
        raise click.UsageError("--external runs nothing here: leave out --faithful and --shadow")
    if system and user:
        raise click.UsageError("give --system or --user, not both")
    if system and not files:
        raise click.UsageError("--system is about files; name them: /etc/crontab /etc/cron.d")
    texts = [_given(name, text, system, user) for file in files for name, text in _read(file)]
    if not files:
        texts = [_given("crontab -l", _own(user), False, user)]
    try:
        imported = convert(
            texts,
            zone=zone,
            now=surface.now(),
            faithful=faithful,
            shadow=shadow,
            external=external,
            homes=Homes(_home, _may_be_folder, None if user else _myself()),
            known=Known(_is_user, _is_program),
            schedctl=shutil.which("schedctl") or str(Path(sys.argv[0]).absolute()),
        )
    except InvalidInput as error:
        raise click.UsageError(f"{error.reason}\nhint: {error.hint}") from None
    data = {
        "yaml": imported.yaml,
        "jobs": list(imported.jobs),
        "notes": {name: list(notes) for name, notes in imported.notes.items()},
        "left_out": [
            {
                "file": one.file,
                "line": one.line,
                "text": one.text,
                "reason": one.reason,
                "hint": one.hint,
                "lost": one.lost,
            }
            for one in imported.left_out
        ],
        "steps": list(imported.steps),
    }
    if not surface.structured(data, imported.jobs):
        if imported.jobs:
            surface.out(imported.yaml.rstrip("\n"))
        for message in imported.messages():
            surface.say(message)
        if not imported.jobs:
            where = ", ".join(one.name for one in texts) or ", ".join(files)
            surface.say(f"✗ nothing that cron runs was found in {where}")
    return 0 if imported.jobs and not imported.lost else 1


def _given(name: str, text: str, system: bool, user: str | None) -> Given:
    """The crontab, as cron reads a file in that place."""
    from scheduler.config.crontab import Given
    from scheduler.config.crontab_columns import has_user_column, owner_of

    place = name if name in ("crontab -l", "stdin") else str(Path(name).absolute())
    return Given(name, text, system or has_user_column(place), user or owner_of(place))


def _read(name: str) -> list[tuple[str, str]]:
    if name == "-":
        return [("stdin", _text(sys.stdin.buffer.read()))]
    path = Path(name)
    try:
        if path.is_dir():
            return [(str(one), _text(one.read_bytes())) for one in sorted(path.glob("[!.]*")) if one.is_file()]
        return [(name, _text(path.read_bytes()))]
    except FileNotFoundError:
        raise NotFound(f"there is no file {name}") from None
    except OSError as error:
        raise InvalidInput(f"{name} cannot be read: {error.strerror}") from None


def _own(user: str | None) -> str:
    whose = ["-u", user] if user else []
    try:
        done = subprocess.run(["crontab", "-l", *whose], capture_output=True, check=False)
    except FileNotFoundError:
        raise NotFound("there is no program `crontab` here", hint="name a file, or - for stdin") from None
    if done.returncode:
        said = _text(done.stderr).strip() or "it has no crontab"
        raise NotFound(f"crontab -l: {said}", hint="name a file, or - for stdin")
    return _text(done.stdout)


def _home(user: str | None) -> str | None:
    try:
        return str(Path.home()) if user is None else pwd.getpwnam(user).pw_dir
    except (KeyError, RuntimeError):
        return None


def _myself() -> str | None:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return None


def _may_be_folder(path: str) -> bool:
    """Also if it lies where this person must not look."""
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    except OSError:
        return True


def _is_user(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def _is_program(word: str) -> bool:
    from scheduler.config.here import OF_THE_SHELL

    return OF_THE_SHELL.fullmatch(word) is not None or shutil.which(word) is not None


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
