"""`schedctl status`: what is wrong, since when, and what to type."""

from __future__ import annotations

from typing import Any

from scheduler.cli.surface import Surface
from scheduler.cli.text import counted, plain
from scheduler.cli.times import both, clock_note
from scheduler.cli.verb import verb

Shown = dict[str, Any]

SHOWN = 30
"""Problems shown in full; the rest is a number."""


@verb("schedctl status", "schedctl status -o json || page-somebody", watched=True)
def status(surface: Surface) -> int:
    """Shows what is wrong, since when, the last line of output, and what to type. Exit 1 if anything is wrong."""
    found = surface.daemon.get("/v1/status")
    code = 0 if found["ok"] else 1
    if surface.structured(found, [one["job"] or one["kind"] for one in found["problems"]]):
        return code
    problems = found["problems"]
    surface.out(_headline(surface, found))
    for problem in problems[:SHOWN]:
        _show(surface, problem)
    if len(problems) > SHOWN:
        surface.out(f"… and {len(problems) - SHOWN} more (schedctl status -o json)")
    surface.out(_sums(surface, found))
    note = clock_note(found["now"], surface.now())
    if note is not None:
        surface.say(note)
    commands = [one["command"] for one in problems if one["command"]]
    surface.then(commands[0] if commands else "schedctl list")
    return code


def _headline(surface: Surface, found: Shown) -> str:
    version = f"schedulerd {found['version']}, node {found['node'][-8:]}"
    if found["ok"]:
        return surface.style("ok", "✓ all is well") + f"  ({version})"
    count = len(found["problems"])
    words = "1 thing needs attention" if count == 1 else f"{count} things need attention"
    return surface.style("missed", f"✗ {words}") + f"  ({version})"


def _show(surface: Surface, problem: Shown) -> None:
    since = f", {both(problem['since'], surface.zone, surface.now())}" if problem["since"] else ""
    name = problem["job"] or problem.get("about") or problem["kind"]
    # Of a job there is more to say than of the daemon itself.
    what = problem["what"].removeprefix(f"{name} ").removeprefix(f"{name}: ")
    first, *more = what.split("\n")  # A refused file may have many errors.
    surface.out(f"\n{surface.style('missed', '✗ ' + name)}  {surface.pasted(plain(first))}{since}")
    for one in more:
        surface.out(f"    {plain(one)}")
    if problem.get("error"):
        surface.out(f"    {plain(problem['error'])}")
    if problem.get("last_line") and problem["last_line"] != problem.get("error"):
        surface.out(f"    last line: {plain(problem['last_line'])}")
    if problem.get("command"):
        surface.out(f"    → {surface.pasted(problem['command'])}")


def _sums(surface: Surface, found: Shown) -> str:
    if found["jobs"] is None:
        return "\njobs, runs and nodes are unknown while the database cannot be read"
    parts = [counted(found["jobs"], "job"), f"{found['running']} running", f"{found['waiting']} waiting"]
    if found["paused"]:
        parts.append(f"{found['paused']} paused")
    if found["dead_letters"]:
        parts.append(counted(found["dead_letters"], "dead letter"))
    if found["next_run_at"]:
        parts.append(f"next run {both(found['next_run_at'], surface.zone, surface.now())}")
    text = "\n" + ", ".join(parts)
    for one in found["paused_sources"]:
        held = f": {counted(one['held'], 'event')} held" if one["held"] else ""
        text += f"\nsource {one['source']} is paused{held}"
    configuration = found["configuration"]
    if configuration:
        text += f"\nconfiguration {configuration['hash'][:8]} in force since "
        text += f"{both(configuration['created_at'], surface.zone, surface.now())}, by {configuration['author']}"
    return text
