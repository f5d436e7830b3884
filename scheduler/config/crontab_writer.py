"""Crontab entries → jobs.yaml, with what is different from cron said job by job, and the steps of the switch."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from scheduler.config.crontab import Crontab, Entry, LeftOut, read_crontabs, with_zone
from scheduler.config.crontab_names import name_of

_PLAIN = re.compile(r"[A-Za-z0-9/._-]*[A-Za-z/._-][A-Za-z0-9/._-]*")
_NOT_PLAIN = frozenset({"true", "false", "null", "~", "yes", "no", "on", "off", "-", ".", "---", "..."})
_SHELL = "/bin/sh"
_DETACHING = re.compile(r"(?:^|[;&|\s(])(?:nohup|setsid|disown)(?=[;&|\s)])|(?<![&>|<])&\s*(?:$|[;)])")
_SYSTEMD = "/run/systemd/system"
_FAITHFUL = (
    ("overlap", "allow", "a run starts although the last one is still going"),
    ("catch_up", "none", "what was missed while the machine was off never runs"),
    ("on_lost", "fail", "a run that a crash or reboot cut short is not repeated"),
    ("leftovers", "keep", "processes that a run leaves behind go on"),
)
_OURS = "overlap: skip, catch_up: latest, on_lost: retry, leftovers: end (cron: allow, none, fail, keep)"


@dataclass(frozen=True, slots=True)
class Imported:
    """`yaml` is a complete jobs.yaml. `notes` say per job what is different from cron, `left_out` what is not in it,
    `steps` how to switch over."""

    yaml: str
    jobs: Mapping[str, Entry]
    notes: Mapping[str, Sequence[str]]
    left_out: Sequence[LeftOut]
    steps: Sequence[str]

    def messages(self) -> list[str]:
        """All that a person should read, in order: what was left out, the notes, the steps."""
        lines = [str(one) for one in self.left_out]
        for name, notes in self.notes.items():
            lines += [f"{name}: {note}" for note in notes]
        return [*lines, *self.steps]


def import_crontab(
    texts: Sequence[tuple[str, str]],
    *,
    zone: str,
    system: bool = False,
    faithful: bool = False,
    shadow: bool = False,
    home_of: Callable[[str | None], str | None] = lambda user: None,
) -> Imported:
    """Converts crontabs given as (file name, text).

    `zone` is the one of the machine, in which cron read them (entries below a CRON_TZ keep theirs). `faithful`
    writes cron's policies instead of ours; `shadow` writes every job disabled. `home_of` gives the home directory of
    a user (None: the crontab's owner), in which cron starts its commands."""
    crontab = read_crontabs(texts, system=system)
    jobs: dict[str, Entry] = {}
    for entry in with_zone(crontab.entries, zone):
        jobs[name_of(entry.command, jobs)] = entry
    common = _common(jobs.values())
    lines = _head(texts, zone, faithful, common)
    for name, entry in jobs.items():
        lines += ["", *_job(name, entry, zone, shadow, common, home_of)]
    if not jobs:
        lines[-1] = "jobs: {}"
    notes = {name: _notes(entry, faithful, system, home_of) for name, entry in jobs.items()}
    return Imported("\n".join(lines) + "\n", jobs, notes, crontab.left_out, _steps(crontab, system, shadow))


def _head(texts: Sequence[tuple[str, str]], zone: str, faithful: bool, common: Mapping[str, str]) -> list[str]:
    names = ", ".join(re.sub(r"[^ -~]", "?", name) for name, _ in texts)
    lines = [f"# imported from {names}", "version: 1", "", "defaults:", f"  timezone: {_scalar(zone)}"]
    if faithful:
        lines.append("  # as cron does it:")
        lines += [f"  {key}: {word} # {meaning}" for key, word, meaning in _FAITHFUL]
    if common:
        lines.append("  env:")
        lines += [f"    {name}: {_scalar(value, text=True)}" for name, value in common.items()]
    return [*lines, "", "jobs:"]


def _job(
    name: str,
    entry: Entry,
    zone: str,
    shadow: bool,
    common: Mapping[str, str],
    home_of: Callable[[str | None], str | None],
) -> list[str]:
    lines = [f"  # {_comment(entry.file)}:{entry.line}", f"  {_scalar(name)}:"]
    if entry.description:
        lines.append(f"    description: {_scalar(entry.description, text=True)}")
    if shadow:
        lines.append("    enabled: false")
    lines.append(f"    schedule: {_quoted(entry.schedule)}")
    if entry.zone != zone:
        lines.append(f"    timezone: {_scalar(entry.zone or zone)}")
    shell = entry.env.get("SHELL", _SHELL)
    if shell == _SHELL:
        lines.append(f"    command: {_quoted(entry.command)}")
    else:
        lines.append(f"    command: [{_quoted(shell)}, -c, {_quoted(entry.command)}]")
    if entry.stdin is not None:
        lines.append(f"    stdin: {_quoted(entry.stdin)}")
    workdir = entry.env.get("HOME") or home_of(entry.user)
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


def _notes(entry: Entry, faithful: bool, system: bool, home_of: Callable[[str | None], str | None]) -> list[str]:
    notes = []
    if not faithful:
        notes.append(_OURS)
        if _DETACHING.search(entry.command):
            notes.append("it puts a process into the background, which is ended with the run; to keep it: --faithful")
    if "TZ" in entry.env:
        notes.append("TZ sets the clock of its process only; the schedule follows `timezone`")
    if _SYSTEMD in entry.command:
        notes.append("on a machine with systemd this line does nothing: a timer does its work there")
    if any("$" in value for value in entry.env.values()):
        notes.append("`$` in a variable line is taken as it is, by cron too")
    if not entry.env.get("HOME") and home_of(entry.user) is None:
        notes.append("cron starts it in the home directory of its user; here add `workdir` if that matters")
    if entry.user is not None and system:
        notes.append(f"it runs as {entry.user}, which needs a daemon that runs as root")
    if "PATH" not in entry.env:
        notes.append("cron searches programs in /usr/bin:/bin; here in the usual places, /usr/local and sbin included")
    if "\\\\" in entry.command:
        notes.append("two backslashes stay two here; some crons make one of them")
    if _both_days(entry.schedule):
        notes.append("day of month and day of week are both given: either is enough, as in cron")
    return notes


def _both_days(schedule: str) -> bool:
    parts = schedule.split()
    return len(parts) == 5 and not parts[2].startswith("*") and not parts[4].startswith("*")


def _steps(crontab: Crontab, system: bool, shadow: bool) -> list[str]:
    where = ", ".join(dict.fromkeys(entry.file for entry in crontab.entries)) or "the crontab"
    off = f"comment its lines out in {where}" if system else "comment its lines out (crontab -e)"
    count = len(crontab.entries)
    lines = ["", f"{count} job{'' if count == 1 else 's'}. The switch:"]
    if shadow:
        steps = [
            "schedctl check jobs.yaml && schedctl reload      (nothing runs: every job is disabled)",
            "compare for a while: schedctl next against cron's log",
            f"job by job, between two of its occurrences: {off}, then set enabled: true and schedctl reload",
        ]
    else:
        steps = [
            "schedctl check jobs.yaml; schedctl next          (are these the times that you expect?)",
            f"between two occurrences: {off},",
            "then at once: schedctl reload",
        ]
    steps.append(
        "watch: schedctl status; schedctl runs            (back: schedctl pause --all, then the lines in again)"
    )
    return [*lines, *(f"  {number}. {step}" for number, step in enumerate(steps, 1))]


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
