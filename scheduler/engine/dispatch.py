"""Gathers what is known of the jobs that people are told of, and makes the messages."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from scheduler.core.channel import Message
from scheduler.core.job import Configuration
from scheduler.core.last_line import last_line
from scheduler.core.model import Run
from scheduler.core.news import LISTED, Place, digest, message
from scheduler.core.news_words import Facts
from scheduler.core.notifying import Parcel
from scheduler.core.queries import JobView, Queries
from scheduler.core.tiding import Kind, Tiding

_BLAMES = frozenset({Kind.MISSED, Kind.SCAN_OVERDUE, Kind.FAILING})


def messages(
    parcels: Sequence[Parcel], queries: Queries, configuration: Configuration, place: Place, now: datetime
) -> list[Message]:
    """One per parcel, with what the ledger says now."""
    return [_message(one, queries, configuration, place, now) for one in parcels]


def _message(parcel: Parcel, queries: Queries, configuration: Configuration, place: Place, now: datetime) -> Message:
    tidings = [one.tiding for one in parcel.entries]
    told = tidings[:LISTED]
    views = {view.state.name: view for view in queries.jobs(now, {one.job for one in told})}
    facts = [(one, _facts(one, views.get(one.job), queries, configuration)) for one in told]
    if len(tidings) == 1:
        return message(*facts[0], place, now)
    return digest(facts, tidings[LISTED:], place, now)


def _facts(tiding: Tiding, view: JobView | None, queries: Queries, configuration: Configuration) -> Facts:
    run = _run(tiding, view, queries)
    return Facts(
        job=configuration.jobs.get(tiding.job),
        run=run,
        last_line=None if run is None else last_line(queries.output(run.id)),
        last_success=None if view is None else view.state.last_success_at,
        failures=0 if view is None else view.state.consecutive_failures,
    )


def _run(tiding: Tiding, view: JobView | None, queries: Queries) -> Run | None:
    """The run that it is about; of a miss the one to blame, if any has failed or is still on its way."""
    if tiding.run is not None:
        detail = queries.run(tiding.run)
        return None if detail is None else detail.run
    if view is None or tiding.kind not in _BLAMES:
        return None
    return view.last_failure or next(iter(view.running), None)
