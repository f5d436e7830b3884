"""`schedctl events`: what sources told, what became of it, and what was refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import click

from scheduler.cli.complete import complete_source
from scheduler.cli.daemon import part
from scheduler.cli.refused import show_refused, verify_again
from scheduler.cli.sheet import line
from scheduler.cli.surface import Surface
from scheduler.cli.table import Column
from scheduler.cli.text import command_line, plain
from scheduler.cli.times import column, typed_past
from scheduler.cli.verb import verb
from scheduler.core.errors import InvalidInput, NotFound
from scheduler.core.stamp import to_text

Shown = dict[str, Any]

MOST = 1_000


@verb(
    "schedctl events",
    "schedctl events stripe --type 'invoice.*' --since 24h",
    "schedctl events stripe evt_1NG8Du2eZvKYlo2C",
    "schedctl events --missed",
    "schedctl events payments --rejected",
    watched=True,
)
@click.argument("source", required=False, shell_complete=complete_source)
@click.argument("event", required=False)
@click.option("--type", "types", multiple=True, metavar="GLOB", help="Only of this type: 'payment.*'.")
@click.option("--subject", metavar="TEXT", help="Only about this.")
@click.option("--via", type=click.Choice(["webhook", "scan"]), help="Only those that came so.")
@click.option("--since", metavar="INSTANT", help="Not received before this: 24h, yesterday, 2026-11-01.")
@click.option("--until", metavar="INSTANT", help="Received before this.")
@click.option("--missed", is_flag=True, help="Only those that a scan found and whose webhook has not come.")
@click.option("--unhandled", is_flag=True, help="Only those that a job has not completed, or that are held.")
@click.option("--rejected", is_flag=True, help="The requests that were refused, and why.")
@click.option("--reverify", is_flag=True, help="Verify the refused requests of SOURCE again, and take what is right.")
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(1, MOST),
    help="How many, newest first (default: 20).",
)
def events(
    surface: Surface,
    source: str | None,
    event: str | None,
    types: tuple[str, ...],
    subject: str | None,
    via: str | None,
    since: str | None,
    until: str | None,
    missed: bool,
    unhandled: bool,
    rejected: bool,
    reverify: bool,
    limit: int | None,
) -> int:
    """Shows the events that came from SOURCE, or from all, each with the runs that it made. Given the id of an EVENT as
    well, everything about that one.

    After a secret was put right, --reverify takes the requests that were refused because of it, oldest first."""
    shown = {"EVENT": event, "--rejected": rejected, "--reverify": reverify}
    filters = {"--type": types, "--subject": subject, "--via": via, "--since": since, "--until": until}
    _refuse_pairs(shown, {**filters, "--missed": missed, "--unhandled": unhandled})
    if event is not None and source is not None:
        return _show(surface, surface.daemon.get(f"/v1/events/{part(source)}/{part(event)}"))
    if reverify:
        return verify_again(surface, source, limit)
    limit = limit or 20
    if rejected:
        return show_refused(surface, source, limit, MOST)
    query = {
        "source": source,
        "type": types,
        "subject": subject,
        "via": via,
        "since": _typed(surface, since),
        "until": _typed(surface, until),
        "missed": "true" if missed else None,
        "unhandled": "true" if unhandled else None,
        "limit": limit,
    }
    page = surface.daemon.get("/v1/events", query)
    found = page["events"]
    if surface.structured(found, [f"{one['source']}/{one['id']}" for one in found]):
        return 0
    if not found:
        surface.say("no event matches" if any(list(query.values())[:-1]) else "no event has come")
        if source is not None:
            surface.say("to see a single one: schedctl events SOURCE EVENT")
        surface.then(command_line("events", *filter(None, [source]), "--rejected"))
        return 0
    _table(surface, found, missed=missed)
    if page["cursor"] is not None:
        surface.say(f"there are more; -n {min(limit * 5, MOST)} shows them")
    surface.then(command_line("events", found[0]["source"], found[0]["id"]))
    return 0


def _refuse_pairs(shown: Mapping[str, object], filters: Mapping[str, object]) -> None:
    """UsageError for options of which one would be ignored."""
    asked = [name for name, value in shown.items() if value]
    if len(asked) > 1:
        raise click.UsageError(f"{asked[0]} and {asked[1]} do not go together: leave out one of them")
    ignored = [name for name, value in filters.items() if value]
    if asked and ignored:
        raise click.UsageError(f"{', '.join(ignored)} would not restrict {asked[0]}: leave out one of them")


def _table(surface: Surface, found: list[Shown], *, missed: bool) -> None:
    columns = [
        Column("SOURCE", 8),
        Column("EVENT", 12),
        Column("TYPE", 10, spare=1),
        Column("SUBJECT", 8, spare=4),
        Column(f"{'HAPPENED' if missed else 'RECEIVED'} ({surface.zone})"),
        Column("VIA", spare=3),
        Column("RUNS", 14),
    ]
    times = column([_instant(one, missed=missed) for one in found], surface.zone, surface.now())
    rows = [
        [one["source"], one["id"], one["event_type"] or "-", one["subject"] or "-", time, one["via"], _fate(one)]
        for one, time in zip(found, times, strict=True)
    ]
    surface.table(columns, rows)


def _instant(event: Shown, *, missed: bool) -> str:
    """Of a missed one its age is that of the fact, not that of its finding."""
    return str((event["occurred_at"] if missed else None) or event["received_at"])


def _fate(event: Shown) -> str:
    if event["held"]:
        return "held: its source is paused"
    if not event["runs"]:
        return "no job"
    counts: dict[str, int] = {}
    for run in event["runs"]:
        counts[run["status"]] = counts.get(run["status"], 0) + 1
    return ", ".join(f"{count} {status}" if count > 1 else status for status, count in counts.items())


def _show(surface: Surface, event: Shown) -> int:
    if surface.structured(event, [f"{event['source']}/{event['id']}"]):
        return 0
    surface.out(f"{event['source']} {plain(event['id'])}: {plain(event['event_type']) or 'of no type'}")
    facts = [
        ("Subject", plain(event["subject"])),
        ("Happened", surface.when(event["occurred_at"]) if event["occurred_at"] else ""),
        ("Received", f"{surface.when(event['received_at'])}, by {event['via']}"),
        ("Webhook", _webhook(surface, event)),
        ("Listed", surface.when(event["scan_at"]) if event["scan_at"] else ""),
        ("Vouched by", event["vouched_by"]),
        ("Duplicates", str(event["duplicates"] or "")),
        ("Held", "its source is paused; its runs are made when that ends" if event["held"] else ""),
    ]
    for label, text in facts:
        if text:
            line(surface, label, text)
    for problem in event["problems"]:
        line(surface, "Problem", problem)
    for run in event["runs"]:
        line(surface, "Run", f"{run['short_id']} {run['job']}: {run['status']}, {run['cause']}")
    if not event["runs"] and not event["held"]:
        line(surface, "Runs", "none: it concerned no job when it came")
    surface.out("\nBody")
    surface.out(_body(event))
    replay = command_line("replay", f"{event['source']}/{event['id']}")
    surface.then(command_line("runs", event["runs"][-1]["short_id"]) if event["runs"] else replay)
    return 0


def _webhook(surface: Surface, event: Shown) -> str:
    if event["missed"]:
        return "has not come"
    late = event["via"] == "scan" and event["webhook_at"]
    return f"came later, {surface.when(event['webhook_at'])}" if late else ""


def _body(event: Shown) -> str:
    if event["body"] is None:
        return f"{event['size']} bytes that are no text; -o json has them"
    try:
        return json.dumps(json.loads(event["body"]), ensure_ascii=False, indent=2)
    except ValueError:
        return plain(event["body"])


def _typed(surface: Surface, text: str | None) -> str | None:
    if text is None:
        return None
    try:
        return to_text(typed_past(text, surface.now(), surface.zone))
    except InvalidInput as error:
        raise click.UsageError(str(error)) from None


def split(text: str) -> tuple[str | None, str]:
    """SOURCE/EVENT, or the id of an event alone."""
    source, slash, event = text.partition("/")
    return (source, event) if slash and source and event else (None, text)


def address(surface: Surface, text: str) -> str:
    """The path of an event that somebody named: an id may have slashes of its own."""
    source, event = split(text)
    if source is not None:
        path = f"/v1/events/{part(source)}/{part(event)}"
        try:
            surface.daemon.get(path)
        except NotFound:
            return f"/v1/events/{part(text)}"
        return path
    return f"/v1/events/{part(text)}"
