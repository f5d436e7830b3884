"""Requests that were refused: shown, and verified again."""

from __future__ import annotations

from typing import Any

import click

from scheduler.cli.daemon import part
from scheduler.cli.surface import Surface
from scheduler.cli.table import Column
from scheduler.cli.text import command_line, counted, plain
from scheduler.cli.times import column

Shown = dict[str, Any]

AGAIN = 100
"""Refused requests that are verified in one step."""


def show_refused(surface: Surface, source: str | None, limit: int, most: int) -> int:
    """The newest `limit`; more than `most` cannot be asked for."""
    answer = surface.daemon.get("/v1/rejects", {"source": source, "limit": limit})
    found = answer["rejects"]
    if surface.structured(found, [str(one["number"]) for one in found]):
        return 0
    if not found:
        surface.say("no refused request is kept" + (f" of {source}" if source else ""))
        _dropped(surface, answer)
        surface.then(command_line("events", *filter(None, [source])))
        return 0
    columns = [
        Column("SOURCE", 8),
        Column(f"AT ({surface.zone})"),
        Column("REASON", 12),
        Column("BYTES", spare=2),
        Column("WHY", 30, spare=1),
    ]
    times = column([one["at"] for one in found], surface.zone, surface.now())
    rows = [
        [one["source"], time, one["reason"], str(one["size"]), one["why"]]
        for one, time in zip(found, times, strict=True)
    ]
    surface.table(columns, rows)
    if answer["kept"] > len(found):
        more = f"; -n {min(limit * 5, most)} shows more" if limit < most else ""
        surface.say(f"these are the newest of {answer['kept']} that are kept{more}")
    _dropped(surface, answer)
    surface.say("when what was wrong is put right, they can be verified again, and taken")
    surface.then(command_line("events", found[0]["source"], "--reverify"))
    return 0


def _dropped(surface: Surface, answer: Shown) -> None:
    if answer["dropped"]:
        count, before = counted(answer["dropped"], "request"), surface.when(answer["dropped_before"])
        verb = "is" if answer["dropped"] == 1 else "are"
        surface.say(f"too many came: {count} from before {before} {verb} kept no longer")


def verify_again(surface: Surface, source: str | None, limit: int | None) -> int:
    """All that are kept, or the oldest `limit`, in steps, and how far it is; 1 if some are still refused."""
    if source is None:
        raise click.UsageError("--reverify needs a SOURCE: schedctl events SOURCE --reverify")
    waiting: int = surface.daemon.get("/v1/rejects", {"source": source, "limit": 1})["kept"]
    waiting = min(waiting, limit or waiting)
    done: Shown = {"source": source, "stored": [], "refused": []}
    after: int | None = 0
    judged = 0
    # Not for as long as strangers send more: what was kept when this began.
    while after is not None and judged < waiting:
        step = {"limit": min(AGAIN, waiting - judged), "after": after}
        some = surface.daemon.post(f"/v1/sources/{part(source)}/reverify", step)
        done["stored"] += some["stored"]
        done["refused"] += some["refused"]
        judged, after = len(done["stored"]) + len(done["refused"]), some["after"]
        if surface.format == "table":
            _step(surface, some["stored"])
            if after is not None:
                surface.say(f"{judged} of {waiting} looked at")
    code = 1 if done["refused"] else 0
    if surface.structured(done, [f"{source}/{one['event']}" for one in done["stored"]]):
        return code
    reasons: dict[str, int] = {}
    for one in done["refused"]:
        reasons[one["why"]] = reasons.get(one["why"], 0) + 1
    for why, count in reasons.items():
        surface.say(f"{counted(count, 'request')} still refused: {plain(why)}")
    surface.say(f"{counted(len(done['stored']), 'request')} taken")
    surface.then(command_line("events", source, *(["--rejected"] if done["refused"] else [])))
    return code


def _step(surface: Surface, stored: list[Shown]) -> None:
    for one in stored:
        made = "held: its source is paused" if one["held"] else counted(len(one["runs"]), "run")
        surface.out(f"{plain(one['event'])}: {'it was there already' if one['duplicate'] else f'taken, {made}'}")
