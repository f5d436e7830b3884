"""Dead man's switches outside: which of them hear us, which do not, since when and why."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

import structlog

from scheduler.core.ping import DAEMON, Standing
from scheduler.core.remark import Remark

log = structlog.get_logger("pings")

TOLD_AFTER = timedelta(minutes=3)
"""A target that could not be reached for so long is worth a remark."""


class Targets:
    """By target: a job's name, or `daemon`. From any thread; a URL is in none of it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._standing: dict[str, Standing] = {}
        self._said: set[str] = set()
        """Of which the log has that they fail, and not yet that they take pings again."""

    def took(self, target: str, now: datetime) -> None:
        """A ping was accepted."""
        with self._lock:
            before = self._standing.get(target, Standing())
            self._standing[target] = Standing(now, before.failures)
            restored = target in self._said
            self._said.discard(target)
        if restored:
            log.info("ping_restored", target=target)

    def failed(self, target: str, reason: str, now: datetime, *, waits: bool = True) -> None:
        """A ping was not. Only one that `waits` until it is taken makes the target a failing one: what is not sent
        again proves nothing a minute later."""
        with self._lock:
            before = self._standing.get(target, Standing())
            after = replace(before, failures=before.failures + 1)
            if waits:
                after = replace(after, failing_since=before.failing_since or now, reason=reason)
            self._standing[target] = after
            news = target not in self._said
            self._said.add(target)
        if news:
            log.warning("ping_failed", target=target, reason=reason, what="it is tried again; told once until it works")

    def failing(self) -> frozenset[str]:
        """The jobs among them that do not take pings."""
        with self._lock:
            found = (name for name, one in self._standing.items() if one.failing_since is not None)
            return frozenset(found) - {DAEMON}

    def acquit(self, targets: frozenset[str]) -> None:
        """Nothing waits for these any more: another node was heard, or it was given up."""
        with self._lock:
            for name in targets & self._standing.keys():
                self._standing[name] = replace(self._standing[name], failing_since=None, reason="")
                self._said.discard(name)

    def fails(self, target: str) -> bool:
        return self._standing.get(target, Standing()).failing_since is not None

    def keep(self, targets: frozenset[str]) -> None:
        """Forgets the others: nobody pings them any more."""
        with self._lock:
            self._standing = {name: one for name, one in self._standing.items() if name in targets}
            self._said &= targets

    def standings(self, targets: frozenset[str]) -> Mapping[str, Standing]:
        """Of each of these, whether it was pinged yet or not."""
        with self._lock:
            return {name: self._standing.get(name, Standing()) for name in sorted(targets)}

    def remarks(self, now: datetime) -> list[Remark]:
        """What has not been reached for some minutes."""
        with self._lock:
            standing = sorted(self._standing.items())
        return [
            Remark("ping", _words(name, one), one.failing_since, None if name == DAEMON else f"schedctl show {name}")
            for name, one in standing
            if one.failing_since is not None and now - one.failing_since >= TOLD_AFTER
        ]


def _words(target: str, standing: Standing) -> str:
    whose = "this daemon (SCHEDULER_PING_URL)" if target == DAEMON else f"job {target} (heartbeat.ping_url)"
    return f"the dead man's switch of {whose} does not take pings: {standing.reason}"
