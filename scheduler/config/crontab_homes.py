"""In which folder cron starts a command."""

from __future__ import annotations

from collections.abc import Callable

from scheduler.core.value_object import value_object

NOWHERE = "/"
"""For those without a home: cron then stays in a folder of its own, /var/spool/cron, that is there while cron is."""


@value_object
class Homes:
    """`of` gives the home of a user (None: of the crontab's owner), `is_folder` says whether it exists; `owner` is the
    name of the crontab's owner."""

    of: Callable[[str | None], str | None] = lambda user: None
    is_folder: Callable[[str], bool] = lambda path: True
    owner: str | None = None

    def workdir(self, home: str | None, user: str | None) -> str | None:
        """The folder of a job whose crontab sets HOME to `home`; None if it cannot be told."""
        wanted = home or self.of(user)
        if wanted is None:
            return None
        return wanted if self.is_folder(wanted) else NOWHERE

    def missing(self, home: str | None, user: str | None) -> str | None:
        """The home that does not exist."""
        wanted = home or self.of(user)
        return None if wanted is None or self.is_folder(wanted) else wanted
