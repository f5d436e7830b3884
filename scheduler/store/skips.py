"""Ranges of instants that will not run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import bindparam, func, select, update

from scheduler.core.model import Skip
from scheduler.store import tables as t
from scheduler.store.insert import pruned_before
from scheduler.store.rows import skip_of
from scheduler.store.session import Session


@dataclass(slots=True)
class _Range:
    """A row to be: `id` None while it is not in the database."""

    skip: Skip
    id: int | None = None
    changed: bool = True

    def takes(self, one: Skip) -> bool:
        same = (one.reason, one.blocked_by) == (self.skip.reason, self.skip.blocked_by)
        return same and one.first > self.skip.last

    def extend(self, one: Skip) -> None:
        self.skip = replace(
            self.skip, last=one.last, count=self.skip.count + one.count, detail=one.detail or self.skip.detail
        )
        self.changed = True


def skip(session: Session, skips: Sequence[Skip], *, apart: bool = False) -> None:
    """Records them in this order. One that follows directly on the job's last entry, with the same reason and blocker,
    extends that row. Instants before the job's `pruned_before` are left out: what was there is gone from the ledger.

    `apart`: they lie somewhere in the past, so each is a row of its own, and no row of their jobs grows any more."""
    jobs = {one.job for one in skips}
    if not jobs:
        return
    session.lock_jobs(jobs)
    edges = pruned_before(session, jobs)
    tails = {} if apart else _tails(session, jobs)
    ranges = list(tails.values())
    for one in skips:
        if one.job in edges and one.first < edges[one.job]:
            continue
        tail = tails.get(one.job)
        if tail is not None and tail.takes(one):
            tail.extend(one)
            continue
        ranges.append(_Range(one))
        # an older instant is an entry of its own; the tail stays what it is
        if not apart and (tail is None or one.first > tail.skip.last):
            tails[one.job] = ranges[-1]
    _write(session, ranges, tails)
    if apart:
        session.write(update(t.jobs).where(session.among(t.jobs.c.name, jobs)).values(last_skip_id=None))


def _tails(session: Session, jobs: set[str]) -> dict[str, _Range]:
    query = (
        select(t.skips)
        .join(t.jobs, t.jobs.c.last_skip_id == t.skips.c.id)
        .where(session.among(t.jobs.c.name, jobs))
        .order_by(t.skips.c.id)
    )
    return {row.job: _Range(skip_of(row), row.id, changed=False) for row in session.rows(query)}


def _write(session: Session, ranges: Sequence[_Range], tails: dict[str, _Range]) -> None:
    extended = (
        update(t.skips)
        .where(t.skips.c.id == bindparam("row"))
        .values(last=bindparam("new_last"), count=bindparam("new_count"), detail=bindparam("new_detail"))
    )
    session.write(
        extended,
        [
            {"row": one.id, "new_last": one.skip.last, "new_count": one.skip.count, "new_detail": one.skip.detail}
            for one in ranges
            if one.id is not None and one.changed
        ],
    )
    fresh = [one for one in ranges if one.id is None]
    newest = {job: one for job, one in tails.items() if one.id is None}
    # a job's newest range comes last, so that the greatest id is its own
    fresh.sort(key=lambda one: newest.get(one.skip.job) is one)
    session.write(t.skips.insert(), [_row(one.skip) for one in fresh])
    if newest:
        query = (
            select(t.skips.c.job, func.max(t.skips.c.id))
            .where(session.among(t.skips.c.job, newest))
            .group_by(t.skips.c.job)
        )
        session.write(
            update(t.jobs).where(t.jobs.c.name == bindparam("job")).values(last_skip_id=bindparam("id")),
            [{"job": job, "id": newest_id} for job, newest_id in sorted(session.rows(query).all())],
        )


def _row(one: Skip) -> dict[str, Any]:
    return {
        "job": one.job,
        "reason": one.reason.value,
        "first": one.first,
        "last": one.last,
        "count": one.count,
        "blocked_by": one.blocked_by,
        "detail": one.detail,
    }
