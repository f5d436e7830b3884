"""What becomes of a deadline that has passed: stored once, back-dated, told once, and made up for once."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from scheduler.core.errors import DatabaseAway
from scheduler.core.source import Compensate
from scheduler.core.state import Flip, State, Why
from scheduler.engine.flips import store_flips
from scheduler.engine.vigil import PATIENCE, Vigil
from scheduler.store.store import SqlStore
from tests.engine.doubles import START, TurnedClock
from tests.engine.rig import Rig, at, failed, jobs
from tests.store.plans import statements_on

HOURLY = {"schedule": "0 * * * *", "grace": "15m"}
DAILY = {"schedule": "0 9 * * *", "grace": "15m"}
NOBODY = "nobody saw"


def flips(rig: Rig, job: str = "a") -> list[tuple[str, datetime, str]]:
    """Oldest first."""
    with rig.store.queries() as queries:
        found: list[Flip] = queries.flips(job)
    return [(str(one.new), one.at, str(one.why)) for one in reversed(found)]


def kept(rig: Rig, job: str = "a") -> tuple[str, datetime | None]:
    state = rig.state(job)
    return state.state, state.state_since


def told(rig: Rig) -> list[tuple[str, str]]:
    """What people were told, by notices: (name, job)."""
    names = ("job.missed", "job.failing", "job.recovered", "job.unknown")
    return [(one.name, one.fields["job"]) for one in rig.notices if one.name in names]


def watch(rig: Rig, until: datetime) -> None:
    """The turns of a daemon that is up until then, one every half minute."""
    while rig.clock.now() < until:
        rig.tick(seconds=min(30, (until - rig.clock.now()).total_seconds()))


# ------------------------------------------------------------ a miss


def test_a_miss_is_dated_to_its_deadline_however_late_it_is_seen(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": DAILY}))
    watch(rig, at(9, 14))
    rig.finish(failed())
    rig.tick(seconds=100)
    assert flips(rig) == [("failing", at(9, 14), "failure"), ("missed", at(9, 15), "deadline")]
    assert kept(rig) == ("missed", at(9, 15))
    assert told(rig) == [("job.failing", "a"), ("job.missed", "a")]


def test_it_is_stored_once_however_long_it_lasts(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": {**HOURLY, "catch_up": "none", "alert_after": 9}}))
    for _ in range(4):
        rig.tick(minutes=59)
        rig.tick(minutes=1)
        rig.finish(failed())
        rig.tick(minutes=1)
    assert flips(rig) == [("missed", at(9, 15), "deadline")]
    assert rig.state("a").deadline_at == at(9, 15)


def test_a_deadline_that_has_not_passed_is_none_of_its_business(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": DAILY}))
    watch(rig, at(9, 14))
    assert rig.vigil.tick(at(9, 15)) == 0, "what ended in the last moment is being written down"
    assert rig.vigil.next_due() == at(9, 15) + PATIENCE
    assert rig.vigil.tick(at(9, 15) + PATIENCE) == 1
    assert rig.vigil.next_due() is None


def test_two_nodes_store_one(store: SqlStore) -> None:
    text = jobs({"a": DAILY})
    clock = TurnedClock()
    one, other = Rig(store, text, clock, database=clock), Rig(store, text, clock, database=clock)
    watch(one, at(9, 14, 45))
    now = at(9, 15, 1)
    assert sorted([one.vigil.tick(now), other.vigil.tick(now)]) == [0, 1]
    assert flips(one) == [("missed", at(9, 15), "deadline")]


def test_what_two_nodes_saw_at_the_same_moment_is_stored_once(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": DAILY}))
    flip = Flip("a", State.UP, State.MISSED, at(9, 15), Why.DEADLINE, deadline=at(9, 15))
    with store.begin() as tx:
        assert [one.at for one in tx.jobs.flip([flip], at(9, 16))] == [at(9, 15)]
    with store.begin() as tx:
        assert tx.jobs.flip([flip], at(9, 16)) == []
    assert flips(rig) == [("missed", at(9, 15), "deadline")]


def test_a_success_in_the_meantime_is_no_miss(store: SqlStore) -> None:
    """The deadline was read, the job succeeded, and only then the flip was to be stored."""
    rig = Rig(store, jobs({"a": DAILY}))
    watch(rig, at(9, 1))
    rig.finish()
    flip = Flip("a", State.UP, State.MISSED, at(9, 15), Why.DEADLINE, deadline=at(9, 15))
    with store.begin() as tx:
        assert tx.jobs.flip([flip], at(9, 16)) == []


def test_one_recovery_for_a_failure(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": HOURLY}))
    watch(rig, at(9, 1))
    rig.finish(failed())
    watch(rig, at(10, 1))
    rig.finish()
    watch(rig, at(11, 1))
    rig.finish()
    assert told(rig) == [("job.failing", "a"), ("job.missed", "a"), ("job.recovered", "a")]
    assert kept(rig)[0] == "up"


def test_a_success_after_the_deadline_is_a_miss_and_its_end_whoever_comes_first(store: SqlStore) -> None:
    """Between the deadline and the next turn the run succeeds: that does not undo the miss."""
    rig = Rig(store, jobs({"a": DAILY}))
    watch(rig, at(9, 14, 45))
    rig.turn(seconds=16)
    rig.finish()
    assert flips(rig) == [("missed", at(9, 15), "deadline"), ("up", at(9, 15, 1), "success")]
    rig.tick()
    assert told(rig) == [("job.missed", "a"), ("job.recovered", "a")]


def test_a_success_just_before_the_deadline_is_none(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": DAILY}))
    watch(rig, at(9, 14))
    rig.turn(seconds=60)
    rig.finish()
    rig.tick(seconds=5)
    assert flips(rig) == []


def test_an_old_success_does_not_make_up_for_what_came_after_it(sqlite: SqlStore) -> None:
    entry = {**HOURLY, "overlap": "allow", "alert_after": 9}
    rig = Rig(sqlite, jobs({"a": entry}))
    watch(rig, at(10, 1))
    first, second = rig.executor.of("a")
    rig.executor.finish(second, failed())
    watch(rig, at(10, 20))
    rig.executor.finish(first)
    rig.tick()
    assert kept(rig) == ("missed", at(9, 15)), "ten o'clock is late as well"
    assert rig.state("a").deadline_at == at(10, 15)
    watch(rig, at(11, 1))
    rig.finish()
    assert told(rig) == [("job.missed", "a"), ("job.recovered", "a")]


# ------------------------------------------------------------ failures


def test_failures_count_in_a_row(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {"schedule": "*/10 * * * *", "grace": "5h", "alert_after": 3}}))
    for outcome in (failed(), failed(), None, failed(), failed(), failed(), failed(), None):
        rig.tick(minutes=10)
        rig.finish(outcome)
    assert [(new, why) for new, _, why in flips(rig)] == [("failing", "failure"), ("up", "success")]
    assert flips(rig)[0][1] == at(9)


def test_failing_is_told_also_of_a_job_that_is_missed(sqlite: SqlStore) -> None:
    """Whoever wants to hear of failures only must hear of them."""
    channels = {"c": {"http": {"url": "http://127.0.0.1:9/"}}}
    entry = {"schedule": "*/10 * * * *", "grace": "5m", "alert_after": 3, "notify": {"c": ["failing"]}}
    rig = Rig(sqlite, jobs({"a": entry}, notify=channels))
    for _ in range(5):
        rig.tick(minutes=10)
        rig.finish(failed())
        rig.tick(minutes=6)
        rig.turn(minutes=-6)
    assert [new for new, *_ in flips(rig)] == ["missed"]
    assert announced(rig) == ["failing"]


def announced(rig: Rig) -> list[str]:
    with rig.store._store._database.reading() as connection:
        return list(connection.exec_driver_sql("SELECT kind FROM notifications ORDER BY id").scalars())


# ------------------------------------------------------------ what people do


def missed(store: SqlStore, **keys: object) -> Rig:
    """A job that missed nine o'clock, at 9:20."""
    rig = Rig(store, jobs({"a": {**HOURLY, "alert_after": 9, **keys}}))
    watch(rig, at(9, 1))
    rig.finish(failed())
    watch(rig, at(9, 20))
    assert kept(rig) == ("missed", at(9, 15))
    rig.notices.clear()
    return rig


