"""External jobs: their runs are what they tell, their deadline is that of their schedule."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from scheduler.core.errors import NotFound, Refused, Unavailable
from scheduler.core.model import ELSEWHERE, Cause, Output, Status
from scheduler.core.sign import LONGEST_TEXT, Sign, Word
from scheduler.engine.orphans import close_orphans
from scheduler.engine.signs import BACKSTOP, EVERY
from scheduler.store.store import SqlStore
from tests.engine.doubles import START
from tests.engine.rig import Rig, at, jobs

HOURLY: dict[str, Any] = {"external": True, "schedule": "0 * * * *", "grace": "15m"}
RID = "0198b6a2-3f4e-7c31-9d27-5a1b2c3d4e5f"


@pytest.fixture
def rig(store: SqlStore) -> Rig:
    return Rig(store, jobs({"a": HOURLY, "ours": {"schedule": "30 * * * *"}}))


def tell(rig: Rig, word: Word = Word.SUCCESS, job: str = "a", **how: Any) -> str | None:
    return rig.signs.take(Sign(job, word, author="ping:db7", **how)).run


def output(rig: Rig, run: str) -> Output:
    with rig.store.queries() as queries:
        found: Output | None = queries.output(run)
    assert found is not None
    return found


def test_nothing_of_it_is_planned_and_its_silence_is_seen(rig: Rig) -> None:
    assert rig.state("a").next_due_at is None
    assert rig.state("a").deadline_at == at(9, 15)
    for _ in range(80):
        rig.tick(minutes=1)
    assert rig.runs("a") == []
    assert rig.skips("a") == []
    assert rig.state("a").deadline_at == at(9, 15)
    report = rig.audit()
    assert [one.job for one in report.jobs] == ["ours"]
    assert report.clean
    rig.finish()
    rig.auditor.tick(rig.clock.now())
    rig.tick(hours=2)
    rig.auditor.tick(rig.clock.now())
    assert rig.skips("a") == []


def test_a_run_that_tells_its_start_and_its_end(rig: Rig) -> None:
    rig.tick(hours=1, seconds=3)
    begun = tell(rig, Word.START, rid=RID)
    assert begun is not None
    run = rig.run(begun)
    assert (run.status, run.cause, run.node, run.lock, run.queue) == (Status.RUNNING, Cause.API, ELSEWHERE, None, "")
    assert (run.scheduled_for, run.started_at, run.author, run.key) == (
        at(9),
        at(9, 0, 3),
        "ping:db7",
        f"ping:{RID}",
    )
    rig.turn(minutes=4)
    assert tell(rig, Word.SUCCESS, rid=RID, exit_code=0, text=b"42 rows\n") == begun
    run = rig.run(begun)
    assert (run.status, run.reason, run.exit_code, run.error, run.took) == (Status.COMPLETED, None, 0, None, 240.0)
    assert run.finished_at == at(9, 4, 3)
    (attempt,) = rig.detail(begun).attempts
    assert (attempt.outcome, attempt.exit_code, attempt.took, attempt.node) == ("completed", 0, 240.0, ELSEWHERE)
    assert output(rig, begun).tail == b"42 rows\n"
    assert rig.state("a").deadline_at == at(10, 15)
    assert [one["run"] for one in rig.named("run.started") if one["job"] == "a"] == [begun]
    assert [one["status"] for one in rig.named("run.settled") if one["job"] == "a"] == ["COMPLETED"]


def test_with_rid_everything_may_be_told_again_and_in_any_order(rig: Rig) -> None:
    rig.turn(hours=1)
    ended = tell(rig, Word.FAIL, rid=RID, exit_code=3)
    assert rig.signs.take(Sign("a", Word.START, rid=RID)).new is False
    assert rig.signs.take(Sign("a", Word.SUCCESS, rid=RID)).new is False
    (run,) = rig.runs("a")
    assert (run.id, run.status, run.reason, run.exit_code, run.error) == (
        ended,
        Status.FAILED,
        "exit",
        3,
        "exit code 3",
    )
    assert rig.state("a").consecutive_failures == 1
    assert rig.state("a").deadline_at == at(9, 15)


def test_runs_with_rids_go_side_by_side(rig: Rig) -> None:
    first, second = tell(rig, Word.START, rid=RID), tell(rig, Word.START, rid=RID.replace("0198", "0199"))
    assert first != second
    assert tell(rig, rid=RID) == first
    assert rig.statuses("a") == ["COMPLETED", "RUNNING"]


def test_what_has_no_rid_is_not_about_a_run_that_has_one(rig: Rig) -> None:
    with_rid = tell(rig, Word.START, rid=RID)
    assert tell(rig) != with_rid
    assert tell(rig, Word.START) != with_rid
    assert rig.statuses("a") == ["RUNNING", "COMPLETED", "RUNNING"]


def test_without_rid_a_start_gives_up_the_one_before(rig: Rig) -> None:
    first = tell(rig, Word.START)
    rig.turn(minutes=5)
    second = tell(rig, Word.START)
    assert first is not None
    lost = rig.run(first)
    assert (lost.status, lost.reason, lost.lost) == (Status.FAILED, "lost", 1)
    assert lost.error == "it told no end before the next one began"
    assert tell(rig) == second
    assert rig.statuses("a") == ["FAILED", "COMPLETED"]
    assert tell(rig) not in (first, second)


def test_an_end_without_a_start_is_a_run_of_its_own(rig: Rig) -> None:
    rig.turn(hours=1, minutes=2)
    run = rig.run(tell(rig) or "")
    assert (run.status, run.scheduled_for, run.started_at, run.took) == (Status.COMPLETED, at(9), at(9, 2), None)


def test_how_long_it_took_and_how_long_ago_it_was_are_believed(rig: Rig) -> None:
    rig.turn(hours=1, minutes=40)
    told = tell(rig, took=timedelta(minutes=30, seconds=-10), ago=timedelta(seconds=20))
    run = rig.run(told or "")
    assert (run.started_at, run.finished_at, run.took) == (at(9, 9, 50), at(9, 39, 40), 1790.0)
    assert run.scheduled_for == at(9)


def test_it_fails_with_and_without_a_code(rig: Rig) -> None:
    run = rig.run(tell(rig, Word.FAIL) or "")
    assert (run.status, run.reason, run.exit_code, run.error) == (
        Status.FAILED,
        "error",
        None,
        "it told that it failed",
    )
    run = rig.run(tell(rig, Word.FAIL, exit_code=255) or "")
    assert (run.reason, run.exit_code) == ("exit", 255)


# ------------------------------------------------------------ deadlines


@pytest.mark.parametrize(
    ("begins", "ends", "settled"),
    [
        (at(9, 0, 5), at(9, 4), at(9)),
        (at(8, 59, 0), at(9, 1), at(9)),
        (at(8, 58, 59), at(9, 1), at(8, 58, 59)),
        (at(9, 15), at(9, 20), at(9)),
        (at(9, 15, 1), at(9, 20), at(9, 15, 1)),
        (at(9, 0), at(10, 40), at(9)),
        (at(8, 59, 30), at(8, 59, 50), at(9)),
    ],
)
def test_what_a_success_settles(rig: Rig, begins: datetime, ends: datetime, settled: datetime) -> None:
    rig.turn(seconds=(begins - START).total_seconds())
    tell(rig, Word.START)
    rig.turn(seconds=(ends - begins).total_seconds())
    tell(rig)
    state = rig.state("a")
    assert state.settled_until == settled
    following = at(9) if settled < at(9) else at(10)
    assert state.deadline_at == following + timedelta(minutes=15)


def test_a_second_success_of_one_instant_pays_for_no_other(rig: Rig) -> None:
    rig.turn(minutes=59, seconds=40)
    tell(rig, Word.FAIL)
    rig.turn(seconds=5)
    tell(rig)
    assert [run.scheduled_for for run in rig.runs("a")] == [at(9), at(9)]
    assert rig.state("a").deadline_at == at(10, 15)


def test_a_late_success_ends_the_miss(rig: Rig) -> None:
    rig.turn(hours=3, minutes=30)
    assert rig.state("a").deadline_at == at(9, 15)
    tell(rig)
    assert rig.state("a").deadline_at == at(12, 15)


def test_a_night_in_which_the_clock_is_turned(store: SqlStore) -> None:
    nightly = {"external": True, "schedule": "30 2 * * *", "timezone": "Europe/Paris", "grace": "30m"}
    rig = Rig(store, jobs({"a": nightly}))
    rig.turn(seconds=(at(0, 45, day=29) - START).total_seconds())
    tell(rig)  # a success of the evening: 02:45 in Paris
    assert rig.state("a").deadline_at == at(1, 30, day=29)  # 02:30 does not exist there: 03:00 is 01:00 UTC
    rig.turn(minutes=14, seconds=30)
    tell(rig)
    assert rig.state("a").deadline_at == at(0, 30, day=30) + timedelta(minutes=30)


def test_a_success_while_paused_is_recorded_and_it_stays_paused(rig: Rig) -> None:
    rig.desk.pause(["a"], until=None, reason="move", author="ana")
    assert rig.state("a").deadline_at is None
    rig.turn(hours=2)
    run = rig.run(tell(rig) or "")
    assert run.status is Status.COMPLETED
    assert rig.state("a").deadline_at is None
    assert rig.desk.resume(["a"], author="ana") == ["a"]
    assert rig.state("a").deadline_at == at(11, 15)


# ------------------------------------------------------------ what it prints


def test_what_it_says_meanwhile_is_kept_before_what_it_says_at_the_end(rig: Rig) -> None:
    run = tell(rig, Word.START, text=b"begin")
    assert tell(rig, Word.LOG, text=b"half\n") == run
    assert rig.statuses("a") == ["RUNNING"]
    tell(rig, text=b"end\n")
    kept = output(rig, run or "")
    assert (kept.head, kept.tail, kept.omitted, kept.complete) == (b"", b"begin\nhalf\nend\n", 0, True)
    assert tell(rig, Word.LOG, text=b"p.s.") == run
    assert output(rig, run or "").tail.endswith(b"end\np.s.")


def test_the_last_bytes_are_kept(rig: Rig) -> None:
    run = tell(rig, Word.START, text=b"a" * LONGEST_TEXT)
    tell(rig, Word.LOG, text=b"b" * 100)
    kept = output(rig, run or "")
    assert (len(kept.tail), kept.omitted, kept.tail[-100:]) == (LONGEST_TEXT, 101, b"b" * 100)
    tell(rig, text=b"c" * LONGEST_TEXT, omitted=7)
    kept = output(rig, run or "")
    assert (kept.tail, kept.omitted) == (b"c" * LONGEST_TEXT, 101 + LONGEST_TEXT + 7)


def test_a_line_of_which_no_run_is_known(rig: Rig) -> None:
    assert tell(rig, Word.LOG, text=b"x") is None
    assert rig.runs("a") == []


# ------------------------------------------------------------ runs that tell no end


def test_a_run_that_tells_no_end_outlives_its_daemon_and_fails_after_its_timeout(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": HOURLY | {"timeout": "2h"}}))
    run = tell(rig, Word.START) or ""
    with rig.store.begin() as tx:
        (node,) = tx.nodes.all()
        assert tx.nodes.declare_dead(node.id, node.beat, rig.clock.now())
    close_orphans(rig.store, rig.in_force, rig.bus, rig.clock.now())
    other = Rig(store, rig.text, rig.clock)
    other.invariants.tick(rig.clock.now())
    assert other.invariants.broken == {}
    other.tick(hours=2)
    assert other.signs.tick(other.clock.now()) == 0
    assert other.run(run).status is Status.RUNNING
    other.turn(seconds=EVERY)
    assert other.signs.tick(other.clock.now()) == 1
    assert other.signs.tick(other.clock.now()) == 0
    ended = other.run(run)
    assert (ended.status, ended.reason, ended.error) == (
        Status.FAILED,
        "timeout",
        "it told no end within its timeout of 2h",
    )
    assert other.state("a").consecutive_failures == 1


@pytest.mark.parametrize("rid", [RID, None])
def test_the_end_of_a_run_that_was_given_up_counts_once(store: SqlStore, rid: str | None) -> None:
    rig = Rig(store, jobs({"a": HOURLY | {"timeout": "30m"}}))
    rig.turn(hours=1)
    run = tell(rig, Word.START, rid=rid) or ""
    rig.turn(minutes=40)
    rig.signs.tick(rig.clock.now())
    late = tell(rig, rid=rid) or ""
    assert late != run
    assert rig.statuses("a") == ["FAILED", "COMPLETED"]
    if rid is not None:
        ended = rig.run(late)
        assert (ended.scheduled_for, ended.started_at) == (at(9), at(9))
        assert ended.note == f"the late end of run {run[-8:]}"
        assert rig.signs.take(Sign("a", Word.SUCCESS, rid=rid)).new is False
    assert rig.state("a").deadline_at == at(10, 15)


def test_it_takes_no_place_in_any_queue(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": HOURLY, "b": {}}, queues={"default": {"concurrency": 1}}), slots=1)
    tell(rig, Word.START)
    rig.desk.run_now("b", author="ana")
    rig.tick()
    assert rig.statuses("b") == ["RUNNING"]


# ------------------------------------------------------------ changes of the file


def test_a_job_that_moves_away_and_comes_back(rig: Rig) -> None:
    away = jobs({"a": HOURLY, "ours": HOURLY})
    rig.tick(hours=1, minutes=30)
    rig.finish()
    rig.tick(minutes=40)
    rig.reload(away)
    assert rig.state("ours").next_due_at is None
    assert rig.state("ours").deadline_at == at(11, 15)
    run = tell(rig, Word.START, job="ours") or ""
    rig.tick(hours=5)
    assert [one.cause for one in rig.runs("ours")] == [Cause.SCHEDULE, Cause.API]
    rig.reload(jobs({"a": HOURLY, "ours": {"schedule": "30 * * * *"}}))
    assert rig.state("ours").next_due_at == at(15, 30)
    rig.turn(seconds=EVERY)
    rig.signs.tick(rig.clock.now())
    ended = rig.run(run)
    assert (ended.status, ended.reason) == (Status.CANCELED, "its job runs here now")
    rig.tick(hours=1)
    assert rig.runs("ours")[-1].scheduled_for == at(15, 30)
    assert rig.audit().clean


def test_another_schedule_is_expected_from_now_on(rig: Rig) -> None:
    rig.turn(minutes=30)
    rig.reload(jobs({"a": HOURLY | {"schedule": "*/10 * * * *"}, "ours": {"schedule": "30 * * * *"}}))
    assert rig.state("a").deadline_at == at(8, 55)


def test_the_run_of_a_job_that_is_gone_ends_some_time(rig: Rig) -> None:
    run = tell(rig, Word.START) or ""
    rig.reload(jobs({"ours": {"schedule": "30 * * * *"}}))
    with pytest.raises(NotFound):
        tell(rig)
    rig.turn(seconds=BACKSTOP.total_seconds() + EVERY)
    assert rig.signs.tick(rig.clock.now()) == 1
    assert rig.run(run).reason == "timeout"


# ------------------------------------------------------------ what is refused


def test_only_jobs_that_run_elsewhere_tell_how_it_went(rig: Rig) -> None:
    for word in Word:
        with pytest.raises(Refused, match="runs here"):
            tell(rig, word, job="ours")
        with pytest.raises(NotFound):
            tell(rig, word, job="nobody")


@pytest.mark.parametrize(
    "act",
    [
        lambda rig, run: rig.desk.run_now("a", author="ana"),
        lambda rig, run: rig.desk.retry(run, author="ana"),
        lambda rig, run: rig.desk.backfill("a", None, rig.clock.now(), most=10, dry_run=False, reason="", author="ana"),
    ],
)
def test_nothing_here_can_start_it(rig: Rig, act: Callable[[Rig, str], object]) -> None:
    run = tell(rig, Word.FAIL) or ""
    rig.turn(hours=2)
    with pytest.raises(Refused, match="runs somewhere else"):
        act(rig, run)
    assert len(rig.runs("a")) == 1


def test_nothing_here_can_end_it(rig: Rig) -> None:
    run = tell(rig, Word.START) or ""
    with pytest.raises(Refused, match="not on any node of ours"):
        rig.desk.cancel(run, author="ana")
    assert rig.run(run).cancel is None


def test_a_node_that_stands_aside_takes_none(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": HOURLY}))
    other = Rig(store, rig.text, rig.clock)
    other.reload(jobs({"a": HOURLY, "new": HOURLY}))
    assert tell(rig, job="new") is not None  # loaded on the way
    other.reload(jobs({"a": HOURLY, "newer": HOURLY}), drop_pending=True)
    rig.in_force.stand_aside("too new", rig.clock.now())
    with pytest.raises(Unavailable):
        tell(rig)


def test_what_follows_an_external_job(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": HOURLY, "b": {"after": "a"}}))
    run = tell(rig, text=b"x")
    (followed,) = rig.runs("b")
    assert (followed.key, followed.status) == (f"after:{run}", Status.PENDING)


def test_what_is_told_many_times_at_once_is_one_run(rig: Rig) -> None:
    words = [Word.START, Word.SUCCESS, Word.LOG, Word.START, Word.SUCCESS, Word.FAIL]
    together = threading.Barrier(len(words))
    told: list[str | Exception | None] = []

    def one(word: Word) -> None:
        together.wait(20)
        try:
            told.append(tell(rig, word, rid=RID, text=b"x"))
        except Exception as error:
            told.append(error)

    threads = [threading.Thread(target=one, args=(word,)) for word in words]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    (run,) = rig.runs("a")
    assert run.status.final
    assert set(told) <= {run.id, None}
    assert len(told) == len(words)
