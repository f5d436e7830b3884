"""`schedctl init`: a first jobs.yaml, and what a source needs in it; offline."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click

from scheduler.cli.surface import Surface
from scheduler.cli.text import command_line
from scheduler.cli.verb import verb
from scheduler.core.errors import InvalidInput, Refused
from scheduler.core.zone import zone_of


@verb("schedctl init", "schedctl init --timezone Europe/Paris", "schedctl init source stripe > jobs.d/stripe.yaml")
@click.argument("file", default="jobs.yaml", metavar="[FILE | source]")
@click.argument("name", required=False)
@click.option("--timezone", "--tz", "zone", metavar="ZONE", help="The zone of its jobs (default: yours).")
@click.option("--preset", metavar="NAME", help="Of a source: its provider, if it is not called like that.")
def init(surface: Surface, file: str, name: str | None, zone: str | None, preset: str | None) -> int:
    """Writes a first FILE (default: jobs.yaml; - for stdout) with one job and examples, and beside it jobs.schema.json,
    with which editors help. Never overwrites anything.

    `init source NAME` prints what a sender of webhooks needs: the source, a job for its events, a scan for those that
    never arrive, and the address to register."""
    zone = zone or surface.zone
    try:
        zone_of(zone)
    except InvalidInput as error:
        raise click.UsageError(f"{error.reason}; {error.hint}") from None
    if file == "source":
        return _source(surface, name, zone, preset)
    if name is not None or preset is not None:
        raise click.UsageError("to begin with a sender of webhooks: schedctl init source NAME")
    return _file(surface, file, zone)


def _file(surface: Surface, file: str, zone: str) -> int:
    from scheduler.config.schema import text as schema
    from scheduler.config.starter import starter

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


def _source(surface: Surface, name: str | None, zone: str, word: str | None) -> int:
    from scheduler.config.fields import NAME_PATTERN, NAME_RULE
    from scheduler.config.starter_source import starter_source
    from scheduler.config.suggest import did_you_mean
    from scheduler.signatures.registry import discover, presets

    known = presets()
    if name is None:
        raise click.UsageError(f"name the source: schedctl init source NAME, one of {', '.join(known)} or your own")
    if not re.fullmatch(NAME_PATTERN, name):
        raise click.UsageError(f"`{name[:60]}` is not a good name; {NAME_RULE}")
    if word is not None and word not in known:
        raise click.UsageError(f"there is no preset `{word[:60]}`; {did_you_mean(word, known)}")
    scheme = word or (name if name in known else None)
    needs_url = scheme is not None and bool(discover()[scheme]().needs_url)
    preset, base = known.get(scheme or ""), surface.environ.get("SCHEDULER_PUBLIC_URL")
    surface.out(starter_source(name, scheme, preset, needs_url=needs_url, zone=zone, base=base).rstrip("\n"))
    surface.say("fill it in, put it into jobs.yaml, give the daemon the secrets, register the address")
    if base is None:
        surface.say("the address begins as the daemon is reached from outside: SCHEDULER_PUBLIC_URL says it")
    surface.then(command_line("check"))
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