def test_a_miss_that_is_acknowledged_ends_without_a_word(store: SqlStore) -> None:
    rig = missed(store)
    rig.desk.ack("a", reason="the disk was full", author="me")
    assert flips(rig)[-1] == ("up", at(9, 20), "ack")
    watch(rig, at(10, 1))
    rig.finish()
    assert told(rig) == []


def test_what_is_missed_after_that_is_missed_anew(sqlite: SqlStore) -> None:
    rig = missed(sqlite)
    rig.desk.ack("a", reason="", author="me")
    watch(rig, at(10, 1))
    rig.finish(failed())
    watch(rig, at(10, 20))
    assert kept(rig) == ("missed", at(10, 15))
    assert told(rig) == [("job.missed", "a")]


def test_a_job_that_also_fails_is_failing_when_its_miss_is_acknowledged(sqlite: SqlStore) -> None:
    rig = missed(sqlite, alert_after=1)
    rig.desk.ack("a", reason="", author="me")
    assert kept(rig)[0] == "failing"
    assert told(rig) == []
    watch(rig, at(10, 1))
    rig.finish()
    assert told(rig) == [("job.recovered", "a")], "somebody was told that it fails"


def test_a_pause_ends_no_miss_and_makes_none(store: SqlStore) -> None:
    rig = missed(store)
    rig.desk.pause(["a"], until=None, reason="", author="me")
    watch(rig, at(11, 30))
    assert kept(rig) == ("missed", at(9, 15))
    rig.desk.resume(["a"], author="me")
    watch(rig, at(12, 1))
    rig.finish()
    assert told(rig) == [("job.recovered", "a")]


