"""`schedctl send-test`: an event made up, and taken as if its provider had sent it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from scheduler.cli.complete import complete_source
from scheduler.cli.daemon import part
from scheduler.cli.surface import Surface
from scheduler.cli.text import command_line, plain
from scheduler.cli.verb import verb

HELD = "it is held: {source} is `paused`; the runs of its events are made when that ends"


@verb(
    "schedctl send-test payments",
    "schedctl send-test payments --type payment.failed --subject order-7",
    "schedctl send-test payments --body @event.json",
)
@click.argument("source", shell_complete=complete_source)
@click.option("--type", "kind", default="", metavar="TYPE", help="The event's type (default: that of an example).")
@click.option("--subject", default="", metavar="TEXT", help="What it is about.")
@click.option("--body", default="", metavar="@FILE", help="This body: @FILE, @- for stdin, or a text.")
def send_test(surface: Surface, source: str, kind: str, subject: str, body: str) -> int:
    """Makes up an event of SOURCE, signs it with the first of its secrets as the provider would, and takes it as if it
    had come: it is verified and stored, and its jobs run.

    The daemon signs, so no secret is needed here. Whether requests from outside get through a proxy it does not show:
    for that use the provider's own test button."""
    given = {"type": kind, "subject": subject, "body": _text(body)}
    wanted = {name: value for name, value in given.items() if value}
    done = surface.daemon.post(f"/v1/sources/{part(source)}/test", wanted)
    if surface.structured(done, [f"{source}/{done['event']}"]):
        return 0
    known = " (it was there already: nothing was made again)" if done["duplicate"] else ""
    surface.out(f"{plain(done['event'])}: taken{known}")
    for one in done["runs"]:
        surface.out(f"{one['run_id']}  {one['job']}")
    if not done["runs"] and not done["duplicate"]:
        surface.say(HELD.format(source=source) if done["held"] else "it concerns no job")
    surface.then(command_line("events", source, done["event"]))
    return 0


def _text(body: str) -> str:
    if not body.startswith("@"):
        return body
    try:
        raw = sys.stdin.buffer.read() if body == "@-" else Path(body[1:]).read_bytes()
        return raw.decode("utf-8")
    except OSError as error:
        raise click.UsageError(f"--body: {body[1:]} cannot be read: {os.strerror(error.errno or 0)}") from None
    except UnicodeDecodeError:
        raise click.UsageError(f"--body: {body[1:]} is no UTF-8 text") from None
