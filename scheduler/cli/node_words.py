"""What is worth a word about a node, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from scheduler.cli.text import counted, plain
from scheduler.cli.times import ago, read, took

Shown = dict[str, Any]

LATE = 2.5
"""Beats that are missing before it is said. A node beats every ten seconds, or six times in its lease if oftener."""
OFF = 1.0
"""Seconds by which a clock may differ from the database's."""
RECENT = timedelta(days=1)
"""For so long a node that died is shown among those that run, unless its host has another daemon since."""

_LIVING = ("live", "stopping")


def worth_showing(nodes: Sequence[Shown], now: datetime) -> list[Shown]:
    """Those that run, and those that died and may be missed."""
    living = [node for node in nodes if node["state"] in _LIVING]
    return [node for node in nodes if node in living or _missed(node, living, now)]


def _missed(node: Shown, living: Sequence[Shown], now: datetime) -> bool:
    beat = read(node["beat_at"])
    if node["running"] or node["state"] != "dead" or beat is None:
        return bool(node["running"])
    started = [read(one["started_at"]) for one in living if one["host"] == node["host"]]
    return now - beat < RECENT and not any(one is not None and one > beat for one in started)


def hears(node: Shown) -> str:
    """`listens`, `polls`, or `-` where there are no others or it does not say."""
    return {"listening": "listens", "polling": "polls"}.get((node["hints"] or "").partition(":")[0], "-")


def clock(node: Shown) -> str:
    """By how much the database's clock is ahead of its own."""
    seconds = node["clock_offset_s"]
    return "ok" if abs(seconds) < 0.05 else f"{-seconds:+.1f}s"


def remarks(node: Shown, nodes: Sequence[Shown], now: datetime) -> list[tuple[str, str | None]]:
    """What is not as it should be with this node, most urgent first, each with a command or what else to do."""
    if node["state"] not in _LIVING:
        return [_dead(node, now)] if node["state"] == "dead" else []
    live = [one for one in nodes if one["state"] in _LIVING]
    found = [_silent(node, now), _leaving(node, now), _behind(node, live), _off(node), _older(node, live)]
    return [one for one in found if one is not None]


def _dead(node: Shown, now: datetime) -> tuple[str, str | None]:
    text = f"died: its last beat was {ago(node['beat_at'], now)}"
    if node["running"]:
        return f"{text}; {counted(node['running'], 'run')} of it will be taken over in a moment", "schedctl status"
    return f"{text}; others took over what it ran", f"look at its log on {plain(node['host'])}, and start it again"


def _silent(node: Shown, now: datetime) -> tuple[str, str | None] | None:
    beat, lease = read(node["beat_at"]), node["lease_s"]
    if beat is None or lease is None:
        return None
    age = (now - beat).total_seconds()
    if age < LATE * min(10.0, lease / 6):
        return None
    text = f"has not beaten for {took(age)}"
    if age < lease:
        runs = f" its {counted(node['running'], 'run')}" if node["running"] else " what it ran"
        text += f"; in {took(lease - age)} its lease of {took(lease)} ends, and others take over{runs}"
    else:
        text += f", longer than its lease of {took(lease)}; nobody has declared it dead yet"
    return text, f"on {plain(node['host'])}: is pid {node['pid']} stopped, or cut off from the database?"


def _leaving(node: Shown, now: datetime) -> tuple[str, str | None] | None:
    if node["state"] != "stopping":
        return None
    since = f" since {ago(node['leaving_at'], now)}" if node["leaving_at"] else ""
    runs = counted(node["running"], "run") if node["running"] else "nothing more"
    return f"is leaving{since.replace(' ago', '')} and waits for {runs}", "schedctl runs --status RUNNING"


def _behind(node: Shown, live: Sequence[Shown]) -> tuple[str, str | None] | None:
    newest = max(one["generation"] for one in live)
    if node["aside"]:
        text = f"stands aside, it plans and starts nothing: {plain(node['aside'])}"
        return text, "upgrade it, or put a file in force that it can load"
    if node["generation"] < newest:
        return f"works with generation {node['generation']}, others with {newest}", "schedctl status"
    return None


def _off(node: Shown) -> tuple[str, str | None] | None:
    seconds = node["clock_offset_s"]
    if abs(seconds) <= OFF:
        return None
    word = "behind" if seconds > 0 else "ahead of"
    return f"its clock is {took(abs(seconds))} {word} the database's", f"on {plain(node['host'])}: timedatectl"


def _older(node: Shown, live: Sequence[Shown]) -> tuple[str, str | None] | None:
    others = {one["version"] for one in live} - {node["version"]}
    newer = sorted(other for other in others if _number(other) > _number(node["version"]))
    return (f"runs {node['version']}, others {newer[-1]}", "upgrade it next") if newer else None


def _number(version: str) -> tuple[tuple[int, str], ...]:
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in version.split("."))


def polling(nodes: Sequence[Shown]) -> list[tuple[str, list[Shown]]]:
    """Why nodes poll, each with those for which it is so."""
    found: dict[str, list[Shown]] = {}
    for node in nodes:
        state, _, why = (node["hints"] or "").partition(": ")
        if state == "polling" and node["state"] in _LIVING:
            found.setdefault(why, []).append(node)
    return list(found.items())
