"""`schedctl replay`: an event handed out once more."""

from __future__ import annotations

import click

from scheduler.cli.complete import complete_event, complete_job
from scheduler.cli.surface import Surface
from scheduler.cli.text import command_line, counted
from scheduler.cli.verb import verb
from scheduler.cli.verbs.events import address


@verb(
    "schedctl replay evt_1NG8Du2eZvKYlo2C",
    'schedctl replay payments/evt_7 --job ticket --reason "the handler was wrong"',
)
@click.argument("event", shell_complete=complete_event)
@click.option("--job", "jobs", multiple=True, shell_complete=complete_job, help="Only this job; may be repeated.")
@click.option("--reason", default="", metavar="TEXT", help="Kept with the runs.")
def replay(surface: Surface, event: str, jobs: tuple[str, ...], reason: str) -> int:
    """Hands an event out once more: a new run for every job that it concerns today. EVENT is its id, or SOURCE/ID
    where several sources have it. The runs carry the same id, by which a handler knows what it has done already."""
    body = {"reason": reason, **({"jobs": list(jobs)} if jobs else {})}
    done = surface.daemon.post(f"{address(surface, event)}/replay", body)
    if surface.structured(done, [one["run_id"] for one in done["runs"]]):
        return 0
    for one in done["runs"]:
        surface.out(f"{one['run_id']}  {one['job']}")
    surface.say(f"{done['source']} {done['event']}: {counted(len(done['runs']), 'run')}")
    if done["passed"]:
        surface.say(f"it does not concern {', '.join(done['passed'])}")
    surface.then(command_line("logs", "-f", done["runs"][0]["run_id"][-8:]))
    return 0
