"""`schedctl token`: who may come in over TCP."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from scheduler.cli.daemon import part
from scheduler.cli.surface import Surface
from scheduler.cli.table import Column
from scheduler.cli.times import ago, both
from scheduler.cli.verb import SETTINGS, verb

ROLES = ("read", "operate", "ping")


@click.group(context_settings=SETTINGS)
def token() -> None:
    """Who may come in over TCP. Tokens are made on the daemon's own machine only."""


@verb(
    "schedctl token create grafana --role read",
    "schedctl token create deploy --role operate --lifetime 90d",
    "schedctl token create nas --role ping -o name > /etc/nas.token",
)
@click.argument("name")
@click.option(
    "--role", type=click.Choice(ROLES), required=True, help="read: see everything; operate: act, too; ping: only ping."
)
@click.option("--lifetime", metavar="DURATION", help="How long it is good: 90d (default: until it is revoked).")
def create(surface: Surface, name: str, role: str, lifetime: str | None) -> int:
    """Makes a token for NAME (a person or a program) and prints it. It is shown this once: nobody keeps it."""
    made = surface.daemon.post("/v1/tokens", {"name": name, "role": role, "lifetime": lifetime})
    if surface.structured(made, [made["secret"]]):
        return 0
    surface.out(made["secret"])
    surface.say(
        f"{name}: role {role}, {_until(made['token'], surface.zone, surface.now())}; keep it now, it is not shown again"
    )
    surface.say("used as:  curl -H 'Authorization: Bearer …' http://127.0.0.1:8780/v1/status")
    surface.then("schedctl token list")
    return 0


@verb("schedctl token list", "schedctl token list --all")
@click.option("--all", "everything", is_flag=True, help="Also revoked and expired ones.")
def list_tokens(surface: Surface, everything: bool) -> int:
    """Lists tokens: for whom, with which role, when they were used. Never the token itself."""
    found = [one for one in surface.daemon.get("/v1/tokens")["tokens"] if everything or one["live"]]
    if surface.structured(found, [one["name"] for one in found]):
        return 0
    now = surface.now()
    columns = [
        Column("NAME", 8),
        Column("ROLE"),
        Column("ID"),
        Column("MADE", spare=2),
        Column("BY", 6, spare=3),
        Column("USED", spare=1),
        Column("GOOD", 8),
    ]
    rows = [
        [
            one["name"],
            one["role"],
            one["id"][-8:],
            ago(one["created_at"], now),
            one["author"],
            ago(one["used_at"], now) if one["used_at"] else "never",
            _until(one, surface.zone, now),
        ]
        for one in found
    ]
    if rows:
        surface.table(columns, rows)
    else:
        surface.say("nobody holds a token: over TCP only facts are told")
    surface.then("schedctl token revoke NAME" if rows else "schedctl token create NAME --role read")
    return 0


@verb("schedctl token revoke grafana")
@click.argument("name")
def revoke(surface: Surface, name: str) -> int:
    """Takes a token back, by its NAME or id; browsers that signed in with it are signed out."""
    gone = surface.daemon.post(f"/v1/tokens/{part(name)}/revoke")["token"]
    if surface.structured(gone, [gone["name"]]):
        return 0
    surface.out(f"{gone['name']}: revoked; other nodes hear of it within seconds")
    surface.then("schedctl token list")
    return 0


@verb("schedctl token link")
def link(surface: Surface) -> int:
    """Prints a link that signs a browser in, once, within ten minutes, with role operate, for twelve hours."""
    made = surface.daemon.post("/v1/sign-in-links")
    url = (made["address"] or "") + made["path"]
    if surface.structured({**made, "url": url}, [url]):
        return 0
    surface.out(url)
    if made["address"] is None:
        surface.say("this daemon serves no TCP address; put its own before it (SCHEDULER_LISTEN)")
    return 0


def _until(one: dict[str, Any], zone: str, now: datetime) -> str:
    if one["revoked_at"]:
        return f"revoked {ago(one['revoked_at'], now)}"
    if not one["expires_at"]:
        return "until it is revoked"
    return f"until {both(one['expires_at'], zone, now)}" if one["live"] else f"expired {ago(one['expires_at'], now)}"


token.add_command(create)
token.add_command(list_tokens, "list")
token.add_command(revoke)
token.add_command(link)
