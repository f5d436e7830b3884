"""Who asks over HTTP, and what they may see and do."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection
from datetime import datetime, timedelta
from enum import IntEnum, StrEnum
from typing import Protocol

from scheduler.core.value_object import value_object

PREFIX = "sched_"
"""Every token begins so: scanners for secrets that were published find them."""
_BYTES = 32


class Role(StrEnum):
    """What the holder of a token may do: see everything that jobs say; act as well; only report that a job ran."""

    READ = "read"
    OPERATE = "operate"
    PING = "ping"


class Access(IntEnum):
    """What an operation asks of its caller."""

    ANYBODY = 0
    """Nothing: it tells nothing private."""
    FACTS = 1
    """Nothing, but those without a token are told names, times and states only."""
    READ = 2
    OPERATE = 3
    LOCAL = 4
    """To come in by the Unix socket."""


@value_object
class Caller:
    """`name` is what is written down as author. `local`: came in by the Unix socket, whose mode let them in."""

    name: str
    role: Role | None = None
    local: bool = False

    def may(self, access: Access) -> bool:
        if self.local or access in (Access.ANYBODY, Access.FACTS):
            return True
        if access is Access.READ:
            return self.trusted
        return access is Access.OPERATE and self.role is Role.OPERATE

    @property
    def trusted(self) -> bool:
        """Whether they may see what jobs print, carry and answer."""
        return self.local or self.role in (Role.READ, Role.OPERATE)


@value_object
class Token:
    """A right that somebody holds. The secret is not part of it: only a digest of that is kept, and not here. `parent`:
    the token with which a browser signed in; such a session ends when that one is revoked."""

    id: str
    name: str
    role: Role
    created_at: datetime
    author: str
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    used_at: datetime | None = None
    session: bool = False
    parent: str | None = None

    def live(self, now: datetime) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


def new_secret() -> str:
    """256 bits that nobody guesses: a plain digest of them is as good as a slow one."""
    return PREFIX + secrets.token_urlsafe(_BYTES)


def digest_of(secret: str) -> str:
    """What is kept of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


class Tokens(Protocol):
    """The verbs of the store."""

    def add(self, token: Token, digest: str) -> bool:
        """False: a live token of that name exists."""
        ...

    def all(self) -> dict[str, Token]:
        """By digest, by age; revoked and expired ones too."""
        ...

    def revoke(self, ids: Collection[str], now: datetime) -> set[str]:
        """The ids of those that were not revoked before."""
        ...

    def use(self, ids: Collection[str], now: datetime) -> None:
        """Notes that they were used."""
        ...

    def prune(self, before: datetime) -> int:
        """Forgets sessions that ended before that."""
        ...


class Gate(Protocol):
    """Offered by the engine: who holds which right, remembered for a few seconds, so that no request asks the database
    for it."""

    def recall(self, secret: str) -> Token | None:
        """The live token of that secret, as far as it is remembered."""
        ...

    def stale(self, *, missed: bool) -> bool:
        """Whether it is time to `refresh`. `missed`: somebody was not found, who may be new."""
        ...

    def refresh(self) -> None:
        """Reads all tokens again. Raises Unavailable; what was known stays known."""
        ...

    def all(self) -> list[Token]:
        """Without sessions, by age."""
        ...

    def create(self, name: str, role: Role, *, author: str, lifetime: timedelta | None = None) -> tuple[Token, str]:
        """A new token and its secret, which is told this once. Refused if a live one has that name."""
        ...

    def revoke(self, text: str, *, author: str) -> Token:
        """By name, id, or the end of an id. Raises NotFound, or Refused when several match."""
        ...

    def sign_in(self, secret: str) -> tuple[Token, str] | None:
        """A session of that token for a browser, and its secret. None: there is no such token."""
        ...

    def sign_out(self, secret: str) -> None: ...

    def link(self, *, author: str) -> str:
        """A code that signs in once, within ten minutes, on this node."""
        ...

    def redeem(self, code: str) -> tuple[Token, str] | None:
        """The session that such a code gives. None: it was used, is too old, or never was."""
        ...
