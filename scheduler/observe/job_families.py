"""The metrics of each job."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import datetime

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from scheduler.core.job import Job
from scheduler.core.model import SkipReason
from scheduler.core.queries import Gauges, JobGauge
from scheduler.observe.tally import Tally

RESULTS = ("completed", "failed", "timeout", "lost", "canceled", "skipped")
"""What becomes of runs: the final statuses; of failures those by time and by loss apart."""
DURATION_BOUNDS = (0.1, 0.5, 1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400)
FAREWELL = 900.0
"""Seconds for which the deadline of a removed job says `+Inf`: longer than any rule of ours looks back."""

MOST_HISTOGRAMS = 1000
"""With more jobs than this, how long their runs take is told by the last one alone: the 18 series of each histogram
would be 40 % of a page of tens of megabytes."""

Row = tuple[list[str], float]


class JobFamilies:
    """Not locked: `update` and `families` are called under the owner's lock."""

    def __init__(self, tally: Tally, per_job_histogram: bool) -> None:
        self._tally = tally
        self._histogram = per_job_histogram
        self._present: set[str] = set()
        self._gone: dict[str, float] = {}
        self._passed: dict[str, datetime] | None = None

    def update(self, gauges: Gauges, monotonic: float, now: datetime) -> None:
        """Notes which jobs came and went, and counts the deadlines that passed since the last look."""
        passed = {
            one.state.name: one.state.deadline_at
            for one in gauges.jobs
            if one.state.deadline_at is not None and one.state.deadline_at < now
        }
        for name, deadline in passed.items():
            # What had passed before this process began was counted by the one before.
            if self._passed is not None and self._passed.get(name) != deadline:
                self._tally.add("missed_deadlines", (name,))
        self._passed = {**(self._passed or {}), **passed}
        present = {one.state.name for one in gauges.jobs}
        for name in self._present - present:
            self._gone[name] = monotonic
        self._gone = {name: at for name, at in self._gone.items() if name not in present and monotonic - at < FAREWELL}
        self._present = present

    def families(self, gauges: Gauges, jobs: Mapping[str, Job], *, vouch: bool, monotonic: float) -> Iterator[Metric]:
        """`vouch` False: the database has been silent for long; then a deadline that says "nothing is expected" is no
        longer told, a finite one is."""
        yield self._info(gauges, jobs)
        yield self._deadlines(gauges, vouch)
        for name, help_text, value in _GAUGES:
            yield _gauge(name, help_text, [([clean(one.state.name)], value(one)) for one in gauges.jobs])
        for name, help_text, value in _RARE:
            rows = [([clean(one.state.name)], value(one)) for one in gauges.jobs]
            yield _gauge(name, help_text, [row for row in rows if row[1]])
        yield _gauge(
            "schedctl_job_failure_threshold",
            "Consecutive failures at which the job counts as failing (from jobs.yaml).",
            [([clean(name)], job.watch.alert_after) for name, job in jobs.items() if name in self._present],
        )
        yield _gauge(
            "schedctl_job_run_deadline_timestamp_seconds",
            "Unix time at which the run in progress that started last reaches its time limit; +Inf when none runs.",
            [([clean(one.state.name)], _run_deadline(one, jobs.get(one.state.name))) for one in gauges.jobs],
        )
        yield from self._counters([one.state.name for one in gauges.jobs])

    def _info(self, gauges: Gauges, jobs: Mapping[str, Job]) -> Metric:
        labels = ["job_name", "schedule", "timezone", "team", "severity", "kind"]
        family = GaugeMetricFamily(
            "schedctl_job_info", "Facts about the job; always 1. Join on job_name.", labels=labels
        )
        for one in gauges.jobs:
            job = jobs.get(one.state.name)
            schedule = job.schedule if job is not None else None
            facts = [
                one.state.name,
                " | ".join(schedule.expressions) if schedule is not None else "",
                schedule.zone if schedule is not None else "",
                job.watch.team if job is not None else "",
                job.watch.severity if job is not None else "",
                job.action.kind if job is not None else "",
            ]
            family.add_metric([clean(fact) for fact in facts], 1)
        return family

    def _deadlines(self, gauges: Gauges, vouch: bool) -> Metric:
        rows: list[Row] = [([clean(one.state.name)], unix(one.state.deadline_at, math.inf)) for one in gauges.jobs]
        rows += [([clean(name)], math.inf) for name in self._gone]
        return _gauge(
            "schedctl_job_deadline_timestamp_seconds",
            "Unix time by which the next success must be seen; +Inf while nothing is expected (paused, removed).",
            [row for row in rows if vouch or row[1] < math.inf],
        )

    def _counters(self, names: list[str]) -> Iterator[Metric]:
        yield self._counter("schedctl_job_runs", "Finished runs, by result.", "runs", names, "result", RESULTS)
        reasons = tuple(str(reason) for reason in SkipReason)
        yield self._counter(
            "schedctl_job_skipped_runs", "Instants that were not run, by reason.", "skipped", names, "reason", reasons
        )
        yield self._counter("schedctl_job_retries", "Further attempts that were scheduled.", "retries", names)
        yield self._counter(
            "schedctl_job_missed_deadlines", "Deadlines that passed without a success.", "missed_deadlines", names
        )
        if not self._histogram or len(names) > MOST_HISTOGRAMS:
            return
        family = HistogramMetricFamily(
            "schedctl_job_duration_seconds",
            "For how long finished runs were at work; waits between attempts are not in it.",
            labels=["job_name"],
        )
        for name in names:
            buckets, total = self._tally.histogram("duration", DURATION_BOUNDS, (name,))
            family.add_metric([clean(name)], buckets, total)
        yield family

    def _counter(
        self,
        name: str,
        help_text: str,
        tally: str,
        jobs: list[str],
        label: str = "",
        words: tuple[str, ...] = ("",),
    ) -> Metric:
        """Every word of every job, also those that never happened: an increase from nothing is invisible."""
        counts = self._tally.counts(tally)
        family = CounterMetricFamily(name, help_text, labels=["job_name", label] if label else ["job_name"])
        for job in jobs:
            for word in words:
                labels = (job, word) if label else (job,)
                family.add_metric([clean(part) for part in labels], counts.get(labels, 0))
        return family


