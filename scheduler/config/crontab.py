"""Crontabs as cron reads them: the dialect of Debian's cron, with what cronie adds.

Pure: text in, values out. Nothing is guessed silently; what cannot become a job is listed with its line, the reason
and what to do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import field, replace

from scheduler.config.crontab_columns import Known, has_user_column
from scheduler.core.errors import InvalidInput, ScheduleError
from scheduler.core.schedule import Schedule
from scheduler.core.value_object import value_object
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


@value_object
class Given:
    """One crontab. `system`: its lines have a column for the user, as in /etc/crontab. `owner`: whose it is, if it is
    not that of the person who asks."""

    name: str
    text: str
    system: bool = False
    owner: str | None = None


@value_object
class Entry:
    """One line that runs something. `schedule` is None for `@reboot`; `stdin` is what follows the first `%`, None
    without one; `remarks` are for the person who imports it."""

    file: str
    line: int
    schedule: str | None
    command: str
    stdin: str | None = None
    user: str | None = None
    zone: str | None = None
    env: dict[str, str] = field(default_factory=dict)
    description: str = ""
    remarks: tuple[str, ...] = ()


@value_object
class LeftOut:
    """One line that did not become a job (or part of one), and what to do about it. `lost`: something that cron did
    is not done without it."""

    file: str
    line: int
    text: str
    reason: str
    hint: str
    lost: bool = True

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


@value_object
class Crontab:
    """What crontabs hold, in the order of their lines."""

    entries: Sequence[Entry]
    left_out: Sequence[LeftOut]


def read_crontabs(texts: Sequence[Given], known: Known) -> Crontab:
    """Reads them all. InvalidInput if a crontab as a whole was taken for the other kind: with or without a column for
    the user."""
    entries: list[Entry] = []
    left_out: list[LeftOut] = []
    for given in texts:
        folder, _, base = given.name.rpartition("/")
        if folder.endswith("cron.d") and not _CRON_D.fullmatch(base):
            reason = "cron ignores files with such a name in cron.d"
            left_out.append(LeftOut(given.name, 0, base, reason, "rename the file if it is meant to be used", False))
            continue
        found = [*_Reader(given).read(given.text)]
        left_out += [one for one in found if isinstance(one, LeftOut)]
        own = [one for one in found if isinstance(one, Entry)]
        entries += _with_user(given, own, left_out, known) if given.system else _without_user(given, own, known)
    order = {given.name: index for index, given in enumerate(texts)}
    return Crontab(entries, sorted(left_out, key=lambda one: (order[one.file], one.line)))


def _with_user(given: Given, own: list[Entry], left_out: list[LeftOut], known: Known) -> list[Entry]:
    """The entries whose column for the user holds one."""
    wrong = [one for one in own if known.is_command(one.user or "")]
    if 2 * len(wrong) > len(own) and not has_user_column(given.name):
        raise InvalidInput(
            f"{given.name}:{wrong[0].line}: `{wrong[0].user}` is a program and not a user: this crontab has no column "
            "for the user",
            hint="leave out --system",
        )
    for one in wrong:
        reason = f"`{one.user}` is a program and not a user: the column for the user is missing, and cron refuses it"
        text = f"{one.schedule or '@reboot'} {one.user} {one.command}"
        left_out.append(LeftOut(given.name, one.line, text, reason, "write the user before the command"))
    return [one for one in own if one not in wrong]


def _without_user(given: Given, own: list[Entry], known: Known) -> list[Entry]:
    """The entries, with a remark about commands that begin with a user."""
    users = {one.line: user for one in own if (user := known.leading_user(one.command)) is not None}
    if 2 * len(users) > len(own):
        line, user = next(iter(users.items()))
        raise InvalidInput(
            f"{given.name}:{line}: `{user}` is a user: this crontab has a column for the user", hint="add --system"
        )
    found = []
    for one in own:
        if one.line in users:
            remark = f"its command begins with `{users[one.line]}`, which is a user and no program here: is it meant?"
            one = replace(one, remarks=(*one.remarks, remark))
        found.append(one)
    return found


class _Reader:
    """One crontab, line by line: variables hold for the lines below them."""

    def __init__(self, given: Given) -> None:
        self._name = given.name
        self._system = given.system
        self._owner = given.owner
        self._env: dict[str, str] = {}
        self._zone: str | None = None
        self._bad_zone = ""
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
            yield LeftOut(self._name, len(lines), lines[-1].strip(), reason, "nothing to do here", False)

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
        user = self._owner
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
            yield LeftOut(self._name, number, line, reason, "the user's own groups apply", False)
        if quiet:
            reason = "the leading `-` (do not log) was dropped"
            yield LeftOut(self._name, number, line, reason, "nothing to do here", False)
        if not command:
            yield LeftOut(self._name, number, line, "the command is empty", "correct the line, or drop it")
            return
        when = None if schedule.casefold() == "@reboot" else schedule
        remarks = (self._bad_zone,) if self._bad_zone and when is not None else ()
        yield Entry(
            self._name,
            number,
            when,
            command,
            stdin,
            user,
            self._zone,
            dict(self._env),
            self._description(),
            remarks,
        )

    def _variable(self, number: int, line: str, name: str, value: str) -> Iterator[LeftOut]:
        if name == "CRON_TZ":
            yield from self._set_zone(number, line, value)
        elif name in _HANDLED:
            yield LeftOut(self._name, number, line, f"{name} has no place in jobs.yaml", _HANDLED[name], False)
        elif name.startswith("SCHED_"):
            yield LeftOut(self._name, number, line, f"{name} is set by the scheduler", "choose another name")
        else:
            self._env[name] = value

    def _set_zone(self, number: int, line: str, value: str) -> Iterator[LeftOut]:
        """cronie's; Debian's cron takes it for a variable like any other."""
        self._zone, self._bad_zone = value or None, ""
        try:
            if value:
                zone_of(value)
        except ScheduleError as error:
            self._zone = None
            self._bad_zone = f"CRON_TZ={value} cannot be used: correct the zone of its schedule"
            yield LeftOut(self._name, number, line, error.reason, error.hint or "correct it")

    def _schedule_problem(self, schedule: str) -> tuple[str, str] | None:
        if schedule.casefold() == "@reboot":
            return None
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
