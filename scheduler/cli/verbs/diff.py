"""`schedctl diff`: what a reload would change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from scheduler.cli.surface import Surface
from scheduler.cli.text import command_line, counted
from scheduler.cli.times import absolute
from scheduler.cli.verb import verb
from scheduler.cli.verbs.reload import LONG, changes, totals
from scheduler.core.errors import InvalidInput
from scheduler.core.instants import relative

if TYPE_CHECKING:
    from scheduler.core.job import Configuration

Shown = dict[str, Any]

TROUBLE = 2
"""As diff(1) has it: 0 no difference, 1 a difference, 2 it cannot be told."""


@verb("schedctl diff", "schedctl diff jobs.new.yaml", "schedctl diff jobs.old.yaml jobs.yaml")
@click.argument("files", nargs=-1, metavar="[FILE [FILE]]")
def diff(surface: Surface, files: tuple[str, ...]) -> int:
    """Shows what a reload of the daemon's file would change. With FILE: what that file would change; with two files:
    what the second changes against the first, without a daemon.

    Exit 0: nothing, 1: something, 2: it cannot be told."""
    if len(files) > 2:
        raise click.UsageError("give at most two files")
    try:
        done = _by_daemon(surface) if not files else _of_files(surface, files)
    except InvalidInput as error:
        surface.say(f"schedctl: {error}")
        return TROUBLE
    differs = bool(done["added"] or done["changed"] or done["removed"] or done["changes"])
    if surface.structured(done, [*done["added"], *done["changed"], *done["removed"]]):
        return 1 if differs else 0
    changes(surface, done)
    for warning in done["warnings"]:
        surface.say(f"warning: {warning}")
    surface.say(totals(done) if differs else f"no difference ({counted(done['unchanged'], 'job')})")
    if differs and len(files) < 2:
        reload = command_line("reload", "--if-hash", done["hash"][:12])
        surface.then(_waiting_first(surface, done["pending"], reload) if done["pending"] else reload)
    elif len(files) < 2:
        surface.then(command_line("list"))
    return 1 if differs else 0


def _waiting_first(surface: Surface, pending: dict[str, dict[str, int]], reload: str) -> str:
    """What to look at before a reload that is refused as things stand; dropping what waits is told, never offered."""
    sums = {kind: sum(left[kind] for left in pending.values()) for kind in next(iter(pending.values()))}
    letters = sums["payload_runs"] + sums["held_events"]
    canceled = sums["occurrences"] + sums["other_runs"]
    parts = [f"{counted(letters, 'dead letter')}"] if letters else []
    parts += [f"{canceled} canceled"] if canceled else []
    surface.say("a reload is refused while these wait: let them finish first")
    if sums["held_events"]:
        surface.say("events are held while their source is `paused`: end that first")
    surface.say(f"dropping them ({', '.join(parts)}) needs --drop-pending: {reload} --drop-pending")
    waiting = [name for name, left in pending.items() if any(left[kind] for kind in left if kind != "held_events")]
    return command_line("runs", waiting[0], "--status", "pending") if waiting else command_line("events", "--unhandled")


def _by_daemon(surface: Surface) -> Shown:
    return dict(surface.daemon.post("/v1/reload", {"dry_run": True}, timeout=LONG))


def _of_files(surface: Surface, files: tuple[str, ...]) -> Shown:
    from scheduler.config.diff import describe
    from scheduler.config.diff import diff as difference
    from scheduler.config.load import load_file, load_texts

    new = load_file(files[-1], environ=surface.environ)
    if len(files) == 2:
        old = load_file(files[0], environ=surface.environ)
    else:
        old = load_texts(surface.daemon.get("/v1/configuration")["files"], environ=surface.environ)
    found = difference(old, new)
    words = {name: list(lines) for name, lines in describe(old, new).items()}
    for name in (*found.added, *found.changed):
        words[name] = words.get(name, []) + _next_run(surface, old, new, name)
    return {
        "applied": False,
        "hash": new.hash,
        "added": list(found.added),
        "changed": list(found.changed),
        "removed": list(found.removed),
        "unchanged": len(new.jobs) - len(found.added) - len(found.changed),
        "pending": {},
        "changes": words,
        "warnings": [],
    }


def _next_run(surface: Surface, old: Configuration, new: Configuration, name: str) -> list[str]:
    before, after = (_first(surface, configuration, name) for configuration in (old, new))
    if before == after:
        return []
    return [f"next run: {before} → {after}"] if before else [f"next run: {after}"]


def _first(surface: Surface, configuration: Configuration, name: str) -> str | None:
    job = configuration.jobs.get(name)
    if job is None or job.schedule is None or not job.enabled:
        return None
    now = surface.now()
    instant = job.schedule.after(now)
    if instant is None:
        return None
    return f"{absolute(instant, job.schedule.zone, now)} ({relative(instant, now=now)})"
