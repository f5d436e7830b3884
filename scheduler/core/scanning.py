"""Scans decided: what is new in a list, what it comes to, whether it proves anything. Pure.

Instants are the provider's time; only `began_at` and `received_at` are ours.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from datetime import datetime, timedelta

from scheduler.core.compensator import Coverage, ListedEvent, Page, Undecodable, Window
from scheduler.core.event import Known
from scheduler.core.scan import Counts, ScanState
from scheduler.core.source import Compensate
from scheduler.core.value_object import value_object


@value_object
class Sorted:
    """What a page holds, each event once, the oldest first: `known` are those that the inbox has, and `late` how many
    of these came by an earlier scan and still by no webhook; `missing` those that it lacks, old enough to be stored;
    `young` those that may still come by themselves."""

    missing: tuple[ListedEvent, ...]
    known: tuple[ListedEvent, ...]
    young: tuple[ListedEvent, ...]
    undecodable: tuple[Undecodable, ...]
    repeated: int
    late: int


def sort(
    page: Page, inbox: Mapping[str, Known], seen: Container[str], state: ScanState, settled: Window, job: str
) -> Sorted:
    """`inbox`: what it has of this page's ids. `seen`: ids that this scan was told before. `settled`: the part of the
    window that is old enough and of which no id is forgotten. What occurred after it is young; what occurred before is
    nobody's business: it was settled long ago, or is a hole, and its ids may be forgotten."""
    events, undecodable, repeated = _once(page.items, seen)
    missing: list[ListedEvent] = []
    known: list[ListedEvent] = []
    young: list[ListedEvent] = []
    late = 0
    for item in events:
        stored = inbox.get(item.id)
        if item.occurred_at < settled.start:
            continue
        if stored is None:
            (missing if item.occurred_at <= settled.end else young).append(item)
        elif _found_here(stored, state, job):
            repeated += 1
        else:
            known.append(item)
            late += stored.missed
    return Sorted(tuple(missing), tuple(known), tuple(young), tuple(undecodable), repeated, late)


def ids_of(page: Page) -> set[str]:
    """What to look up in the inbox."""
    return {item.id for item in page.items if isinstance(item, ListedEvent)}


def counted(before: Counts, page: Page, found: Sorted, injected: int, told: datetime) -> Counts:
    """`injected` of the missing ones were still missing when they were stored; `told` is the provider's present."""
    oldest = before.oldest_unseen
    if injected:
        ages = [told - item.occurred_at for item in found.missing]
        oldest = max([*ages, oldest or timedelta(0)])
    known = len(found.known) + len(found.missing) - injected
    return Counts(
        listed=before.listed + known + injected + len(found.young) + len(found.undecodable),
        known=before.known + known,
        injected=before.injected + injected,
        too_young=before.too_young + len(found.young),
        undecodable=before.undecodable + len(found.undecodable),
        repeated=before.repeated + found.repeated,
        late=before.late + found.late,
        pages=before.pages + 1,
        calls=before.calls + page.calls,
        throttled=before.throttled + page.throttled,
        oldest_unseen=oldest,
    )


def compared(item: ListedEvent, stored: Known, part: Window, came: Window) -> bool:
    """Whether a known event, were it not in the list, would be told of as a webhook that it lacks: `part` and `came` as
    the inbox is asked for these."""
    if stored.listed or stored.missed:
        return False
    instant, within = (stored.received_at, came) if stored.undated else (item.occurred_at, part)
    return within.start <= instant <= within.end


def doubt(coverage: Coverage, counts: Counts, unlisted: int) -> str:
    """Why a list that was read to its end still proves nothing; "" if it does."""
    if not coverage.complete:
        return coverage.why or "its compensator says that the list cannot be trusted now"
    if unlisted and not counts.listed:
        webhooks = "1 webhook" if unlisted == 1 else f"{unlisted} webhooks"
        return f"the list is empty, and {webhooks} of this time came: it is the list of something else, or switched off"
    return ""


def overdue_since(spec: Compensate, now: datetime) -> tuple[datetime, datetime]:
    """When events occurred of which a webhook that has not come is an alarm: longer ago than `alarm_after`. After a day
    nobody waits for it any more."""
    until = now - spec.alarm_after
    return until - timedelta(days=1), until


def _once(
    items: Iterable[ListedEvent | Undecodable], seen: Container[str]
) -> tuple[list[ListedEvent], list[Undecodable], int]:
    """The oldest first, so that what one page found is handled in its order."""
    events: dict[str, ListedEvent] = {}
    undecodable: list[Undecodable] = []
    repeated = 0
    for item in items:
        if isinstance(item, Undecodable):
            undecodable.append(item)
        elif item.id in events or item.id in seen:
            repeated += 1
        else:
            events[item.id] = item
    return sorted(events.values(), key=lambda one: (one.occurred_at, one.id)), undecodable, repeated


def _found_here(stored: Known, state: ScanState, job: str) -> bool:
    began = state.began_at
    return stored.found_by == job and began is not None and stored.received_at >= began
