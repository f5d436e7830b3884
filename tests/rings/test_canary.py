"""The canary: it goes the way of every run, is seen by nobody who does not ask for it, and its silence is noticed."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta

import pytest

from scheduler.config.canary import canary, with_canary, without_canary
from scheduler.config.problem import ConfigError
from scheduler.core.canary import CANARY, EVERY, GRACE
from scheduler.core.canary import written as counted
from scheduler.core.execution import Launch
from scheduler.core.job import Configuration
from scheduler.core.model import Run
from scheduler.core.notices import Bus, Notice
from scheduler.core.outcome import Outcome, Succeeded
from scheduler.core.queries import RunFilter
from scheduler.engine.audit import audit
from scheduler.engine.canary import Canary, CanaryExecutor
from scheduler.store.store import SqlStore
from tests.config.texts import load
from tests.databases import Place
from tests.engine.doubles import START, TurnedClock
from tests.engine.rig import Rig, jobs

SILENCE = int((EVERY + GRACE).total_seconds())
HOURLY = {"schedule": "0 * * * *", "overlap": "queue"}


class Aviary(Rig):
    """A node with a canary, the clock two seconds after a full minute."""

    def __init__(
        self,
        store: SqlStore,
        text: str = "",
        clock: TurnedClock | None = None,
        *,
        slots: int = 64,
        lease: timedelta | None = None,
    ) -> None:
        super().__init__(store, text or jobs({"a": HOURLY}), clock, slots=slots, lease=lease, start=False)
        self.reloader._load_texts = lambda files: with_canary(load(files["jobs.yaml"]))
        self.bird = CanaryExecutor(lambda run, attempt: None)
        self.worker._executors = {"command": self.executor, CanaryExecutor.kind: self.bird}
        self.canary = Canary(
            self.store, self.store, self.clock, lambda: len(self.worker.live()) >= self.slots, lambda: self.drain.begun
        )
        self.start()
        if clock is None:
            self.turn(seconds=2)

    def load(self) -> Configuration:
        return with_canary(super().load())

    def minutes(self, count: float, *without: str) -> None:
        """Turns of ten seconds, without what has stopped."""
        for _ in range(round(count * 6)):
            now = self.turn(seconds=10)
            for name in ("keeper", "planner", "worker", "vigil", "canary"):
                if name not in without:
                    getattr(self, name).tick(now)

    def flights(self) -> list[Run]:
        with self.store.queries() as queries:
            page = queries.history(RunFilter(jobs=(CANARY,), skips=False), limit=1_000)
        return [entry.run for entry in reversed(page.entries) if entry.run is not None]

    def silent(self) -> str | None:
        """What is said of its silence."""
        remarks = self.canary.remarks(self.clock.now())
        assert [one.about for one in remarks] in ([], ["canary"])
        return remarks[0].what if remarks else None


def test_it_comes_through_once_a_minute(store: SqlStore) -> None:
    rig = Aviary(store)
    rig.minutes(3)
    assert [(run.scheduled_for, str(run.status)) for run in rig.flights()] == [
        (START + timedelta(minutes=n), "COMPLETED") for n in (1, 2, 3)
    ]
    facts = rig.canary.facts(rig.clock.now())
    assert (facts.late, facts.took) == (False, 2.0)
    assert facts.last_success_at == START + timedelta(minutes=3, seconds=2)
    assert facts.deadline_at is not None
    assert timedelta(seconds=SILENCE - 20) < facts.deadline_at - facts.last_success_at <= timedelta(seconds=SILENCE)


def test_nobody_sees_it_who_does_not_ask_for_it(store: SqlStore) -> None:
    rig = Aviary(store)
    rig.minutes(3)
    assert [str(run.job) for run in rig.runs()] == []
    with store.queries() as queries:
        now = rig.clock.now()
        assert [view.state.name for view in queries.jobs(now)] == ["a"]
        assert [view.state.name for view in queries.jobs(now, [CANARY])] == [CANARY]
        assert [one.state.name for one in queries.gauges(now).jobs] == ["a"]
        assert [one.state.name for one in queries.gauges(now, ["a", CANARY]).jobs] == ["a"]
        assert CANARY not in [view.queue.name for view in queries.queues()]
    since = START - timedelta(hours=1)
    assert [one.job for one in audit(store, since, rig.clock.now()).jobs] == ["a"]
    (named,) = audit(store, since, rig.clock.now(), CANARY).jobs
    assert (named.job, named.ran, named.clean) == (CANARY, 3, True)
    assert rig.invariants.tick(rig.clock.now()) == 0


def test_nobody_hears_of_its_runs() -> None:
    heard: list[Notice] = []
    bus = Bus(unheard=CANARY)
    bus.subscribe(heard.append)
    for job in (CANARY, "a"):
        bus.publish("run.settled", job=job)
        bus.publish("job.disabled", job=job)
    assert [(one.name, one.fields["job"]) for one in heard] == [
        ("job.disabled", CANARY),
        ("run.settled", "a"),
        ("job.disabled", "a"),
    ]


def test_nobody_can_write_it() -> None:
    with pytest.raises(ConfigError, match="not a good name"):
        load(json.dumps({"jobs": {CANARY: {"command": "x"}}}))
    with pytest.raises(ConfigError, match="unknown key `canary`"):
        load(json.dumps({"jobs": {"a": {"canary": {}}}}))
    with pytest.raises(ConfigError, match="not a good name"):
        load(json.dumps({"jobs": {"a": {"command": "x", "queue": CANARY}}}))


def test_a_configuration_with_it_is_what_was_written_otherwise() -> None:
    written = load(jobs({"a": HOURLY}))
    both = with_canary(written)
    assert (both.hash, both.files) == (written.hash, written.files)
    assert without_canary(both) == written
    assert (counted(both.jobs), counted(written.jobs), len(both.jobs)) == (1, 1, 2)
    definition = canary().definition
    assert (definition["schedule"], definition["timezone"], definition["heartbeat"]) == (["* * * * *"], "UTC", False)


# ------------------------------------------------------------ silence


def _disable(rig: Aviary) -> None:
    with rig.store.begin() as tx:
        tx.jobs.set_alarm(CANARY, "planning failed: ValueError: no", enabled=False)


def _hang(rig: Aviary) -> None:
    rig.bird.start = lambda launch, done: None  # type: ignore[method-assign]
    rig.bird.end = lambda run, why: None  # type: ignore[method-assign]


def _fail(rig: Aviary) -> None:
    def start(launch: Launch, done: Callable[[Outcome], None]) -> None:
        raise OSError("no room")

    rig.bird.start = start  # type: ignore[method-assign]


@pytest.mark.parametrize(
    ("stopped", "breaking", "says"),
    [
        ("planner", lambda rig: None, "due and nobody plans it"),
        ("worker", lambda rig: setattr(rig.worker, "accepting", False), "waits and nobody claims it"),
        ("", _hang, "was started and is not settled"),
        ("", _fail, "its runs fail: could not be started: OSError: no room"),
        ("", _disable, "was disabled: planning failed: ValueError: no"),
    ],
)
def test_whatever_breaks_on_its_way_is_noticed(
    store: SqlStore, stopped: str, breaking: Callable[[Aviary], None], says: str
) -> None:
    rig = Aviary(store)
    rig.minutes(2)
    assert rig.silent() is None
    breaking(rig)
    rig.minutes(2, stopped)
    assert rig.silent() is None, "a moment is no silence"
    rig.minutes(2, stopped)
    silent = rig.silent()
    assert silent is not None
    assert says in silent
    facts = rig.canary.facts(rig.clock.now())
    assert facts.late
    assert facts.deadline_at is not None
    assert facts.deadline_at < rig.clock.now()


def test_it_is_noticed_when_nobody_looks_any_more(store: SqlStore) -> None:
    rig = Aviary(store)
    rig.minutes(2)
    rig.minutes(4, "canary")
    assert rig.silent() is not None


def test_it_comes_back(store: SqlStore) -> None:
    rig = Aviary(store)
    rig.minutes(2)
    rig.minutes(5, "planner")
    assert rig.silent() is not None
    rig.minutes(2)
    assert rig.silent() is None
    assert not rig.canary.facts(rig.clock.now()).late


def test_a_node_without_a_free_slot_says_nothing(store: SqlStore) -> None:
    rig = Aviary(store, slots=1)
    rig.desk.run_now("a", author="me")
    rig.minutes(10)
    assert rig.silent() is None
    assert rig.canary.facts(rig.clock.now()).deadline_at is None
    rig.executor.finish_all()
    rig.minutes(2)
    assert rig.silent() is None
    assert [str(run.status) for run in rig.flights()][-1] == "COMPLETED"
    rig.minutes(6, "planner")
    assert rig.silent() is not None, "and it says so again when there was room all the time"


def test_queues_do_not_hold_it_up(store: SqlStore) -> None:
    full = jobs({"a": {**HOURLY, "overlap": "allow"}}, queues={"default": {"concurrency": 1, "rate": "1/h"}})
    rig = Aviary(store, full)
    for _ in range(3):
        rig.desk.run_now("a", author="me", payload=1, has_payload=True)
    rig.minutes(4)
    assert len(rig.flights()) == 4
    assert rig.silent() is None


@pytest.mark.parametrize("how", ["paused", "leaving"])
def test_what_is_meant_to_be_silent_is_not_missed(store: SqlStore, how: str) -> None:
    rig = Aviary(store)
    rig.minutes(2)
    if how == "paused":
        rig.desk.pause([CANARY], until=None, reason="test", author="me")
    else:
        rig.desk.run_now("a", author="me")
        rig.tick(seconds=1)
        rig.drain.begin()
    rig.minutes(10)
    assert rig.silent() is None


def test_a_clock_that_is_set_deceives_nobody(store: SqlStore) -> None:
    rig = Aviary(store)
    rig.minutes(2)
    rig.clock.step(hours=5)
    rig.minutes(1)
    assert rig.silent() is None
    rig.minutes(4, "planner")
    assert rig.silent() is not None


def test_of_a_long_time_without_a_daemon_the_next_is_not_guilty(store: SqlStore) -> None:
    rig = Aviary(store)
    rig.minutes(2)
    rig.turn(hours=7)
    later = Aviary(store, clock=rig.clock)
    later.minutes(0.5)
    assert later.silent() is None
    later.minutes(1)
    assert later.silent() is None
    assert len(later.flights()) == 4  # One caught the daemon's start: less than a minute late is not missed.


# ------------------------------------------------------------ the ledger


def test_a_ledger_without_it_gets_it_though_the_file_is_the_same(store: SqlStore) -> None:
    old = Rig(store, jobs({"a": HOURLY}))
    new = Aviary(store, clock=old.clock)
    assert new.in_force.current.generation == old.in_force.current.generation + 1
    new.minutes(2)
    assert len(new.flights()) == 2
    again = Aviary(store, clock=new.clock)
    assert again.in_force.current.generation == new.in_force.current.generation


def test_a_release_without_it_may_follow_and_be_followed(store: SqlStore) -> None:
    new = Aviary(store)
    new.minutes(2)
    old = Rig(store, jobs({"a": HOURLY, "b": {}}), new.clock)
    for _ in range(12):
        old.tick(seconds=10)
    assert old.named("job.disabled") == []
    assert old.state(CANARY).removed_at is not None
    later = Aviary(store, clock=old.clock)
    later.minutes(2)
    assert later.silent() is None
    assert later.state(CANARY).removed_at is None


def test_reloads_do_not_count_it(store: SqlStore) -> None:
    rig = Aviary(store)
    preview = rig.reload(jobs({"a": HOURLY, "b": {}}), dry_run=True)
    assert (preview.added, preview.unchanged) == (("b",), 1)
    reloaded = rig.reload(jobs({"a": HOURLY, "b": {}}))
    assert (reloaded.added, reloaded.changed, reloaded.removed, reloaded.unchanged) == (("b",), (), (), 1)
    assert rig.reload(jobs({"a": HOURLY, "b": {}})).unchanged == 2
    rig.minutes(2)
    assert len(rig.flights()) == 2


def test_few_of_its_runs_are_kept_and_nobody_is_told_of_that(store: SqlStore) -> None:
    rig = Aviary(store)
    for _ in range(45):
        rig.minutes(1)
        rig.retention.tick(rig.clock.now())
    assert 20 <= len(rig.flights()) <= 26
    assert rig.named("retention.pruned") == []
    (named,) = audit(store, rig.clock.now() - timedelta(minutes=10), rig.clock.now(), CANARY).jobs
    assert named.clean


def test_several_nodes_have_one(postgres_place: Place) -> None:
    lease = timedelta(minutes=3)
    with closing(postgres_place.open()) as store:
        first = Aviary(store, lease=lease)
        second = Aviary(store, clock=first.clock, lease=lease)
        for _ in range(18):
            first.minutes(1 / 6)
            second.clock.turn(seconds=-10)
            second.minutes(1 / 6)
        assert len(first.flights()) == 3
        assert first.silent() is None
        assert second.silent() is None


def test_its_executor_is_done_at_once_and_closes_its_files() -> None:
    closed: list[tuple[str, int]] = []
    told: list[Outcome] = []
    bird = CanaryExecutor(lambda run, attempt: closed.append((run, attempt)))
    run = Run(1, "r", CANARY, "k", None, None, START, CANARY, 0, attempt=2)  # type: ignore[arg-type]
    bird.start(Launch(run, canary(), 2, {}), told.append)
    bird.end("r", "cancel")
    assert (closed, told) == ([("r", 2)], [Succeeded()])


def test_a_release_without_it_beside_one_with_it_is_mended_by_the_next_start(postgres_place: Place) -> None:
    """A rolling upgrade: the old one plans what it finds, and knows no such job."""
    lease = timedelta(minutes=3)
    with closing(postgres_place.open()) as store:
        old = Rig(store, jobs({"a": HOURLY}), lease=lease)
        new = Aviary(store, clock=old.clock, lease=lease)
        old.tick(minutes=1)
        assert [fields["job"] for fields in old.named("job.disabled")] == [CANARY]
        assert old.state("a").enabled
        new.minutes(4)
        assert "was disabled" in (new.silent() or "")
        later = Aviary(store, clock=old.clock, lease=lease)
        later.minutes(2)
        assert later.silent() is None
        assert str(later.flights()[-1].status) == "COMPLETED"
