"""Crontabs as cron reads them: the dialect of Debian's cron, with what cronie adds.

Pure: text in, values out. Nothing is guessed silently; what cannot become a job is listed with its line, the reason
and what to do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from scheduler.core.errors import ScheduleError
from scheduler.core.schedule import Schedule
from scheduler.core.zone import zone_of

_VARIABLE = re.compile(r"""\s*(["']?)([A-Za-z_][A-Za-z0-9_]*)\1\s*=\s*(.*?)\s*$""")
_QUOTED = re.compile(r"""(["'])(.*)\1$""", re.DOTALL)
_ENTRY = re.compile(r"(-?)(@\S+|\S+(?:[ \t]+\S+){4})(?:[ \t]+(.*))?$")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*\$?(?:[:/]|$)")
_USER = re.compile(r"(\S+)(?:[ \t]+(.*))?$")
_PICTURE = re.compile(r"^[\s|+.,'`*-]*(?:\||\.-|--)|^\s*(?:\*\s+){4}|^\s*m\s+h\s+dom|=====|^\s*\W*\s*$")
_CRON_D = re.compile(r"[A-Za-z0-9_-]+")
_HANDLED = {
    "MAILTO": "output is kept instead of mailed: read it with schedctl logs JOB; failures show in schedctl status",
    "MAILFROM": "output is kept instead of mailed: drop the line",
    "CONTENT_TYPE": "output is kept instead of mailed: drop the line",
    "CONTENT_TRANSFER_ENCODING": "output is kept instead of mailed: drop the line",
    "RANDOM_DELAY": "to spread load write H in the schedule: H 3 * * * is some minute after 3, always the same",
    "START_HOURS_RANGE": "write the hours into the schedule; catch_up: latest does what anacron did",
    "LOGNAME": "cron sets it itself: drop the line",
    "USER": "cron sets it itself: drop the line",
}
_AT_TIMES = frozenset(["@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually"])


@dataclass(frozen=True, slots=True)
class Entry:
    """One line that runs something. `stdin` is what follows the first `%`, None without one."""

    file: str
    line: int
    schedule: str
    command: str
    stdin: str | None = None
    user: str | None = None
    zone: str | None = None
    env: dict[str, str] = field(default_factory=dict)
    description: str = ""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """One line that did not become a job (or part of one), and what to do about it."""

    file: str
    line: int
    text: str
    reason: str
    hint: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text[:120]}\n    {self.reason}; {self.hint}"


@dataclass(frozen=True, slots=True)
class Crontab:
    """What crontabs hold, in the order of their lines."""

    entries: Sequence[Entry]
    left_out: Sequence[LeftOut]


def read_crontabs(texts: Sequence[tuple[str, str]], *, system: bool = False) -> Crontab:
    """Reads crontabs given as (file name, text). `system`: with a column for the user, as in /etc/crontab."""
    entries: list[Entry] = []
    left_out: list[LeftOut] = []
    for name, text in texts:
        folder, _, base = name.rpartition("/")
        if folder.endswith("cron.d") and not _CRON_D.fullmatch(base):
            reason = "cron ignores files with such a name in cron.d"
            left_out.append(LeftOut(name, 0, base, reason, "rename the file if it is meant to be used"))
            continue
        for found in _Reader(name, system).read(text):
            (entries if isinstance(found, Entry) else left_out).append(found)  # type: ignore[arg-type]
    return Crontab(entries, left_out)


