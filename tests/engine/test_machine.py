"""Whatever happens in whatever order: every instant once, never two runs of one lock, final stays final."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import structlog
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from scheduler.core.commands import IfBusy
from scheduler.core.errors import SchedulerError, Unavailable
from scheduler.core.model import FailReason, Status
from scheduler.core.outcome import Failed, Snoozed, Succeeded
from scheduler.engine.balance import balance
from scheduler.store.store import SqlStore
from tests.databases import Place
from tests.engine.checker import faults
from tests.engine.doubles import START
from tests.engine.rig import Rig, jobs

JOBS: Mapping[str, dict[str, Any]] = {
    "skip": {"schedule": "* * * * *", "retries": ["30s"]},
    "queue": {"schedule": "*/2 * * * *", "overlap": "queue", "catch_up": "all"},
    "replace": {"schedule": "* * * * *", "overlap": "replace"},
    "allow": {"schedule": "*/3 * * * *", "overlap": "allow", "catch_up": "none"},
    "one": {"schedule": "* * * * *", "lock": "shared"},
    "two": {"schedule": "*/2 * * * *", "lock": "shared", "on_lost": "fail"},
    "moving": {"schedule": "* * * * *", "catch_up": "all", "overlap": "allow"},
    "after": {"after": "skip"},
}
SCHEDULED = [name for name in JOBS if name != "after"]
FIXED = [name for name in SCHEDULED if name != "moving"]
NAMES = st.sampled_from(sorted(JOBS))
OUTCOMES = st.sampled_from(
    [Succeeded(), Failed(FailReason.EXIT, "exit 1"), Snoozed(timedelta(seconds=20)), Failed(FailReason.LOST, "lost")]
)


class Machine(RuleBasedStateMachine):
    """One node after another on one SQLite database."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.logs = structlog.testing.capture_logs()
        self.logs.__enter__()
        self.opened = Place("sqlite", "", Path(self.folder.name)).opened_hastily()
        self.sql: SqlStore = self.opened.__enter__()
        self.final: dict[str, Status] = {}

    @initialize()
    def begin(self) -> None:
        self.rig = Rig(self.sql, jobs(JOBS))

    def teardown(self) -> None:
        self.opened.__exit__(None, None, None)
        self.logs.__exit__(None, None, None)
        self.folder.cleanup()

    # ------------------------------------------------------------ what may happen

    @rule(seconds=st.sampled_from([1, 20, 60, 60, 61, 150, 3600]))
    def time_passes(self, seconds: int) -> None:
        self.rig.tick(seconds=seconds)

    @rule(seconds=st.sampled_from([1, 59, 60]))
    def time_passes_unseen(self, seconds: int) -> None:
        self.rig.turn(seconds=seconds)

    @rule(seconds=st.sampled_from([-3600, -90, -10, 10, 90, 3600]))
    def the_clock_is_set(self, seconds: int) -> None:
        self.rig.clock.step(seconds=seconds)

    @precondition(lambda self: self.rig.executor.live)
    @rule(data=st.data(), outcome=OUTCOMES)
    def an_attempt_ends(self, data: st.DataObject, outcome: Any) -> None:
        self.rig.executor.finish(data.draw(st.sampled_from(sorted(self.rig.executor.live))), outcome)

    @rule(job=NAMES, payload=st.booleans(), how=st.sampled_from(IfBusy))
    def somebody_runs_it(self, job: str, payload: bool, how: IfBusy) -> None:
        with suppress(SchedulerError):
            self.rig.desk.run_now(job, author="me", payload=1 if payload else None, has_payload=payload, if_busy=how)

    @precondition(lambda self: self.rig.runs())
    @rule(data=st.data())
    def somebody_cancels_or_retries(self, data: st.DataObject) -> None:
        run = data.draw(st.sampled_from(self.rig.runs()))
        with suppress(SchedulerError):
            data.draw(st.sampled_from([self.rig.desk.cancel, self.rig.desk.retry]))(run.id, author="me")

    @rule(job=st.sampled_from(SCHEDULED), minutes=st.sampled_from([None, 1, 5]))
    def somebody_pauses_it(self, job: str, minutes: int | None) -> None:
        until = None if minutes is None else self.rig.clock.now() + timedelta(minutes=minutes)
        with suppress(SchedulerError):
            self.rig.desk.pause([job], until=until, reason="", author="me")

    @rule(job=st.sampled_from(SCHEDULED))
    def somebody_resumes_it(self, job: str) -> None:
        with suppress(SchedulerError):
            self.rig.desk.resume([job], author="me")

    @rule(job=NAMES, priority=st.integers(0, 3))
    def somebody_changes_it(self, job: str, priority: int) -> None:
        with suppress(SchedulerError):
            self.rig.reload(jobs({**JOBS, job: {**JOBS[job], "priority": priority}}))

    @rule(expression=st.sampled_from(["* * * * *", "*/2 * * * *", "30 * * * * *", "1-59/3 * * * *", None]))
    def somebody_moves_it(self, expression: str | None) -> None:
        moved = {"command": ["true"]} if expression is None else {**JOBS["moving"], "schedule": expression}
        with suppress(SchedulerError):
            self.rig.reload(jobs({**JOBS, "moving": moved}))

    @rule()
    def somebody_removes_it(self) -> None:
        with suppress(SchedulerError):
            self.rig.reload(jobs({name: JOBS[name] for name in JOBS if name != "moving"}), drop_pending=True)

    @rule(commits=st.sampled_from(["broken_commits", "lost_answers"]))
    def the_database_hiccups(self, commits: str) -> None:
        setattr(self.rig.store, commits, 1)
        with suppress(Unavailable):
            self.rig.tick(seconds=1)
        setattr(self.rig.store, commits, 0)

    @rule(minutes=st.sampled_from([0, 0, 3, 120]))
    def the_node_dies(self, minutes: int) -> None:
        text, clock = self.rig.text, self.rig.clock
        clock.turn(minutes=minutes)
        self.rig = Rig(self.sql, text, clock)

    # ------------------------------------------------------------ what is always true

    @invariant()
    def final_is_final(self) -> None:
        for run in self.rig.runs():
            known = self.final.get(run.id)
            assert known is None or run.status is known, f"{run.id} was {known} and is {run.status}"
            if run.status.final:
                self.final[run.id] = run.status

    @invariant()
    def a_lock_has_one_holder(self) -> None:
        held = [run.lock for run in self.rig.runs() if run.status is Status.RUNNING and run.lock is not None]
        assert len(held) == len(set(held))
        attempts = [launch.run.lock for launch, _ in self.rig.executor.live.values() if launch.run.lock is not None]
        assert len(attempts) == len(set(attempts))

    @invariant()
    def every_instant_once(self) -> None:
        for job in FIXED:
            assert list(faults(self.rig.store, job, JOBS[job]["schedule"], START, self.planned_until(job))) == []
        for job in SCHEDULED:
            with self.rig.store.read() as tx:
                told, gaps = balance(tx, job, START - timedelta(days=1), self.planned_until(job))
            assert (gaps, told.surplus) == ([], ()), job

    def planned_until(self, job: str) -> datetime:
        """Everything before the next instant has been judged; nothing from it on has."""
        due = self.rig.state(job).next_due_at
        return START + timedelta(days=100) if due is None else due - timedelta(microseconds=1)


TestMachine = Machine.TestCase
TestMachine.settings = settings(
    max_examples=8,
    stateful_step_count=20,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
