"""Crontab entries → jobs.yaml."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from scheduler.config.crontab import Entry, Given, LeftOut, read_crontabs, with_zone
from scheduler.config.crontab_columns import Known
from scheduler.config.crontab_external import steps as expected_steps
from scheduler.config.crontab_external import wrapped_lines
from scheduler.config.crontab_homes import Homes
from scheduler.config.crontab_names import name_of
from scheduler.config.crontab_notes import (
    FAITHFUL,
    about_lines,
    boot_unit,
    both_days,
    grouped,
    next_times,
    notes_of,
    steps_of,
)
from scheduler.core.value_object import value_object

_PLAIN = re.compile(r"[A-Za-z0-9/._-]*[A-Za-z/._-][A-Za-z0-9/._-]*")
_NOT_PLAIN = frozenset({"true", "false", "null", "~", "yes", "no", "on", "off", "-", ".", "---", "..."})
_SHELL = "/bin/sh"
_CRON_PATH = "/usr/bin:/bin"
"""Cron's, for jobs whose crontab sets none."""


@value_object
class Imported:
    """`yaml` is a complete jobs.yaml. `notes` say per job what is different from cron, `left_out` what is not in it,
    `steps` how to switch over."""

    yaml: str
    jobs: Mapping[str, Entry]
    notes: Mapping[str, Sequence[str]]
    left_out: Sequence[LeftOut]
    times: Sequence[str]
    boot: Sequence[str]
    steps: Sequence[str]

    @property
    def lost(self) -> Sequence[LeftOut]:
        """What cron did and these jobs do not."""
        return [one for one in self.left_out if one.lost]

    def messages(self) -> list[str]:
        """All that a person should read, in order: what was left out, the notes, the times, the steps."""
        lines = about_lines(self.left_out) + grouped(self.notes)
        if self.lost:
            where = ", ".join(one.place for one in self.lost)
            count = f"{len(self.lost)} lines were" if len(self.lost) > 1 else "1 line was"
            lines.append(f"✗ {count} lost; what they did is yours to write: {where}")
        return [*lines, *self.times, *self.boot, *self.steps]


def import_crontab(
    texts: Sequence[Given],
    *,
    zone: str,
    now: datetime,
    faithful: bool = False,
    shadow: bool = False,
    external: bool = False,
    homes: Homes | None = None,
    known: Known | None = None,
    schedctl: str = "/usr/local/bin/schedctl",
) -> Imported:
    """Converts crontabs. InvalidInput if one was taken for the wrong kind (with or without a column for the user).

    `zone` is the one of the machine, in which cron read them (entries below a CRON_TZ keep theirs). `faithful`
    writes cron's policies and environment instead of ours; `shadow` writes every job disabled. `homes` are those of
    this machine, in which cron starts commands; `schedctl` is the program's path for a unit. `external`: the lines stay
    where they are, only what they tell is expected."""
    homes = homes or Homes()
    crontab = read_crontabs(texts, known or Known())
    jobs: dict[str, Entry] = {}
    for entry in with_zone(crontab.entries, zone):
        jobs[name_of(entry.command, jobs)] = _as_cron(entry, homes) if faithful else entry
    common = {} if external else _common(jobs.values())
    lines = _head(texts, zone, faithful, common)
    for name, entry in jobs.items():
        when = _when(name, entry, zone, shadow, "" if external else f"; it is started with: schedctl run-now {name}")
        lines += ["", *when, *(["    external: true"] if external else _what(entry, common, homes))]
    if not jobs:
        lines[-1] = "jobs: {}"
    system = {one.name for one in texts if one.system}
    if external:
        told = expected_steps(wrapped_lines(jobs, system)) if jobs else []
        lost = [one for one in crontab.left_out if one.lost]  # All else stays in the crontab.
        return Imported("\n".join(lines) + "\n", jobs, {}, lost, next_times(jobs, now), [], told)
    return Imported(
        yaml="\n".join(lines) + "\n",
        jobs=jobs,
        notes={name: notes_of(entry, zone, faithful, homes) for name, entry in jobs.items()},
        left_out=crontab.left_out,
        times=next_times(jobs, now),
        boot=boot_unit([name for name, entry in jobs.items() if entry.schedule is None], schedctl),
        steps=steps_of(jobs, shadow, system) if jobs else [],
    )


