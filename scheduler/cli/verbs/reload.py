"""`schedctl reload`: puts the daemon's file in force."""

from __future__ import annotations

from typing import Any

import click

from scheduler.cli.surface import Surface
from scheduler.cli.text import command_line, counted
from scheduler.cli.verb import verb

Shown = dict[str, Any]

LONG = 120.0
"""Seconds that a very large file may take."""

_LEFTOVER = (
    ("occurrences", "occurrence", "occurrences", "would be canceled"),
    ("payload_runs", "run with a payload", "runs with a payload", "would become dead letters"),
    ("other_runs", "other run", "other runs", "started by hand or by a program; would be canceled"),
    ("held_events", "held event", "held events", "of a paused source; would become dead letters"),
)
"""What waits of a removed job, and what would become of it."""


@verb("schedctl reload", "schedctl reload --if-hash 9f2c1e", "schedctl reload --drop-pending")
@click.option(
    "--drop-pending",
    is_flag=True,
    help="Also if removed jobs have waiting runs: canceled, or dead letters if they carry a payload.",
)
@click.option("--if-hash", metavar="HASH", help="Only if the file is still the one that diff or check showed.")
def reload(surface: Surface, drop_pending: bool, if_hash: str | None) -> int:
    """Has the daemon read its jobs.yaml and put it in force: all or nothing. What runs goes on.

    Exit 1 if the file is bad, 5 if it is refused; either way the old configuration stays."""
    done = surface.daemon.post("/v1/reload", {"drop_pending": drop_pending, "if_hash": if_hash}, timeout=LONG)
    if surface.structured(done, [done["hash"]]):
        return 0
    changes(surface, done)
    for warning in done["warnings"]:
        surface.say(f"warning: {warning}")
    surface.say(f"✓ {totals(done)}; {done['hash'][:12]} is in force (generation {done['generation']})")
    surface.then(command_line("list"))
    return 0


def changes(surface: Surface, done: Shown) -> None:
    """One line per job, source and queue that is new, other or gone, and what differs."""
    marks = {**dict.fromkeys(done["added"], "+"), **dict.fromkeys(done["removed"], "-")}
    words = {"added": "+", "removed": "-"}
    marks |= {name: words[lines[0]] for name, lines in done["changes"].items() if lines and lines[0] in words}
    names = [*done["added"], *done["changed"], *done["removed"]]
    names += [name for name in done["changes"] if name not in names]
    for name in names:
        surface.out(f"{marks.get(name, '~')} {name}")
        for line in done["changes"].get(name, ()):
            surface.out(f"    {line}")
        pending = done["pending"].get(name)
        for kind, one, many, fate in _LEFTOVER if pending else ():
            if pending.get(kind):
                surface.out(f"    waiting: {counted(pending[kind], one, many)} ({fate})")


def totals(done: Shown) -> str:
    return (
        f"{len(done['added'])} added, {len(done['changed'])} changed, {len(done['removed'])} removed, "
        f"{done['unchanged']} unchanged"
    )
