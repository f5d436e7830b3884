"""`schedctl explain`: a cron expression in words, with what surprises about it; offline."""

from __future__ import annotations

import re
from itertools import islice

import click

from scheduler.cli.surface import Surface
from scheduler.cli.text import command_line
from scheduler.cli.verb import verb
from scheduler.cli.verbs.next_times import DAY_MATCHES, Expressions, occurrences
from scheduler.core.errors import InvalidInput
from scheduler.core.stamp import to_text
from scheduler.core.zone import zone_of

_WORD = re.compile(r"[\w.-]+")
"""What may be the name of a job, and no expression."""


@verb('schedctl explain "0 8 * * 1" --timezone Asia/Shanghai', 'schedctl explain "0 0 13 * 5"')
@click.argument("expression", nargs=-1, required=True)
@click.option("--timezone", "--tz", "zone", metavar="ZONE", help="The zone (default: yours).")
@click.option("--day-match", type=click.Choice(DAY_MATCHES), help="How both day fields combine (default: cron).")
@click.option("--name", "hash_name", metavar="NAME", help="The name of the job, which H hashes.")
def explain(
    surface: Surface, expression: tuple[str, ...], zone: str | None, day_match: str | None, hash_name: str | None
) -> int:
    """Says in words when EXPRESSION runs, what may surprise, and the next three times. Give it in quotes.

    Several expressions are one schedule: the union of their times."""
    from scheduler.core.explain import explain as in_words
    from scheduler.core.explain import note, warnings

    now = surface.now()
    zone = zone or surface.zone
    try:
        zone_of(zone)
    except InvalidInput as error:
        raise click.UsageError(f"{error.reason}; {error.hint}") from None
    if len(expression) in (5, 6) and not any(" " in one for one in expression):
        expression = (" ".join(expression),)
    if len(expression) == 1 and _WORD.fullmatch(expression[0]):
        raise InvalidInput(
            f"{expression[0]} is not a cron expression",
            hint=f'write five fields in quotes, as "0 8 * * 1"; for a job: {command_line("describe", expression[0])}',
        )
    typed_in = Expressions(expression, zone, day_match, hash_name)
    schedule = typed_in.schedule()
    text, surprises = in_words(schedule), warnings(schedule, now)
    following = list(islice(occurrences(schedule, now), 3))
    found = [
        {
            "utc": to_text(one),
            "local": one.astimezone(schedule.tzinfo).isoformat(),
            "note": note(schedule, one),
        }
        for one in following
    ]
    data = {"expressions": list(expression), "timezone": zone, "words": text, "warnings": surprises, "next": found}
    if surface.structured(data, [str(one["utc"]) for one in found]):
        return 0
    surface.out(text)
    for surprise in surprises:
        surface.out(f"warning: {surprise}")
    for time in found:
        surface.out(f"  {surface.when(time['utc'], zone)}" + (f"  {time['note']}" if time["note"] else ""))
    crons = [word for one in expression for word in ("--cron", one)]
    surface.then(command_line("next", *crons, *typed_in.options, "-n", "20"))
    return 0
