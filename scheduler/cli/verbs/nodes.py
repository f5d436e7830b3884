"""`schedctl nodes`: the daemons that share this database."""

from __future__ import annotations

import click

from scheduler.cli.surface import Surface
from scheduler.cli.table import Column
from scheduler.cli.times import ago
from scheduler.cli.verb import verb


@verb("schedctl nodes", "schedctl nodes --all")
@click.option("--all", "everything", is_flag=True, help="Also stopped and dead ones.")
def nodes(surface: Surface, everything: bool) -> int:
    """Lists the running daemons: where, since when, how busy, with which configuration."""
    found = surface.daemon.get("/v1/nodes")["nodes"]
    shown = [node for node in found if everything or node["state"] in ("live", "stopping")]
    if surface.structured(shown, [node["id"] for node in shown]):
        return 0
    columns = [
        Column("NODE"),
        Column("HOST", 8),
        Column("PID", spare=3),
        Column("STATE"),
        Column("BEAT"),
        Column("RUNNING"),
        Column("GENERATION"),
        Column("STARTED", spare=1),
        Column("VERSION", spare=2),
        Column("QUEUES", 6, spare=4),
    ]
    now = surface.now()
    rows = [
        [
            node["short_id"],
            node["host"],
            str(node["pid"]),
            node["state"],
            ago(node["beat_at"], now),
            f"{node['running']}/{node['slots']}",
            str(node["generation"]),
            ago(node["started_at"], now),
            node["version"],
            "all" if node["queues"] is None else ",".join(node["queues"]),
        ]
        for node in shown
    ]
    surface.table(columns, rows)
    surface.then("schedctl status")
    return 0