def test_a_paused_job_misses_nothing(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": HOURLY}))
    rig.desk.pause(["a"], until=at(11, 30), reason="", author="me")
    watch(rig, at(12, 1))
    rig.finish()
    watch(rig, at(12, 30))
    assert flips(rig) == []


def test_a_removed_job_has_not_recovered(store: SqlStore) -> None:
    rig = missed(store)
    rig.reload(jobs())
    watch(rig, at(10, 30))
    assert flips(rig)[-1] == ("up", at(9, 20), "removal")
    rig.reload(jobs({"a": HOURLY}))
    watch(rig, at(11, 1))
    rig.finish()
    assert told(rig) == []


@pytest.mark.parametrize(
    "entry",
    [{**HOURLY, "heartbeat": False}, {"schedule": "0 3 * * *"}, {"enabled": False, **HOURLY}, {}],
    ids=["heartbeat off", "due tomorrow", "disabled", "no schedule"],
)
def test_an_edit_that_ends_a_miss_is_no_recovery(store: SqlStore, entry: dict[str, object]) -> None:
    rig = missed(store, command=["true"])
    rig.reload(jobs({"a": {"alert_after": 9, **entry}}))
    watch(rig, at(10, 30))
    assert flips(rig)[-1] == ("up", at(9, 20), "change")
    rig.finish()
    assert told(rig) == []


def test_another_release_of_the_zone_database_forgives_nothing(
    sqlite: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = Rig(sqlite, jobs({"a": {**HOURLY, "alert_after": 9}, "b": HOURLY}))
    watch(rig, at(9, 1))
    for name, outcome in (("a", failed()), ("b", None)):
        rig.executor.finish(rig.executor.of(name)[0], outcome)
    watch(rig, at(9, 10))
    monkeypatch.setattr("scheduler.engine.swap.TZDATA_VERSION", "2099z")
    monkeypatch.setattr("scheduler.engine.reload.TZDATA_VERSION", "2099z")
    rig.reload(rig.text)
    watch(rig, at(9, 20))
    assert (kept(rig, "a"), kept(rig, "b")) == (("missed", at(9, 15)), ("up", None))
    assert rig.state("b").deadline_at == at(10, 15)


@pytest.mark.parametrize("entry", [{"heartbeat": False, **HOURLY}, {"enabled": False, **HOURLY}, {}])
def test_jobs_that_nobody_waits_for_miss_nothing(sqlite: SqlStore, entry: dict[str, object]) -> None:
    rig = Rig(sqlite, jobs({"a": {"catch_up": "none", **entry} if "schedule" in entry else entry}))
    watch(rig, at(9, 59))
    rig.executor.finish_all(failed())
    rig.tick(hours=30)
    assert "missed" not in [new for new, *_ in flips(rig)]


# ------------------------------------------------------------ outages of our own


def away(rig: Rig, **long: float) -> Rig:
    """The daemon is gone for so long, and another one comes in its place."""
    rig.turn(**long)
    rig.executor.live.clear()
    following = Rig(rig.store._store, rig.text, rig.clock)
    following.notices.clear()
    return following


def test_after_an_outage_we_catch_up_before_we_judge(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": DAILY}))
    watch(rig, at(8, 59))
    rig = away(rig, hours=3)
    rig.tick()
    watch(rig, at(12, 5))
    assert kept(rig) == ("up", None), "what it is owed is under way"
    rig.finish()
    watch(rig, at(12, 30))
    assert flips(rig) == []


def test_what_was_owed_and_fails_is_a_miss_from_its_deadline_on(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {**DAILY, "alert_after": 9}}))
    watch(rig, at(8, 59))
    rig = away(rig, hours=3)
    watch(rig, at(12, 5))
    rig.finish(failed())
    rig.tick(seconds=1)
    assert flips(rig) == [("missed", at(9, 15), "deadline")]
    assert told(rig) == [("job.missed", "a")]


def test_what_was_decided_against_is_a_miss_at_once(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": {**DAILY, "catch_up": "none"}}))
    watch(rig, at(8, 59))
    rig = away(rig, hours=3)
    rig.tick()
    assert flips(rig) == [("missed", at(9, 15), "deadline")]


def test_what_is_owed_has_as_long_as_it_would_have_had(sqlite: SqlStore) -> None:
    """A run that hangs after the outage must not hide the miss for ever."""
    rig = Rig(sqlite, jobs({"a": DAILY}))
    watch(rig, at(8, 59))
    rig = away(rig, hours=3)
    rig.tick()
    watch(rig, at(12, 13))
    assert flips(rig) == []
    watch(rig, at(12, 15))
    assert flips(rig) == [("missed", at(9, 15), "deadline")]


def test_a_success_that_comes_too_late_even_for_that_is_a_miss(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": DAILY}))
    watch(rig, at(8, 59))
    rig = away(rig, hours=3)
    rig.tick()
    watch(rig, at(12, 13))
    rig.turn(minutes=5)
    rig.finish()
    assert [new for new, *_ in flips(rig)] == ["missed", "up"]


def test_the_first_run_that_ends_after_an_outage_knows_of_it(sqlite: SqlStore) -> None:
    """It may end before anybody has come to note that nobody watched."""
    rig = Rig(sqlite, jobs({"a": DAILY}))
    watch(rig, at(8, 59))
    rig = away(rig, hours=3)
    rig.plan(rig.clock.now())
    rig.finish()
    rig.tick()
    assert flips(rig) == []


def test_a_deadline_after_the_outage_is_one_like_any_other(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": DAILY}))
    watch(rig, at(8, 59))
    rig = away(rig, minutes=14)
    rig.tick()
    watch(rig, at(9, 16))
    assert flips(rig) == [("missed", at(9, 15), "deadline")]


def test_a_restart_is_no_outage(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": DAILY}))
    watch(rig, at(9, 14, 50))
    rig = away(rig, seconds=20)
    rig.tick(seconds=1)
    assert flips(rig) == [("missed", at(9, 15), "deadline")]


def test_a_database_that_was_away_is_an_outage_too(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": DAILY}))
    watch(rig, at(9, 5))
    rig.turn(hours=1)
    rig.vigil.tick(rig.clock.now())
    assert flips(rig) == [], "what ended meanwhile is not written down yet"
    rig.finish(failed())
    rig.tick()
    assert [new for new, *_ in flips(rig)] == ["failing", "missed"]


def test_while_another_node_watches_there_is_none(sqlite: SqlStore) -> None:
    text, clock = jobs({"a": DAILY}), TurnedClock()
    one, other = Rig(sqlite, text, clock, database=clock), Rig(sqlite, text, clock, database=clock)
    other.vigil.tick(clock.now())
    watch(one, at(9, 14, 45))
    clock.turn(seconds=16)
    other.vigil.tick(clock.now())
    assert flips(one) == [("missed", at(9, 15), "deadline")]


def test_an_outage_within_an_outage_forgives_nothing_twice(sqlite: SqlStore) -> None:
    """Daemons that start and die again and again must not put a miss off for ever."""
    rig = Rig(sqlite, jobs({"a": DAILY}))
    watch(rig, at(8, 59))
    rig = away(rig, hours=3)
    rig.tick()
    for _ in range(3):
        rig = away(rig, minutes=6)
        rig.tick()
    assert flips(rig) == [("missed", at(9, 15), "deadline")]


def test_a_job_that_runs_elsewhere_may_have_told_us_while_nobody_listened(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {**HOURLY, "external": True}}))
    watch(rig, at(8, 59))
    rig = away(rig, minutes=20)
    rig.tick()
    assert (kept(rig)[0], told(rig)) == ("unknown", [("job.unknown", "a")])
    assert rig.state("a").deadline_at == at(10, 15)
    watch(rig, at(10, 16))
    assert kept(rig) == ("missed", at(10, 15)), "now somebody listened"


def test_a_job_that_runs_elsewhere_and_told_nothing_is_missed(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": {**HOURLY, "external": True}}))
    watch(rig, at(9, 16))
    assert kept(rig) == ("missed", at(9, 15))


# ------------------------------------------------------------ scans, several nodes


def test_a_node_that_stands_aside_is_not_silent(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": DAILY}))
    rig.in_force.stand_aside("a plug-in is missing", START)
    watch(rig, at(9, 20))
    assert flips(rig) == [("missed", at(9, 15), "deadline")]


def test_a_job_that_this_node_has_not_loaded_is_left_to_others(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": DAILY}))
    other = Vigil(rig.store, rig.in_force, rig.bus)
    behind = rig.in_force.current
    rig.reload(jobs({"a": {**DAILY, "grace": "10m"}}))
    rig.in_force.set(behind)
    rig.turn(hours=1, minutes=12)
    assert other.tick(rig.clock.now()) == 0


def test_it_costs_no_write_while_nothing_passes(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({f"j{number}": HOURLY for number in range(50)}))
    rig.tick()
    writes = rig.store.writes
    for _ in range(10):
        rig.vigil.tick(rig.turn(seconds=1))
    assert rig.store.writes == writes
    assert timedelta(0) < (rig.vigil.next_due() or START) - rig.clock.now()


def test_a_restart_does_not_put_a_deadline_off(sqlite: SqlStore) -> None:
    """Nor does a daemon that starts and dies again and again."""
    rig = Rig(sqlite, jobs({"a": DAILY}))
    for _ in range(5):
        rig = away(rig, minutes=5)
        assert rig.state("a").deadline_at == at(9, 15)


# ------------------------------------------------------------ people are told

CHANNEL = {"ops": {"http": {"url": "http://127.0.0.1:9/"}}}


def test_what_is_stored_and_what_is_told_are_one(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {**DAILY, "notify": ["ops"]}}, notify=CHANNEL))
    watch(rig, at(9, 14, 30))
    rig.turn(seconds=40)
    rig.store.broken_commits = 1
    with pytest.raises(DatabaseAway):
        rig.vigil.tick(rig.clock.now())
    assert (flips(rig), announced(rig)) == ([], [])
    rig.tick(seconds=1)
    assert (len(flips(rig)), announced(rig)) == (1, ["missed"])
    rig.finish()
    assert announced(rig) == ["missed", "recovered"]
    rig.tick(seconds=1)
    assert announced(rig) == ["missed", "recovered"]


def test_a_scan_that_is_late_is_told_as_one(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": {**DAILY, "notify": ["ops"]}}, notify=CHANNEL))
    loaded = rig.in_force.current
    scan = replace(loaded.configuration.jobs["a"], compensate=Compensate("shop", "http_list"))
    rig.in_force.set(replace(loaded, configuration=replace(loaded.configuration, jobs={"a": scan})))
    flip = Flip("a", State.UP, State.MISSED, at(9, 15), Why.DEADLINE, deadline=at(9, 15))
    with sqlite.begin() as tx:
        store_flips(tx, [flip], rig.in_force.current.configuration, at(9, 16))
    assert announced(rig) == ["scan_overdue"]


def test_a_job_that_is_well_costs_no_further_statement(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": HOURLY, "b": {}}))
    rig.desk.run_now("b", author="me")
    rig.tick(hours=1)
    with statements_on(sqlite, ("jobs", "flips", "notifications", "installation")) as statements:
        rig.executor.finish_all()
        rig.worker.tick(rig.clock.now())
    assert [run.status for run in rig.runs()] == ["COMPLETED", "COMPLETED"]
    verbs = [statement.split()[0] for statement, _ in statements]
    assert (verbs.count("SELECT"), verbs.count("UPDATE")) == (1, 2), statements
