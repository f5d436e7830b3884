"""`schedctl explain`: a cron expression in words, with what surprises about it; offline."""

from __future__ import annotations

from itertools import islice

import click

from scheduler.cli.surface import Surface
from scheduler.cli.times import absolute
from scheduler.cli.verb import verb
from scheduler.cli.verbs.next_times import occurrences
from scheduler.core.errors import InvalidInput
from scheduler.core.instants import relative
from scheduler.core.stamp import to_text
from scheduler.core.zone import zone_of


@verb('schedctl explain "0 8 * * 1" --timezone Asia/Shanghai', 'schedctl explain "0 0 13 * 5"')
@click.argument("expression", nargs=-1, required=True)
@click.option("--timezone", "--tz", "zone", metavar="ZONE", help="The zone (default: yours).")
@click.option("--day-match", type=click.Choice(["cron", "or", "and"]), default="cron", help="Default: cron.")
@click.option("--name", "hash_name", default="", metavar="NAME", help="The name that H hashes.")
def explain(surface: Surface, expression: tuple[str, ...], zone: str | None, day_match: str, hash_name: str) -> int:
    """Says in words when EXPRESSION runs, what may surprise, and the next three times. Give it in quotes.

    Several expressions are one schedule: the union of their times."""
    from scheduler.core.explain import explain as in_words
    from scheduler.core.explain import note, warnings
    from scheduler.core.schedule import Schedule

    now = surface.now()
    zone = zone or surface.zone
    try:
        zone_of(zone)
    except InvalidInput as error:
        raise click.UsageError(f"{error.reason}; {error.hint}") from None
    if len(expression) in (5, 6) and not any(" " in one for one in expression):
        expression = (" ".join(expression),)
    schedule = Schedule(expression, zone, day_match, hash_name)  # type: ignore[arg-type]
    text, surprises = in_words(schedule), warnings(schedule, now)
    following = list(islice(occurrences(schedule, now), 3))
    data = {
        "expressions": list(expression),
        "timezone": zone,
        "words": text,
        "warnings": surprises,
        "next": [
            {
                "utc": to_text(one),
                "local": one.astimezone(schedule.tzinfo).isoformat(),
                "note": note(schedule, one),
            }
            for one in following
        ],
    }
    if surface.structured(data, [one["utc"] for one in data["next"]]):  # type: ignore[index]
        return 0
    surface.out(text)
    for surprise in surprises:
        surface.out(f"warning: {surprise}")
    for one in following:
        said = note(schedule, one)
        line = f"  {absolute(one, zone, now)} = {to_text(one)} ({relative(one, now=now)})"
        surface.out(line + (f"  {said}" if said else ""))
    surface.then(f'schedctl next --cron "{expression[0]}" --timezone {zone} -n 20')
    return 0