def _run_deadline(one: JobGauge, job: Job | None) -> float:
    if not one.running or job is None or one.last_start_at is None:
        return math.inf
    return one.last_start_at.timestamp() + job.timeout.total_seconds()


def unix(instant: datetime | None, none: float) -> float:
    return none if instant is None else instant.timestamp()


def clean(text: str) -> str:
    """A label value that the page can carry, whatever it was."""
    return text.encode("utf-8", "replace").decode("utf-8")[:200]


def _gauge(name: str, help_text: str, rows: list[Row]) -> Metric:
    family = GaugeMetricFamily(name, help_text, labels=["job_name"])
    for labels, value in rows:
        family.add_metric(labels, value)
    return family


_GAUGES = (
    (
        "schedctl_job_next_run_timestamp_seconds",
        "Unix time of the next scheduled start; +Inf if none.",
        lambda one: unix(one.state.next_due_at if one.state.enabled else None, math.inf),
    ),
    (
        "schedctl_job_last_success_timestamp_seconds",
        "Unix time at which the last successful run ended; 0 if never.",
        lambda one: unix(one.state.last_success_at, 0),
    ),
    (
        "schedctl_job_last_start_timestamp_seconds",
        "Unix time of the last start; 0 if never.",
        lambda one: unix(one.last_start_at, 0),
    ),
    (
        "schedctl_job_last_end_timestamp_seconds",
        "Unix time at which the last run ended, whatever its result; 0 if never.",
        lambda one: unix(one.last_end_at, 0),
    ),
    (
        "schedctl_job_last_duration_seconds",
        "For how long the last finished run was at work, waits between attempts left out; 0 if none.",
        lambda one: one.last_duration or 0.0,
    ),
    (
        "schedctl_job_last_exit_code",
        "Exit code of the last finished run; -1 if it had none (signal, timeout, lost).",
        lambda one: -1 if one.last_exit_code is None else one.last_exit_code,
    ),
    (
        "schedctl_job_consecutive_failures",
        "Failed runs since the last success.",
        lambda one: one.state.consecutive_failures,
    ),
    ("schedctl_job_running_runs", "Runs in progress now.", lambda one: one.running),
    (
        "schedctl_job_paused_since_timestamp_seconds",
        "Unix time at which the job was paused; 0 if it is not paused.",
        lambda one: unix(one.paused_since, 0),
    ),
)

_RARE = (
    ("schedctl_job_waiting_runs", "Runs that wait to be started; only of jobs that have any.", lambda one: one.waiting),
    (
        "schedctl_job_dead_letters",
        "Runs with a payload that gave up, until somebody retries or discards them; only of jobs that have any.",
        lambda one: one.dead_letters,
    ),
    (
        "schedctl_job_alarm",
        "1 for a job that the scheduler had to disable because planning it failed; no other job has it.",
        lambda one: 0 if one.state.alarm is None else 1,
    ),
)
"""Zero for nearly every job at nearly every time: told only where they are not."""
