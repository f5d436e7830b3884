"""`schedctl nodes`: the daemons that share this database."""

from __future__ import annotations

import click

from scheduler.cli.node_words import Shown, clock, hears, polling, remarks, worth_showing
from scheduler.cli.surface import Surface
from scheduler.cli.table import Column
from scheduler.cli.times import ago, clock_note, read, took
from scheduler.cli.verb import verb

_COLUMNS = [
    Column("NODE"),
    Column("HOST", 8),
    Column("PID", spare=5),
    Column("STATE"),
    Column("BEAT"),
    Column("RUNS"),
    Column("GEN"),
    Column("CLOCK"),
    Column("HEARS", spare=3),
    Column("STARTED", spare=1),
    Column("VERSION", spare=2),
    Column("LEASE", spare=4),
    Column("QUEUES", 6, spare=6),
]
_WORDS = {"live": "ok", "stopping": "paused", "dead": "missed", "stopped": "ok"}


@verb("schedctl nodes", "schedctl nodes --all", watched=True)
@click.option("--all", "everything", is_flag=True, help="Also stopped and dead ones.")
def nodes(surface: Surface, everything: bool) -> int:
    """Lists the running daemons: where, since when, how busy, with which configuration, and what is wrong with one."""
    answer = surface.daemon.get("/v1/nodes")
    found, now = answer["nodes"], surface.now()
    theirs = read(answer["now"]) or now
    shown = found if everything else worth_showing(found, theirs)
    if surface.structured(shown, [node["id"] for node in shown]):
        return 0
    rows = [
        [
            node["short_id"],
            node["host"],
            str(node["pid"]),
            node["state"],
            ago(node["beat_at"], now),
            f"{node['running']}/{node['slots']}",
            str(node["generation"]),
            clock(node),
            hears(node),
            ago(node["started_at"], now),
            node["version"],
            "-" if node["lease_s"] is None else took(node["lease_s"]),
            "all" if node["queues"] is None else ",".join(node["queues"]),
        ]
        for node in shown
    ]
    said = {node["id"]: remarks(node, found, theirs) for node in shown}
    words = [_WORDS[node["state"]] if node["state"] != "live" or not said[node["id"]] else "late" for node in shown]
    surface.table(_COLUMNS, rows, words)
    for node in shown:
        for text, remedy in said[node["id"]]:
            surface.out(f"\n{surface.style('late', '! ' + _name(node))}  {text}")
            if remedy is not None:
                surface.out(f"    → {surface.pasted(remedy)}")
    _say_who_polls(surface, shown)
    note = clock_note(answer["now"], now)
    if note is not None:
        surface.say(note)
    surface.then("schedctl status")
    return 0


def _say_who_polls(surface: Surface, shown: list[Shown]) -> None:
    for why, those in polling(shown):
        who = "every node" if len(those) == len(shown) > 1 else ", ".join(node["short_id"] for node in those)
        verb = "looks" if len(those) == 1 or who == "every node" else "look"
        reason = f": {why}" if why else ""
        surface.say(f"{who} {verb} once a second for what {_others(shown)} did{reason}")


def _others(shown: list[Shown]) -> str:
    return "others" if len(shown) != 2 else "the other"


def _name(node: Shown) -> str:
    return f"{node['short_id']} on {node['host']}"
