"""Crontab entries that stay where they are: expected by a jobs.yaml, and wrapped so that they tell how it went."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping

from scheduler.config.crontab import Entry

_SHELL = "/bin/sh"
PLACE = "schedctl"
"""The program, as cron's PATH finds it."""


def wrapped_lines(jobs: Mapping[str, Entry], system: Collection[str], schedctl: str = PLACE) -> list[str]:
    """For each job the line that replaces its own in the crontab: the same command, wrapped. `system`: the crontabs
    whose lines have a column for the user."""
    return [_line(name, entry, entry.file in system, schedctl) for name, entry in jobs.items()]


def _line(name: str, entry: Entry, system: bool, schedctl: str) -> str:
    # As cron does it: the whole text goes to the shell that the crontab names.
    command = shlex.join([schedctl, "exec", name, "--", entry.env.get("SHELL", _SHELL), "-c", entry.command])
    user = f"{entry.user} " if system and entry.user else ""
    stdin = "" if entry.stdin is None else "%" + _escaped(entry.stdin.removesuffix("\n")).replace("\n", "%")
    return f"{entry.schedule or '@reboot'} {user}{_escaped(command)}{stdin}"


def _escaped(text: str) -> str:
    """A bare % would be the end of the line to cron."""
    return text.replace("%", r"\%")


def steps(lines: Collection[str]) -> list[str]:
    """What a person does with them."""
    return [
        "",
        "then, on the host whose crontab this is, with SCHEDCTL_URL and SCHEDCTL_TOKEN_FILE set at its top",
        "(a token of role ping: schedctl token create HOST --role ping), one line after the other in place of its own;",
        "cron's PATH is short: write the whole path of the program if it is not in /usr/bin:",
        "",
        *(f"  {line}" for line in lines),
        "",
        "next: schedctl check jobs.yaml",
    ]
