"""With or without a column for the user? Crontabs look alike; taken for the wrong kind, nothing of them would run."""

from __future__ import annotations

import re
from collections.abc import Callable

from scheduler.core.value_object import value_object

_SYSTEM = re.compile(r"(?:.*/)?etc/(?:crontab|cron\.d/[^/]+)")
_OWNED = re.compile(r"(?:.*/)?var/(?:spool/cron/(?:crontabs/|tabs/)?|cron/tabs/)([^/]+)")
_FIRST = re.compile(r"([A-Za-z_][A-Za-z0-9_.-]*)[ \t]+\S")
_USERS = frozenset({"root", "www-data", "nobody"})


def _is_common_user(name: str) -> bool:
    return name in _USERS


def _is_no_program(word: str) -> bool:
    return False


@value_object
class Known:
    """What the machine knows by name."""

    user: Callable[[str], bool] = _is_common_user
    program: Callable[[str], bool] = _is_no_program

    def is_command(self, user: str) -> bool:
        """Whether what stands in the column of the user is the command."""
        return self.program(user) and not self.user(user)

    def leading_user(self, command: str) -> str | None:
        """The user with which what should be a command begins."""
        found = _FIRST.match(command)
        if found is None or self.program(found[1]) or not self.user(found[1]):
            return None
        return found[1]


def has_user_column(file: str) -> bool:
    """Whether cron reads a file of this name with a column for the user."""
    return _SYSTEM.fullmatch(file) is not None


def owner_of(file: str) -> str | None:
    """Whose crontab a file in cron's own folder is."""
    found = _OWNED.fullmatch(file)
    return None if found is None else found[1]
