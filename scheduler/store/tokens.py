"""Tokens: rights, known by the digests of their secrets."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

from sqlalchemy import Row, and_, delete, or_, select, update

from scheduler.core.access import Role, Token
from scheduler.core.value_object import value_object
from scheduler.store import tables as t
from scheduler.store.session import Session

_LIVE = t.tokens.c.revoked_at.is_(None)


@value_object
class SqlTokens:
    session: Session

    def add(self, token: Token, digest: str) -> bool:
        """False: a live token of that name exists."""
        same = and_(t.tokens.c.name == token.name, _LIVE, ~t.tokens.c.session)
        unexpired = or_(t.tokens.c.expires_at.is_(None), t.tokens.c.expires_at > token.created_at)
        if not token.session and self.session.rows(select(t.tokens.c.id).where(same, unexpired)).first() is not None:
            return False
        self.session.write(
            t.tokens.insert(),
            {
                "id": token.id,
                "name": token.name,
                "role": token.role.value,
                "digest": digest,
                "created_at": token.created_at,
                "author": token.author,
                "expires_at": token.expires_at,
                "session": token.session,
                "parent": token.parent,
            },
        )
        return True

    def all(self) -> dict[str, Token]:
        """By digest, by age; revoked and expired ones too."""
        rows = self.session.rows(select(t.tokens).order_by(t.tokens.c.created_at, t.tokens.c.id))
        return {row.digest: _token(row) for row in rows}

    def revoke(self, ids: Collection[str], now: datetime) -> set[str]:
        """The ids of those that were not revoked before."""
        concerned = and_(t.tokens.c.id.in_(ids), _LIVE)
        found = set(self.session.rows(select(t.tokens.c.id).where(concerned)).scalars())
        self.session.write(update(t.tokens).where(t.tokens.c.id.in_(found), _LIVE).values(revoked_at=now))
        return found

    def use(self, ids: Collection[str], now: datetime) -> None:
        self.session.write(update(t.tokens).where(t.tokens.c.id.in_(ids)).values(used_at=now))

    def prune(self, before: datetime) -> int:
        """Forgets sessions that ended before that."""
        over = or_(t.tokens.c.revoked_at < before, t.tokens.c.expires_at < before)
        return self.session.write(delete(t.tokens).where(t.tokens.c.session, over))


def _token(row: Row[Any]) -> Token:
    values = dict(row._mapping)
    del values["digest"]
    return Token(**{**values, "role": Role(values["role"])})
