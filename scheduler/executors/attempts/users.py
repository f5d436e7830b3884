"""Whom a job runs as, and whether this daemon may start it for them."""

from __future__ import annotations

import os
import pwd

from scheduler.core.children import ChildUser
from scheduler.core.errors import InvalidInput


def child_user(name: str | None) -> ChildUser | None:
    """The numbers of `user:`, None for the daemon's own user. InvalidInput for an unknown user, or when only root could
    become them."""
    if name is None:
        return None
    try:
        account = pwd.getpwnam(name)
    except KeyError:
        raise InvalidInput(f"user: there is no user {name} here", hint="create it or correct `user:`") from None
    if account.pw_uid == os.geteuid():
        return None
    if os.geteuid() != 0:
        raise InvalidInput(
            f"user: only root can run a job as {name}",
            hint=f"start schedulerd as root, or as {name}, or remove `user:`",
        )
    groups = tuple(os.getgrouplist(name, account.pw_gid))
    return ChildUser(account.pw_uid, account.pw_gid, groups)
