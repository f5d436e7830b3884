"""What a person puts right afterwards: a miss that is known, instants that are run after all, letters let go."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from scheduler.core.commands import Backfilled
from scheduler.core.errors import InvalidInput, NotFound, Refused
from scheduler.core.model import Cause
from scheduler.core.stamp import to_text
from scheduler.store.store import SqlStore
from tests.engine.doubles import START
from tests.engine.rig import Rig, at, failed, jobs

HOURLY = {"schedule": "0 * * * *", "grace": "30m", "catch_up": "none"}


@pytest.fixture
def rig(store: SqlStore) -> Rig:
    return Rig(store, jobs({"a": HOURLY, "b": {}, "c": {**HOURLY, "overlap": "allow"}}))


def fill(
    rig: Rig, first: datetime, last: datetime, job: str = "a", most: int = 100, dry_run: bool = False
) -> Backfilled:
    return rig.desk.backfill(job, first, last, most=most, dry_run=dry_run, reason="again", author="me")


# ------------------------------------------------------------ ack


def test_a_miss_that_is_known_is_expected_no_more(rig: Rig) -> None:
    rig.tick(hours=1)
    rig.finish(failed())
    rig.tick(minutes=45)
    assert rig.state("a").deadline_at == at(9, 30)
    acked = rig.desk.ack("a", reason="moving", author="me")
    assert (acked.ack.first, acked.ack.last, acked.deadline) == (at(9), at(9, 45), at(10, 30))
    assert rig.state("a").deadline_at == at(10, 30)
    (told,) = rig.named("job.acknowledged")
    assert (told["reason"], told["author"]) == ("moving", "me")


def test_the_next_miss_counts_again_and_a_success_settles_it(rig: Rig) -> None:
    rig.tick(hours=1)
    rig.finish(failed())
    rig.tick(minutes=45)
    rig.desk.ack("a", reason="", author="me")
    rig.tick(minutes=15)
    rig.finish(failed())
    rig.tick(minutes=40)
    assert rig.state("a").deadline_at == at(10, 30) < rig.store.now()
    second = rig.desk.ack("a", reason="", author="me")
    assert (second.ack.first, second.deadline) == (at(10), at(11, 30))
    rig.tick(minutes=20)
    rig.finish()
    assert rig.state("a").deadline_at == at(12, 30)


def test_several_misses_are_known_at_once(rig: Rig) -> None:
    for _ in range(3):
        rig.tick(hours=1)
        rig.finish(failed())
    acked = rig.desk.ack("a", reason="", author="me")
    assert (acked.ack.first, acked.deadline) == (at(9), at(12, 30))


def test_an_ack_does_not_count_as_a_success(rig: Rig) -> None:
    rig.tick(hours=1)
    rig.finish(failed())
    before = rig.state("a")
    rig.desk.ack("a", reason="", author="me")
    after = rig.state("a")
    assert (after.settled_until, after.last_success_at) == (before.settled_until, before.last_success_at)
    assert after.consecutive_failures == 1


def test_what_was_not_missed_cannot_be_acknowledged(rig: Rig) -> None:
    with pytest.raises(Refused, match="a has missed nothing: it has succeeded since its last instant"):
        rig.desk.ack("a", reason="", author="me")
    rig.tick(hours=1)
    rig.finish()
    with pytest.raises(Refused, match="missed nothing"):
        rig.desk.ack("a", reason="", author="me")
    with pytest.raises(Refused, match="nothing is expected of it"):
        rig.desk.ack("b", reason="", author="me")
    with pytest.raises(NotFound, match="nope"):
        rig.desk.ack("nope", reason="", author="me")


def test_acks_that_are_over_are_forgotten(rig: Rig) -> None:
    for hour in range(4):
        rig.tick(hours=1)
        rig.finish(failed() if hour % 2 == 0 else None)
        if hour % 2 == 0:
            rig.desk.ack("a", reason=str(hour), author="me")
    with rig.store.read() as tx:
        kept = tx.jobs.acks(["a"], START - timedelta(days=1))
    assert [ack.reason for ack in kept] == ["2"]


# ------------------------------------------------------------ backfill


def downtime(rig: Rig, hours: int = 5) -> None:
    """Nothing was there at 09:00 … : all but what is due now is missed."""
    rig.turn(hours=hours, minutes=5)
    rig.tick()
    assert rig.statuses("a") == []


def test_missed_instants_run_in_order_and_the_ledger_stays_true(rig: Rig) -> None:
    downtime(rig)
    filled = fill(rig, at(9), at(23))
    assert filled.instants == tuple(at(hour) for hour in range(9, 14))
    assert [run.scheduled_for for run in rig.runs("a")] == list(filled.instants)
    assert {(run.cause, run.note, run.author) for run in rig.runs("a")} == {(Cause.BACKFILL, "again", "me")}
    assert rig.runs("a")[0].key == f"backfill:{to_text(at(9))}"
    order = []
    for _ in range(5):
        rig.tick()
        (run,) = rig.executor.of("a")
        order.append(rig.run(run).scheduled_for)
        rig.finish()
    assert order == list(filled.instants)
    report = rig.audit(job="a").jobs[0]
    assert (report.clean, report.expected, report.ran, report.skipped) == (True, 5, 0, {"missed": 5})


def test_a_backfilled_success_settles_its_instant(rig: Rig) -> None:
    downtime(rig)
    assert rig.state("a").deadline_at == at(9, 30)
    fill(rig, at(9), at(10))
    for _ in range(2):
        rig.tick()
        rig.finish()
    assert rig.state("a").deadline_at == at(11, 30)


def test_what_completed_or_is_unfinished_is_left_out(rig: Rig) -> None:
    rig.tick(hours=1)
    rig.finish()
    rig.tick(hours=1)
    rig.finish(failed())
    rig.tick(hours=1)
    filled = fill(rig, at(9), at(11))
    assert filled.instants == (at(10),)
    assert [(one.instant, one.why) for one in filled.left_out] == [(at(9), "completed"), (at(11), "unfinished")]
    assert filled.left_out[1].run == rig.runs("a")[2].id
    with pytest.raises(Refused, match="nothing to backfill: 1 completed, 2 unfinished"):
        fill(rig, at(9), at(11))


def test_what_failed_again_may_be_filled_again(rig: Rig) -> None:
    downtime(rig)
    for number in range(3):
        fill(rig, at(9), at(9))
        rig.tick()
        rig.finish(failed() if number < 2 else None)
    keys = [run.key for run in rig.runs("a")]
    assert keys == [f"backfill:{to_text(at(9))}{suffix}" for suffix in ("", "#2", "#3")]
    with pytest.raises(Refused, match="1 completed"):
        fill(rig, at(9), at(9))


def test_a_dry_run_changes_nothing(rig: Rig) -> None:
    downtime(rig)
    filled = fill(rig, at(9), at(23), dry_run=True)
    assert (len(filled.instants), filled.runs) == (5, ())
    assert rig.runs("a") == []
    nothing = fill(rig, at(8, 10), at(8, 30), dry_run=True)
    assert (nothing.instants, nothing.left_out) == ((), ())


def test_what_has_not_come_yet_is_the_planners(rig: Rig) -> None:
    downtime(rig)
    rig.turn(minutes=55, seconds=30)  # 14:00:30, and not planned yet
    assert fill(rig, at(13), at(23), dry_run=True).instants == (at(13),)
    rig.tick()
    assert fill(rig, at(13), at(23), dry_run=True).left_out[0].why == "unfinished"


def test_too_many_are_refused_with_the_way_to_have_them(rig: Rig) -> None:
    downtime(rig)
    with pytest.raises(Refused, match=r"5 instants would run, at most 4.*--max 5"):
        fill(rig, at(9), at(23), most=4)
    with pytest.raises(Refused, match="more than 10000"):
        fill(rig, START - timedelta(days=3000), at(23))
    assert rig.runs("a") == []


def test_before_its_first_load_a_job_may_be_filled_too(rig: Rig) -> None:
    downtime(rig)
    filled = fill(rig, START - timedelta(hours=3), START)
    assert len(filled.runs) == 4
    for _ in range(4):
        rig.tick()
        rig.finish()
    assert rig.audit(job="a").jobs[0].clean


def test_what_history_does_not_keep_is_left_out(rig: Rig) -> None:
    downtime(rig)
    rig.tick(minutes=55)  # An occurrence runs, so the range of skips before it grows no more.
    rig.finish()
    with rig.store.begin() as tx:
        tx.runs.prune("a", timedelta(minutes=1), timedelta(0), rig.store.now(), 100)
    edge = rig.state("a").pruned_before
    assert edge is not None
    filled = fill(rig, at(9), at(13), dry_run=True)
    assert len(filled.left_out) == sum(at(hour) < edge for hour in range(9, 14)) > 0
    assert {one.why for one in filled.left_out} == {"history is no longer kept"}


def test_wrong_requests(rig: Rig) -> None:
    with pytest.raises(Refused, match="b has no schedule"):
        fill(rig, at(9), at(10), job="b")
    with pytest.raises(NotFound):
        fill(rig, at(9), at(10), job="nope")
    now, hour = rig.store.now(), timedelta(hours=1)
    with pytest.raises(InvalidInput, match="later than"):
        fill(rig, now - hour, now - 2 * hour)
    with pytest.raises(InvalidInput, match="`from` is still to come"):
        fill(rig, now + hour, now)


def test_backfilled_runs_are_not_late(rig: Rig) -> None:
    downtime(rig)
    fill(rig, at(9), at(9))
    rig.tick()
    assert [told["delay"] for told in rig.named("run.started")] == [None]


# ------------------------------------------------------------ letters and tokens


def letters(rig: Rig, count: int) -> list[str]:
    made = []
    for number in range(count):
        run, _ = rig.desk.run_now("b", author="me", payload=number, has_payload=True)
        made.append(run.id)
        rig.tick()
        rig.finish(failed(retryable=False))
    return made


def test_letters_are_let_go_one_by_one_or_all(store: SqlStore) -> None:
    rig = Rig(store, jobs({"b": {}, "c": {}}))
    made = letters(rig, 4)
    assert rig.desk.discard([made[0], "nonsense"], None, author="me") == [made[0]]
    assert rig.desk.discard([made[0]], None, author="me") == []
    assert rig.desk.discard([], "c", author="me") == []
    assert rig.desk.discard([], "b", author="me") == sorted(made[1:])
    with rig.store.queries() as queries:
        assert queries.dead_letters("b").entries == ()


def test_tokens_are_taken_from_the_bucket_of_the_queue(store: SqlStore) -> None:
    text = jobs({"a": {}}, queues={"api": {"rate": "60/m", "burst": 2}, "free": {"concurrency": 1}})
    rig = Rig(store, text)
    assert [rig.desk.take_token("api") for _ in range(3)] == [None, None, 1.0]
    rig.turn(seconds=0.25)
    assert rig.desk.take_token("api") == pytest.approx(0.75)
    rig.turn(seconds=0.75)
    assert rig.desk.take_token("api") is None
    rig.turn(hours=1)
    assert [rig.desk.take_token("api") for _ in range(3)] == [None, None, 1.0], "never more than the burst"
    with pytest.raises(Refused, match=r"no rate.*jobs\.yaml"):
        rig.desk.take_token("free")
    with pytest.raises(NotFound):
        rig.desk.take_token("nope")
