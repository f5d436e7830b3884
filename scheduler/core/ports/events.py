"""Events in the store: the inbox, and what was refused at its door."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from scheduler.core.compensator import Window
from scheduler.core.event import Event, Known, NewEvent, Reject


class Events(Protocol):
    def add(self, events: Sequence[NewEvent]) -> dict[tuple[str, str], tuple[int, bool]]:
        """Stores those that are new, in this order; (seq, whether it is new) by (source, id). Of one that is there,
        only `webhook_at`, `scan_at` and `duplicates` change. The unique index decides, never a look before."""
        ...

    def listed(self, job: str, seqs: Collection[int], now: datetime) -> None:
        """The scan job `job` has found these events in its list. `add` says so itself of what `found_by` hands in."""
        ...

    def newest(self, source: str, subjects: Collection[str]) -> Mapping[str, tuple[datetime, str]]:
        """Per subject, of the stored events that are not held: the greatest (when it occurred, id), where an event
        without a time counts from when it was received; one query."""
        ...

    def held(self, sources: Collection[str], limit: int, *, after: int = 0) -> list[Event]:
        """Events of these sources that are held, with bodies, oldest first by `seq`, those beyond `after`; a look costs
        nothing while there are none."""
        ...

    def release(self, seqs: Collection[int]) -> set[int]:
        """These are held no longer; those of them that were until now."""
        ...

    def get(self, source: str, event: str) -> Event | None:
        """With its body."""
        ...

    def by_seq(self, seqs: Collection[int]) -> dict[int, Event]:
        """With bodies."""
        ...

    def known(self, source: str, ids: Collection[str], job: str = "") -> Mapping[str, Known]:
        """Those of these ids that the inbox has, as the scan job `job` sees them; one query."""
        ...

    def unlisted(self, source: str, occurred: Window, came: Window, job: str, limit: int) -> tuple[int, list[str]]:
        """Events that came by webhook, were not made up (event.MADE_UP), were in no list that `job` has read, and
        occurred in `occurred` or, if they do not say when they did, came in `came` (both ends included): how many, and
        the ids of up to `limit`, those with a time first, each oldest first."""
        ...

    def reject(self, rejects: Sequence[Reject], keep: int, size: int) -> None:
        """Keeps them, in this order, and of each source and reason the newest `keep`, or fewer if their bodies have
        more than `size` bytes, but always one; the oldest that is kept tells how many were `dropped`. `seq` is not
        read."""
        ...

    def rejects(self, source: str, limit: int, after: int = 0, since: datetime | None = None) -> list[Reject]:
        """Those of `seq` greater than `after` that came at `since` or later and were not accepted, oldest first."""
        ...

    def accept(self, seqs: Collection[int], now: datetime) -> None:
        """These refused requests were verified again, and stored."""
        ...

    def sources(self) -> list[str]:
        """Of which there are events, in the order of their names."""
        ...

    def prune(self, source: str, keep: timedelta, now: datetime, limit: int) -> int:
        """Deletes events and refused requests received longer than `keep` ago, at most `limit`; the number. Never an
        event of which a run is unfinished or a dead letter, nor one that is held."""
        ...

    def forgotten(self, source: str) -> datetime | None:
        """Of events that were received later than this every id is known (None: of all). Read after `known` it holds
        for what that did not find."""
        ...
