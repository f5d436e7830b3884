"""Rows → nouns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from datetime import timedelta
from typing import Any

from sqlalchemy import Row, case, select

from scheduler.core.job import Queue
from scheduler.core.model import (
    Attempt,
    Cause,
    Generation,
    JobState,
    Node,
    Pause,
    Run,
    ScheduleVersion,
    Skip,
    SkipReason,
    Status,
    WaitsFor,
)
from scheduler.store import tables as t

RUN = tuple(t.runs.c)
"""The columns that `run_of` takes, in their order."""

_CARRIED = select(t.payloads.c.payload).where(t.payloads.c.run == t.runs.c.id).correlate(t.runs).scalar_subquery()
WHOLE_RUN = (*RUN, case((t.runs.c.has_payload, _CARRIED)).label("payload"))
"""The same with what it carries."""

_WIDTH = len(RUN)
_PLACE = {column.name: place for place, column in enumerate(RUN)}
_CAUSE, _STATUS, _WAITS_FOR = _PLACE["cause"], _PLACE["status"], _PLACE["waits_for"]

STATE = tuple(t.jobs.c[field.name] for field in fields(JobState))
"""The columns that `state_of` takes; their names are the fields of JobState."""


def run_of(row: Row[Any], payload: Any = None) -> Run:
    """By position, because thousands a second are read: the fields of Run are the columns of the table, in their order,
    and then the payload."""
    values: list[Any] = [*row[:_WIDTH], payload]
    values[_CAUSE] = Cause(values[_CAUSE])
    values[_STATUS] = Status(values[_STATUS])
    if values[_WAITS_FOR] is not None:
        values[_WAITS_FOR] = WaitsFor(values[_WAITS_FOR])
    return Run(*values)


def runs_of(rows: Iterable[Row[Any]]) -> list[Run]:
    """Without payloads."""
    return [run_of(row) for row in rows]


def whole_runs(rows: Iterable[Row[Any]]) -> list[Run]:
    """Of rows of WHOLE_RUN."""
    return [run_of(row, row[_WIDTH]) for row in rows]


def state_of(row: Row[Any]) -> JobState:
    return JobState(*row[: len(STATE)])


def node_of(row: Row[Any]) -> Node:
    values: dict[str, Any] = dict(row._mapping)
    lease, served = values["lease"], values["queues"]
    values["lease"] = None if lease is None else timedelta(seconds=lease)
    values["queues"] = None if served is None else tuple(served)
    return Node(**values)


def generation_of(row: Row[Any]) -> Generation:
    return Generation(**row._mapping)


def queue_of(row: Row[Any]) -> Queue:
    return Queue(row.name, row.concurrency, row.rate, row.burst)


def version_of(row: Row[Any]) -> ScheduleVersion:
    return ScheduleVersion(row.job, row.spec, row.valid_from, row.valid_to)


def pause_of(row: Row[Any]) -> Pause:
    return Pause(row.job, row.start, row.until, row.reason, row.author)


def skip_of(row: Row[Any]) -> Skip:
    # not by attribute: a row has a method called count
    found = row._mapping
    return Skip(
        found["job"],
        SkipReason(found["reason"]),
        found["first"],
        found["last"],
        found["count"],
        found["blocked_by"],
        found["detail"],
    )


def skip_of_run(run: Run) -> Skip:
    """A SKIPPED run as the entry that it is in the ledger."""
    assert run.scheduled_for is not None
    return Skip(run.job, SkipReason(run.reason or ""), run.scheduled_for, run.scheduled_for, 1, detail=f"run {run.id}")


def attempt_of(row: Row[Any]) -> Attempt:
    return Attempt(**row._mapping)
