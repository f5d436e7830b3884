"""`schedctl notify`: who was told what, and whether a channel works."""

from __future__ import annotations

from typing import Any

import click

from scheduler.cli.complete import complete_job
from scheduler.cli.daemon import part
from scheduler.cli.surface import Surface
from scheduler.cli.table import Column
from scheduler.cli.text import command_line, counted
from scheduler.cli.times import ago, column
from scheduler.cli.verb import SETTINGS, Listing, verb

Shown = dict[str, Any]

STATUSES = ("waiting", "sent", "failed")
PATIENCE = 60.0
"""Seconds for which a test may last: a channel that does not answer is given up before."""


@click.group("notify", cls=Listing, context_settings=SETTINGS)
def notify() -> None:
    """Who is told what: channels, and what was sent by them.

    Without a command: list."""


@verb("schedctl notify", "schedctl notify list --status failed", "schedctl notify list --channel ops --limit 100")
@click.option("--channel", metavar="CHANNEL", help="Only by this channel.")
@click.option("--job", metavar="JOB", shell_complete=complete_job, help="Only of this job.")
@click.option("--status", type=click.Choice(STATUSES), help="Only those that are so.")
@click.option("-n", "--limit", type=click.IntRange(1, 1000), default=20, help="How many, newest first (default: 20).")
def list_sent(surface: Surface, channel: str | None, job: str | None, status: str | None, limit: int) -> int:
    """Lists the channels and how they stand, and what people were last told."""
    query = {"channel": channel, "job": job, "status": status, "limit": limit}
    found = surface.daemon.get("/v1/notifications", query)
    if surface.structured(found, [one["name"] for one in found["channels"]]):
        return 0
    channels = [one for one in found["channels"] if channel in (None, one["name"])]
    if not channels and not found["notifications"]:
        surface.say("there is no channel" if channel is None else f"there is no channel {channel}")
        surface.then("schedctl check")
        return 0
    _channels(surface, channels)
    if found["notifications"]:
        surface.out("")
        _notifications(surface, found["notifications"])
    bad = next((one["name"] for one in channels if one["error"]), None)
    name = bad or next((one["name"] for one in channels), None)
    surface.then(command_line("notify", "test", name) if name else command_line("status"))
    return 0


def _channels(surface: Surface, channels: list[Shown]) -> None:
    now = surface.now()
    columns = [Column("CHANNEL", 8), Column("BY"), Column("WAITING"), Column("LAST SENT", spare=1), Column("STATE", 20)]
    rows = [
        [
            one["name"],
            one["kind"],
            str(one["waiting"]),
            ago(one["last_sent_at"], now) if one["last_sent_at"] else "never",
            _state(one, surface),
        ]
        for one in channels
    ]
    surface.table(columns, rows)


def _state(channel: Shown, surface: Surface) -> str:
    if channel["error"]:
        since = channel["failing_since"]
        return f"✗ {channel['error']}" + (f" (since {ago(since, surface.now())})" if since else "")
    return "✓ ok" if channel["last_sent_at"] else "not used yet"


def _notifications(surface: Surface, found: list[Shown]) -> None:
    columns = [
        Column(f"ANNOUNCED ({surface.zone})", spare=1),
        Column("CHANNEL", 8),
        Column("JOB", 10),
        Column("WHAT"),
        Column("STATUS", 16, spare=2),
    ]
    times = column([one["created_at"] for one in found], surface.zone, surface.now())
    rows = [
        [time, one["channel"], one["job"], one["kind"].replace("_", " "), _status(one, surface)]
        for one, time in zip(found, times, strict=True)
    ]
    surface.table(columns, rows)


def _status(one: Shown, surface: Surface) -> str:
    if one["status"] == "sent":
        return "✓ sent" + (f" with {one['together'] - 1} others" if one["together"] > 1 else "")
    why = f": {one['error']}" if one["error"] else ""
    if one["status"] == "failed":
        return f"✗ given up after {counted(one['attempts'], 'attempt')}{why}"
    again = f", again {ago(one['next_attempt_at'], surface.now())}" if one["attempts"] else ""
    return f"waiting{again}{why}"


@verb("schedctl notify test ops")
@click.argument("channel")
def test(surface: Surface, channel: str) -> int:
    """Sends a message by CHANNEL and tells what it said to it: exit 0 if it took it, 1 if not."""
    answer = surface.daemon.post(f"/v1/channels/{part(channel)}/test", timeout=PATIENCE)
    if surface.structured(answer, [channel]):
        return 0 if answer["ok"] else 1
    surface.out(f"{'✓' if answer['ok'] else '✗'} {channel}: {answer['said']}")
    if answer["ok"]:
        surface.say("it took the message; look whether it has arrived")
        surface.then("schedctl notify")
        return 0
    surface.say("nobody is told by this channel until that is corrected")
    surface.then(command_line("show", f"channel {channel}"))
    return 1


notify.add_command(list_sent, "list")
notify.add_command(test)