def _as_cron(entry: Entry, homes: Homes) -> Entry:
    """With the variables that cron sets itself. HOME is that of the user here as well."""
    user = entry.user or homes.owner
    cron = {"PATH": _CRON_PATH, "SHELL": _SHELL} | ({"LOGNAME": user} if user else {})
    return replace(entry, env=cron | entry.env)


def _head(texts: Sequence[Given], zone: str, faithful: bool, common: Mapping[str, str]) -> list[str]:
    names = ", ".join(_comment(one.name) for one in texts)
    lines = [f"# imported from {names}", "version: 1", "", "defaults:", f"  timezone: {_scalar(zone)}"]
    if faithful:
        lines.append("  # as cron does it:")
        lines += [f"  {key}: {word} # {meaning}" for key, word, meaning in FAITHFUL]
    if common:
        lines.append("  env:")
        lines += [f"    {name}: {_scalar(value, text=True)}" for name, value in common.items()]
    return [*lines, "", "jobs:"]


def _when(name: str, entry: Entry, zone: str, shadow: bool, how: str) -> list[str]:
    lines = [f"  # {_comment(entry.file)}:{entry.line}", f"  {_scalar(name)}:"]
    if entry.description:
        lines.append(f"    description: {_scalar(entry.description, text=True)}")
    if shadow:
        lines.append("    enabled: false")
    if entry.schedule is None:
        lines.append(f"    # @reboot: no schedule{how}")
    else:
        lines.append(f"    schedule: {_quoted(entry.schedule)}")
        if both_days(entry.schedule):
            lines.append("    day_match: or")
        if entry.zone != zone:
            lines.append(f"    timezone: {_scalar(entry.zone or zone)}")
    return lines


def _what(entry: Entry, common: Mapping[str, str], homes: Homes) -> list[str]:
    lines = []
    shell = entry.env.get("SHELL", _SHELL)
    if shell == _SHELL:
        lines.append(f"    command: {_quoted(entry.command)}")
    else:
        lines.append(f"    command: [{_quoted(shell)}, -c, {_quoted(entry.command)}]")
    if entry.stdin is not None:
        lines.append(f"    stdin: {_quoted(entry.stdin)}")
    workdir = homes.workdir(entry.env.get("HOME"), entry.user)
    if workdir:
        lines.append(f"    workdir: {_quoted(workdir.replace('$', '$$'))}")
    if entry.user is not None:
        lines.append(f"    user: {_scalar(entry.user, text=True)}")
    env = {key: value for key, value in entry.env.items() if common.get(key) != value}
    if env:
        lines.append("    env:")
        lines += [f"      {key}: {_scalar(value, text=True)}" for key, value in env.items()]
    return lines


def _common(entries: Iterable[Entry]) -> dict[str, str]:
    """Variables that hold for every entry, with one value."""
    found = [entry.env for entry in entries]
    if len(found) < 2:
        return {}
    return {name: value for name, value in found[0].items() if all(env.get(name) == value for env in found)}


def _comment(text: str) -> str:
    return re.sub(r"[^ -~]", "?", text)


def _scalar(value: str, *, text: bool = False) -> str:
    """A YAML scalar that is read back as this text; quoted unless that is plainly not needed."""
    plain = _PLAIN.fullmatch(value) and value.casefold() not in _NOT_PLAIN and not value.startswith(("-", "."))
    if plain and not re.fullmatch(r"[0-9.eE+-]+", value):
        return value
    if (
        text
        and re.fullmatch(r"[A-Za-z][A-Za-z0-9 ,./()_-]*[A-Za-z0-9.)]", value)
        and value.casefold() not in _NOT_PLAIN
    ):
        return value
    return _quoted(value)


def _quoted(value: str) -> str:
    """In double quotes, with escapes that YAML and JSON share; what YAML does not print is escaped."""
    made = json.dumps(value, ensure_ascii=False)
    return re.sub("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]", lambda one: f"\\u{ord(one[0]):04x}", made)
