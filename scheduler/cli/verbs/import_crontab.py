"""`schedctl import-crontab`: a crontab as jobs.yaml; offline."""

from __future__ import annotations

import pwd
import subprocess
import sys
from pathlib import Path

import click

from scheduler.cli.surface import Surface
from scheduler.cli.verb import verb
from scheduler.core.errors import InvalidInput, NotFound
from scheduler.core.zone import zone_of


@verb(
    "schedctl import-crontab > jobs.yaml",
    "schedctl import-crontab --system /etc/crontab /etc/cron.d > jobs.yaml",
    "crontab -l -u www-data | schedctl import-crontab - --faithful",
)
@click.argument("files", nargs=-1, metavar="[FILE|FOLDER|-]...")
@click.option("--system", is_flag=True, help="Lines have a column for the user, as in /etc/crontab and /etc/cron.d.")
@click.option("--timezone", "--tz", "zone", metavar="ZONE", help="The zone in which cron read them (default: yours).")
@click.option("--faithful", is_flag=True, help="Cron's policies instead of ours: overlaps, no catch-up, no repeats.")
@click.option("--shadow", is_flag=True, help="Every job disabled, to look first.")
def import_crontab(
    surface: Surface, files: tuple[str, ...], system: bool, zone: str | None, faithful: bool, shadow: bool
) -> int:
    """Writes a jobs.yaml with the jobs of crontabs (default: yours, from `crontab -l`).

    On stderr: what could not be taken over, what will be different from cron, and the steps of the switch."""
    from scheduler.config.crontab_writer import import_crontab as convert

    zone = zone or surface.zone
    try:
        zone_of(zone)
    except InvalidInput as error:
        raise click.UsageError(f"{error.reason}; {error.hint}") from None
    texts = [text for name in files for text in _read(name)] if files else [("crontab -l", _own())]
    imported = convert(texts, zone=zone, system=system, faithful=faithful, shadow=shadow, home_of=_home)
    data = {
        "yaml": imported.yaml,
        "jobs": list(imported.jobs),
        "notes": {name: list(notes) for name, notes in imported.notes.items()},
        "left_out": [
            {"file": one.file, "line": one.line, "text": one.text, "reason": one.reason, "hint": one.hint}
            for one in imported.left_out
        ],
        "steps": list(imported.steps),
    }
    if surface.structured(data, imported.jobs):
        return 0
    surface.out(imported.yaml.rstrip("\n"))
    for message in imported.messages():
        surface.say(message)
    return 0


def _read(name: str) -> list[tuple[str, str]]:
    if name == "-":
        return [("stdin", _text(sys.stdin.buffer.read()))]
    path = Path(name)
    try:
        if path.is_dir():
            return [(str(one), _text(one.read_bytes())) for one in sorted(path.iterdir()) if one.is_file()]
        return [(name, _text(path.read_bytes()))]
    except FileNotFoundError:
        raise NotFound(f"there is no file {name}") from None
    except OSError as error:
        raise InvalidInput(f"{name} cannot be read: {error.strerror}") from None


def _own() -> str:
    try:
        done = subprocess.run(["crontab", "-l"], capture_output=True, check=False)
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


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