class _Reader:
    """One crontab, line by line: variables hold for the lines below them."""

    def __init__(self, name: str, system: bool) -> None:
        self._name = name
        self._system = system
        self._env: dict[str, str] = {}
        self._zone: str | None = None
        self._comments: list[str] = []

    def read(self, text: str) -> Iterator[Entry | LeftOut]:
        lines = [line.rstrip("\r") for line in text.removeprefix("\ufeff").replace("\0", "").split("\n")]
        for number, raw in enumerate(lines, 1):
            line = raw.strip(" \t")
            if not line:
                self._comments = []
            elif line.startswith("#"):
                self._comments.append(line.lstrip("#").strip())
            else:
                yield from self._line(number, line)
                self._comments = []
        if lines and lines[-1].strip(" \t") and not lines[-1].lstrip().startswith("#"):
            reason = "cron refuses or ignores a last line without a line break; it was read nevertheless"
            yield LeftOut(self._name, len(lines), lines[-1].strip(), reason, "nothing to do here")

    def _line(self, number: int, line: str) -> Iterator[Entry | LeftOut]:
        variable = _VARIABLE.match(line)
        if variable is not None:
            yield from self._variable(number, line, variable[2], _unquoted(variable[3]))
            return
        entry = _ENTRY.match(line)
        if entry is None or not (entry[3] or "").strip():
            reason = "not understood: five fields (or @daily and the like) and a command are expected"
            yield LeftOut(self._name, number, line, reason, "correct the line, or write the job by hand")
            return
        quiet, schedule, rest = entry[1], " ".join(entry[2].split()), entry[3]
        user = None
        if self._system:
            column = _USER.match(rest)
            if column is None or not (column[2] or "").strip() or not _NAME.match(column[1]):
                reason = "not understood: a user and a command are expected after the schedule"
                yield LeftOut(self._name, number, line, reason, "correct the line, or import it without --system")
                return
            user, rest = column[1], column[2]
        command, stdin = _split_percent(rest)
        problem = self._schedule_problem(schedule)
        if problem is not None:
            yield LeftOut(self._name, number, line, *problem)
            return
        if user is not None and re.search("[:/]", user):
            reason = f"the group or login class in `{user}` was dropped"
            user = re.split("[:/]", user)[0]
            yield LeftOut(self._name, number, line, reason, "the user's own groups apply")
        if quiet:
            yield LeftOut(self._name, number, line, "the leading `-` (do not log) was dropped", "nothing to do here")
        if command:
            yield Entry(
                self._name, number, schedule, command, stdin, user, self._zone, dict(self._env), self._description()
            )
        else:
            yield LeftOut(self._name, number, line, "the command is empty", "correct the line, or drop it")

    def _variable(self, number: int, line: str, name: str, value: str) -> Iterator[LeftOut]:
        if name == "CRON_TZ":
            try:
                zone_of(value)
            except ScheduleError as error:
                yield LeftOut(self._name, number, line, error.reason, error.hint or "correct it")
            else:
                self._zone = value
        elif name in _HANDLED:
            yield LeftOut(self._name, number, line, f"{name} has no place in jobs.yaml", _HANDLED[name])
        elif name.startswith("SCHED_"):
            yield LeftOut(self._name, number, line, f"{name} is set by the scheduler", "choose another name")
        else:
            self._env[name] = value

    def _schedule_problem(self, schedule: str) -> tuple[str, str] | None:
        if schedule.casefold() == "@reboot":
            hint = "start it as a service (systemd), or run it by hand: schedctl run-now"
            return "@reboot is no schedule: nothing says when it is due", hint
        if schedule.startswith("@") and schedule.casefold() not in _AT_TIMES:
            return f"`{schedule}` is not known here", "write it with five fields"
        if "~" in schedule:
            return "random times (`~`) are not known here", "write H for a fixed time derived from the job's name"
        try:
            Schedule((schedule,), "UTC", "cron", "job")
        except ScheduleError as error:
            return error.reason, error.hint or "write it with five fields"
        return None

    def _description(self) -> str:
        """The comment directly above the line; not pictures of the columns, nor lines that were commented out."""
        if any(_PICTURE.search(comment) for comment in self._comments):
            return ""
        return " ".join(comment for comment in self._comments if not _is_entry(comment)).strip()


def with_zone(entries: Sequence[Entry], zone: str) -> list[Entry]:
    """The entries, each with a zone: its own from CRON_TZ, else this one."""
    return [entry if entry.zone is not None else replace(entry, zone=zone) for entry in entries]


def _is_entry(comment: str) -> bool:
    found = _ENTRY.match(comment)
    if found is None or not found[3]:
        return False
    return found[2].startswith("@") or (
        all(re.fullmatch(r"[0-9*,/A-Za-z-]+", part) for part in found[2].split())
        and (re.search(r"[0-9*]", found[2].split()[0]) is not None)
    )


def _unquoted(value: str) -> str:
    found = _QUOTED.match(value)
    return found[2] if found is not None else value


def _split_percent(text: str) -> tuple[str, str | None]:
    """The command and its standard input: the first `%` ends the command, further ones are line breaks, `\\%` is a
    percent sign. Two backslashes stay two, as in cronie; older crons make one of them."""
    command, escaped = "", False
    for index, sign in enumerate(text):
        if sign == "%" and not escaped:
            given = re.sub(r"\\?%", lambda one: "%" if len(one[0]) == 2 else "\n", text[index + 1 :])
            return command.strip(), given if not given or given.endswith("\n") else given + "\n"
        command = command[:-1] + sign if sign == "%" else command + sign
        escaped = sign == "\\" and not escaped
    return command.strip(), None
