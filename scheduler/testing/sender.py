"""Sends webhooks as providers do: most of them once and at once, the rest not at all, twice, late or out of order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import httpx

from scheduler.testing.dialects import Dialect
from scheduler.testing.facts import Fact
from scheduler.testing.faults import Faults, Luck


@dataclass(frozen=True, slots=True, order=True)
class Sending:
    """One webhook to send, `after` its event occurred."""

    due: datetime
    fact: Fact


def plan(facts: Iterable[Fact], faults: Faults, luck: Luck) -> list[Sending]:
    """What is sent, and when, the first first; what is dropped is not in it."""
    sent = [one for one in facts if not luck.strikes(faults.drop, "drop", one.number)]
    dues = [one.at + _delay(one, faults, luck) for one in sent]
    for index in range(len(sent) - 1):
        if luck.strikes(faults.reorder, "reorder", sent[index].number):
            dues[index], dues[index + 1] = dues[index + 1], dues[index]
    planned = [Sending(due, one) for due, one in zip(dues, sent, strict=True)]
    again = [
        Sending(one.due + timedelta(seconds=1), one.fact)
        for one in planned
        if luck.strikes(faults.duplicate, "duplicate", one.fact.number)
    ]
    return sorted([*planned, *again])


def _delay(fact: Fact, faults: Faults, luck: Luck) -> timedelta:
    if not luck.strikes(faults.delay, "delay", fact.number):
        return timedelta(0)
    return faults.delay_by * (0.1 + 0.9 * luck.number("how late", fact.number))


@dataclass(slots=True)
class Sender:
    """`statuses`: how often each answer came (0: none); `sent`: how often each id was; `accepted`: ids that were
    answered 2xx at least once."""

    url: str
    dialect: Dialect
    secret: str
    statuses: Counter[int] = field(default_factory=Counter)
    sent: Counter[str] = field(default_factory=Counter)
    accepted: set[str] = field(default_factory=set)
    _client: httpx.Client = field(default_factory=lambda: httpx.Client(timeout=10.0, trust_env=False))

    def send(self, fact: Fact, *, now: datetime) -> int:
        """Signs it now and posts it once; the status of the answer, 0 if there was none."""
        signed = self.dialect.signed(fact, secret=self.secret, now=now, url=self.url)
        self.sent[fact.id] += 1
        address = f"{self.url}?{signed.query}" if signed.query else self.url
        try:
            status = self._client.post(address, content=signed.body, headers=dict(signed.headers)).status_code
        except httpx.HTTPError:
            status = 0
        self.statuses[status] += 1
        if 200 <= status < 300:
            self.accepted.add(fact.id)
        return status

    def close(self) -> None:
        self._client.close()
