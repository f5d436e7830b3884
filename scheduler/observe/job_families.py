"""The metrics of each job."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime

from scheduler.core.job import Job
from scheduler.core.model import SkipReason
from scheduler.core.queries import Gauges, JobGauge
from scheduler.observe.exposition import family, quoted
from scheduler.observe.tally import Tally

RESULTS = ("completed", "failed", "timeout", "lost", "canceled", "skipped")
"""What becomes of runs: the final statuses; of failures those by time and by loss apart."""
UNWANTED = (SkipReason.MISSED, SkipReason.LOCK)
"""Why occurrences are skipped that nobody asked to skip."""
DURATION_BOUNDS = (0.1, 0.5, 1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400)


class JobFamilies:
    """Not locked: `update` and `families` are called under the owner's lock.

    `histograms`: how long runs take in 18 series per job rather than 2."""

    def __init__(self, tally: Tally, histograms: bool) -> None:
        self._tally = tally
        self._histograms = histograms
        self._labels: dict[str, str] = {}
        self._told: dict[str, tuple[Job | None, str]] = {}

    def update(self, gauges: Gauges) -> None:
        """Notes which jobs there are."""
        before, self._labels = self._labels, {}
        for one in gauges.jobs:
            name = one.state.name
            self._labels[name] = before.get(name) or f"{{job_name={quoted(name)}"

    def families(self, gauges: Gauges, jobs: Mapping[str, Job], *, vouch: bool) -> Iterator[str]:
        """The text of one metric after the other, for the jobs of the last update. `vouch` False: the database has been
        silent for long; then a deadline that says "nothing is expected" is no longer told, a finite one is."""
        labels = self._labels
        rows = [(labels[one.state.name], one) for one in gauges.jobs]
        yield self._info(rows, jobs)
        yield _deadlines(rows, gauges.gone, vouch)
        for name, help_text, value in _GAUGES:
            yield _gauge(name, help_text, [(label, value(one)) for label, one in rows])
        for name, help_text, value in _RARE:
            yield _gauge(name, help_text, [(label, found) for label, one in rows if (found := value(one))])
        yield _gauge(
            "schedctl_job_failure_threshold",
            "Consecutive failures at which the job counts as failing (from jobs.yaml).",
            [(labels[name], job.watch.alert_after) for name, job in jobs.items() if name in labels],
        )
        yield _gauge(
            "schedctl_job_run_deadline_timestamp_seconds",
            "Unix time at which the oldest attempt in progress reaches its time limit; +Inf when none runs.",
            [(label, _run_deadline(one, jobs.get(one.state.name))) for label, one in rows],
        )
        yield self._lost()
        yield from self._counters()
        yield self._durations()

    def _info(self, rows: list[tuple[str, JobGauge]], jobs: Mapping[str, Job]) -> str:
        told, self._told = self._told, {}
        lines = []
        for label, one in rows:
            job = jobs.get(one.state.name)
            known = told.get(one.state.name)
            facts = known[1] if known is not None and known[0] is job else _facts(job)
            self._told[one.state.name] = (job, facts)
            lines.append(f"schedctl_job_info{label}{facts}}} 1.0\n")
        return family("schedctl_job_info", "gauge", "Facts about the job; always 1. Join on job_name.", lines)

    def _lost(self) -> str:
        """A counter of a process that has just begun says nothing of what it lost before it was first asked."""
        last = self._tally.counts("last_lost_at")
        return _gauge(
            "schedctl_job_last_slot_lost_timestamp_seconds",
            "Unix time at which this node last noted that occurrences will not run (missed, lock); only of jobs that "
            "lost any since it started.",
            [(label, last[(job,)]) for job, label in self._labels.items() if (job,) in last],
        )

    def _counters(self) -> Iterator[str]:
        yield self._by_word("schedctl_job_runs_total", "Finished runs, by result.", "runs", "result", RESULTS)
        reasons = tuple(str(reason) for reason in SkipReason)
        yield self._by_word(
            "schedctl_job_skipped_runs_total", "Instants that were not run, by reason.", "skipped", "reason", reasons
        )
        yield self._counter("schedctl_job_retries_total", "Further attempts that were scheduled.", "retries")
        yield self._counter(
            "schedctl_job_missed_deadlines_total",
            "Deadlines that passed without a success, as this node noted them.",
            "missed_deadlines",
        )

    def _durations(self) -> str:
        name, lines = "schedctl_job_duration_seconds", []
        help_text = "For how long finished runs were at work; waits between attempts are not in it."
        if not self._histograms:
            totals = self._tally.totals("duration")
            for job, label in self._labels.items():
                count, total = totals.get((job,), (0, 0.0))
                lines.append(f"{name}_count{label}}} {count}.0\n{name}_sum{label}}} {total!r}\n")
            return family(name, "summary", help_text, lines)
        for job, label in self._labels.items():
            buckets, total = self._tally.histogram("duration", DURATION_BOUNDS, (job,))
            lines += [f'{name}_bucket{label},le="{bound}"}} {count!r}\n' for bound, count in buckets]
            lines.append(f"{name}_count{label}}} {buckets[-1][1]!r}\n{name}_sum{label}}} {total!r}\n")
        return family(name, "histogram", help_text, lines)

    def _counter(self, name: str, help_text: str, tally: str) -> str:
        counts = self._tally.counts(tally)
        lines = [f"{name}{label}}} {float(counts.get((job,), 0))!r}\n" for job, label in self._labels.items()]
        return family(name, "counter", help_text, lines)

    def _by_word(self, name: str, help_text: str, tally: str, label: str, words: tuple[str, ...]) -> str:
        """Every word of every job, also those that never happened: an increase from nothing is invisible."""
        counts = self._tally.counts(tally)
        ends = [(word, f',{label}="{word}"}} ') for word in words]
        counted = {labels[0] for labels in counts}
        never = "".join(f"{name}{{start}}{end}0.0\n" for _, end in ends)
        lines = []
        for job, start in self._labels.items():
            if job in counted:
                lines += [f"{name}{start}{end}{float(counts.get((job, word), 0))!r}\n" for word, end in ends]
            else:
                lines.append(never.replace("{start}", start))
        return family(name, "counter", help_text, lines)


def _deadlines(rows: list[tuple[str, JobGauge]], gone: tuple[str, ...], vouch: bool) -> str:
    deadlines = [(label, unix(one.state.deadline_at, math.inf)) for label, one in rows]
    deadlines += [(f"{{job_name={quoted(name)}", math.inf) for name in gone]
    return _gauge(
        "schedctl_job_deadline_timestamp_seconds",
        "Unix time by which the next success must be seen; +Inf while nothing is expected (paused, removed).",
        [row for row in deadlines if vouch or row[1] < math.inf],
    )


def _facts(job: Job | None) -> str:
    """The labels that follow the name."""
    schedule = None if job is None else job.schedule
    facts = {
        "schedule": "" if schedule is None else " | ".join(schedule.expressions),
        "timezone": "" if schedule is None else schedule.zone,
        "team": "" if job is None else job.watch.team,
        "severity": "" if job is None else job.watch.severity,
        "kind": "" if job is None else job.action.kind,
    }
    return "".join(f",{name}={quoted(value)}" for name, value in facts.items())


def _run_deadline(one: JobGauge, job: Job | None) -> float:
    if job is None or one.attempt_since is None:
        return math.inf
    return one.attempt_since.timestamp() + job.timeout.total_seconds()


def unix(instant: datetime | None, none: float) -> float:
    return none if instant is None else instant.timestamp()


def _gauge(name: str, help_text: str, rows: list[tuple[str, float]]) -> str:
    text = family(name, "gauge", help_text, [f"{name}{label}}} {float(value)!r}\n" for label, value in rows])
    # Line ends within label values are escaped, so this is no label.
    return text.replace(" inf\n", " +Inf\n")


_Table = tuple[tuple[str, str, Callable[[JobGauge], float]], ...]

_GAUGES: _Table = (
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

_RARE: _Table = (
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
