"""What becomes of an occurrence that falls due while other runs of its job are unfinished."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scheduler.core.job import CatchUp, Overlap
from scheduler.core.model import Cause, Skip, Status

from .builders import at, job, judged, pause, unfinished, words

MINUTE = timedelta(minutes=1)
NOW = at("2026-03-01 10:05:02")
DUE = at("2026-03-01 10:05")
RUNNING = unfinished("running0")
RETRYING = unfinished("retrying", Status.PENDING, attempt=1)
WAITING = unfinished("waiting0", Status.PENDING)
CATCHING_UP = unfinished("catching", Status.PENDING, Cause.CATCH_UP)
EVENT = unfinished("event000", Status.PENDING, Cause.EVENT)
MANUAL = unfinished("manual00", cause=Cause.MANUAL)
BACKFILL = unfinished("backfill", Status.PENDING, Cause.BACKFILL)


@pytest.mark.parametrize(
    ("overlap", "runs", "blocker", "cancel"),
    [
        (Overlap.SKIP, [], None, ()),
        *((Overlap.SKIP, [one], one.run, ()) for one in (RUNNING, RETRYING, WAITING, EVENT, MANUAL, BACKFILL)),
        (Overlap.QUEUE, [], None, ()),
        *((Overlap.QUEUE, [one], None, ()) for one in (RUNNING, RETRYING, EVENT, MANUAL, BACKFILL)),
        (Overlap.QUEUE, [RUNNING, WAITING], "waiting0", ()),
        (Overlap.QUEUE, [CATCHING_UP], "catching", ()),
        (Overlap.REPLACE, [], None, ()),
        (Overlap.REPLACE, [RUNNING], None, ("running0",)),
        (Overlap.REPLACE, [RETRYING], None, ("retrying",)),
        (Overlap.REPLACE, [RUNNING, WAITING], None, ("running0", "waiting0")),
        (Overlap.REPLACE, [EVENT, MANUAL, BACKFILL, CATCHING_UP], None, ()),
        (Overlap.REPLACE, [EVENT, RUNNING], None, ("running0",)),
        (Overlap.ALLOW, [RUNNING, WAITING, EVENT], None, ()),
    ],
)
def test_overlap(overlap, runs, blocker, cancel):
    found = judged(job(overlap=overlap), DUE, NOW, runs)

    assert words(found) == [f"03-01 10:05:00 {'1 overlap' if blocker else 'schedule'}"]
    assert found.cancel == cancel
    assert found.give_up == ()
    if blocker:
        (entry,) = found.entries
        assert isinstance(entry, Skip)
        assert entry.blocked_by == blocker
        state = "running" if blocker in ("running0", "manual00") else "waiting"
        assert entry.detail == f"run {blocker} is still {state}"


def test_an_occurrence_waits_for_another_jobs_lock_until_the_next_one_only():
    stuck = unfinished("stuck000", Status.PENDING, holder="foreign0")
    found = judged(job(overlap=Overlap.SKIP), DUE, NOW, [stuck])

    assert found.give_up == ("stuck000",)
    assert words(found) == ["03-01 10:05:00 schedule"]  # judged after the other was settled


@pytest.mark.parametrize("overlap", [Overlap.QUEUE, Overlap.REPLACE])
def test_what_is_given_up_neither_waits_nor_is_replaced(overlap):
    stuck = unfinished("stuck000", Status.PENDING, holder="foreign0")
    found = judged(job(overlap=overlap), DUE, NOW, [stuck])

    assert (found.give_up, found.cancel) == (("stuck000",), ())
    assert words(found) == ["03-01 10:05:00 schedule"]


@pytest.mark.parametrize("catch_up", CatchUp)
def test_a_missed_next_occurrence_also_ends_the_wait_for_a_lock(catch_up):
    stuck = unfinished("stuck000", Status.PENDING, holder="foreign0")

    assert judged(job("5 10 * * *", catch_up=catch_up), DUE, DUE + MINUTE, [stuck]).give_up == ("stuck000",)


@pytest.mark.parametrize(
    "patient",
    [
        unfinished("patient0", Status.PENDING, Cause.EVENT, holder="foreign0"),
        unfinished("patient0", Status.PENDING, Cause.CATCH_UP, holder="foreign0"),
        unfinished("patient0", Status.PENDING, Cause.MANUAL, holder="foreign0"),
        unfinished("patient0", Status.PENDING, attempt=2, holder="foreign0"),
        unfinished("patient0", Status.PENDING),
    ],
    ids=["event", "catch-up", "manual", "retry", "own job holds the lock"],
)
def test_everything_else_goes_on_waiting(patient):
    found = judged(job(overlap=Overlap.SKIP), DUE, NOW, [patient])

    assert found.give_up == ()
    assert words(found) == ["03-01 10:05:00 1 overlap"]


def test_a_wait_for_a_lock_goes_on_through_a_pause():
    stuck = unfinished("stuck000", Status.PENDING, holder="foreign0")
    found = judged(job(), DUE, NOW, [stuck], [pause(at("2026-03-01 10:00"), None)])

    assert found.give_up == ()
    assert words(found) == ["03-01 10:05:00 1 paused"]
