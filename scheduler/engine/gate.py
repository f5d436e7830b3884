"""The gate: who holds which right over TCP (core.access.Gate)."""

from __future__ import annotations

import secrets
import shlex
import threading
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from scheduler.core.access import PREFIX, Gate, Role, Token, digest_of, new_secret
from scheduler.core.errors import InvalidInput, NotFound, Refused, Unavailable
from scheduler.core.execution import Bus, Clock
from scheduler.core.ids import new_id
from scheduler.core.ports import Store

REMEMBER = 5.0
"""Seconds after which tokens are read again: so long may one that another node revoked still be good here."""
LOOK_AGAIN = 1.0
"""Somebody unknown may be new; the database is asked at most so often."""
SESSION = timedelta(hours=12)
LINK = 600.0
"""Seconds for which a sign-in link is good."""
MOST_LINKS = 100
NOTE_USE = timedelta(hours=1)
"""How exactly it is known when a token was used last."""
LONGEST_NAME = 100
LONGEST_SECRET = 200


class TokenGate(Gate):
    def __init__(self, store: Store, clock: Clock, bus: Bus) -> None:
        self._store = store
        self._clock = clock
        self._bus = bus
        self._guard = threading.Lock()
        self._known: Mapping[str, Token] = {}
        self._by_id: Mapping[str, Token] = {}
        self._read_at = float("-inf")
        self._used: set[str] = set()
        self._links: dict[str, tuple[float, str]] = {}

    # ------------------------------------------------------------ for each request

    def recall(self, secret: str) -> Token | None:
        token = self._known.get(digest_of(secret)) if _plausible(secret) else None
        if token is None or not self._holds(token):
            return None
        self._used.add(token.id)
        return token

    def stale(self, *, missed: bool) -> bool:
        return self._clock.monotonic() - self._read_at > (LOOK_AGAIN if missed else REMEMBER)

    def refresh(self) -> None:
        asked = self._clock.monotonic()
        with self._guard:
            if self._read_at >= asked:
                return  # Somebody else did it while this one waited.
            with self._store.read() as tx:
                known = tx.tokens.all()
            self._read_at = self._clock.monotonic()
            self._known = known
            self._by_id = {token.id: token for token in known.values()}
        self._note_use()

    def _holds(self, token: Token) -> bool:
        now = self._clock.now()
        if token.parent is not None:
            parent = self._by_id.get(token.parent)
            if parent is None or not parent.live(now):
                return False
        return token.live(now)

    def _note_use(self) -> None:
        now = self._clock.now()
        used, self._used = self._used, set()
        due = {
            token.id
            for token in self._known.values()
            if token.id in used and (token.used_at is None or now - token.used_at > NOTE_USE)
        }
        if due:
            try:
                with self._store.begin() as tx:
                    tx.tokens.use(due, now)
            except Unavailable:
                self._used |= due

    # ------------------------------------------------------------ tokens

    def all(self) -> list[Token]:
        with self._store.read() as tx:
            return [token for token in tx.tokens.all().values() if not token.session]

    def create(self, name: str, role: Role, *, author: str, lifetime: timedelta | None = None) -> tuple[Token, str]:
        if not (0 < len(name) <= LONGEST_NAME and name.isprintable() and name == name.strip()):
            raise InvalidInput(f"a token's name has 1 to {LONGEST_NAME} printable characters", hint="say who holds it")
        if lifetime is not None and not timedelta(0) < lifetime <= timedelta(days=36_500):
            raise InvalidInput("a token's life is longer than nothing and shorter than a century")
        now = self._clock.now()
        expires = None if lifetime is None else now + lifetime
        token, secret = self._add(Token(new_id(), name, role, now, author, expires))
        self._bus.publish("token.created", token=name, role=str(role), author=author)
        return token, secret

    def _add(self, token: Token) -> tuple[Token, str]:
        secret = new_secret()
        with self._store.begin() as tx:
            tx.tokens.prune(token.created_at - timedelta(days=1))
            if not tx.tokens.add(token, digest_of(secret)):
                raise Refused(
                    f"a token is named {token.name!r} already",
                    hint=f"choose another name, or end that one: schedctl token revoke {shlex.quote(token.name)}",
                )
        self._read_at = float("-inf")
        return token, secret

    def revoke(self, text: str, *, author: str) -> Token:
        now = self._clock.now()
        with self._store.begin() as tx:
            live = [token for token in tx.tokens.all().values() if not token.session and token.live(now)]
            found = [token for token in live if text in (token.name, token.id)]
            found = found or [token for token in live if len(text) >= 4 and token.id.endswith(text)]
            if not found:
                raise NotFound(f"no live token {text!r}", hint="`schedctl token list` shows them")
            if len(found) > 1:
                raise Refused(f"{text!r} fits several tokens", hint="give the id that `schedctl token list` shows")
            tx.tokens.revoke([found[0].id], now)
        self._read_at = float("-inf")
        self._bus.publish("token.revoked", token=found[0].name, role=str(found[0].role), author=author)
        return replace(found[0], revoked_at=now)

    # ------------------------------------------------------------ browsers

    def sign_in(self, secret: str) -> tuple[Token, str] | None:
        token = self.recall(secret)
        if token is None or token.session:
            return None
        return self._session(token.name, token.role, token.id)

    def sign_out(self, secret: str) -> None:
        token = self.recall(secret)
        if token is not None and token.session:
            with self._store.begin() as tx:
                tx.tokens.revoke([token.id], self._clock.now())
            self._read_at = float("-inf")

    def link(self, *, author: str) -> str:
        code = secrets.token_urlsafe(24)
        now = self._clock.monotonic()
        with self._guard:
            self._links = {one: made for one, made in self._links.items() if now - made[0] <= LINK}
            while len(self._links) >= MOST_LINKS:
                del self._links[next(iter(self._links))]
            self._links[digest_of(code)] = (now, author)
        return code

    def redeem(self, code: str) -> tuple[Token, str] | None:
        with self._guard:
            made, author = self._links.pop(digest_of(code), (float("-inf"), ""))
        if self._clock.monotonic() - made > LINK:
            return None
        return self._session(author, Role.OPERATE, None)

    def _session(self, name: str, role: Role, parent: str | None) -> tuple[Token, str]:
        now: datetime = self._clock.now()
        return self._add(Token(new_id(), name, role, now, name, now + SESSION, session=True, parent=parent))


def _plausible(secret: str) -> bool:
    return secret.startswith(PREFIX) and len(secret) <= LONGEST_SECRET
