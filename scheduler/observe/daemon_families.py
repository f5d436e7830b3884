"""The metrics of the daemon: loops, configuration, queues, nodes, audit."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import field
from datetime import datetime
from typing import Any, Protocol

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from scheduler.core.canary import CanaryFacts
from scheduler.core.job import Configuration
from scheduler.core.ping import Standing
from scheduler.core.queries import Gauges
from scheduler.core.value_object import value_object
from scheduler.observe.exposition import clean
from scheduler.observe.notification_family import notification_families
from scheduler.observe.ring_families import canary_families, ping_families
from scheduler.observe.tally import Tally

INVARIANTS = ("overdue", "orphan", "unserved_queue", "stuck_queue", "generations")
PROBLEMS = ("canary", "clock", "configuration", "database", "disk", "leaving", "loops", "ping", "supervisor")
HTTP_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
START_DELAY_BOUNDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)


class Turning(Protocol):
    """A loop: when its tick last ended well (monotonic seconds), how long that took, how many failed."""

    turned_at: float
    last_seconds: float
    errors: int


@value_object
class OwnState:
    """What a node says of itself: what its remarks are about, whether it stands aside because it cannot load what is in
    force, how many of its slots are taken, by how many seconds the database's clock is ahead of its own, how the canary
    is (None: nobody looks), and how the pings to dead man's switches outside fare, by target."""

    problems: Collection[str] = ()
    aside: bool = False
    slots: int = 0
    taken: int = 0
    clock_offset: float = 0.0
    canary: CanaryFacts | None = None
    pings: Mapping[str, Standing] = field(default_factory=dict)


@value_object
class Surroundings:
    """`build`: version, Python's version, tzdata's version."""

    build: tuple[str, str, str]
    loops: Mapping[str, Turning]
    broken: Callable[[], Mapping[str, str]]
    own: Callable[[], OwnState | None]
    messages: Callable[[], Mapping[str, int]]
    monotonic: Callable[[], float]


def daemon_families(
    around: Surroundings,
    tally: Tally,
    gauges: Gauges | None,
    configuration: Configuration | None,
    now: datetime,
    *,
    up: bool,
) -> Iterator[Metric]:
    """Everything without a job's name. `now` is when the gauges were read."""
    yield _gauge(
        "schedctl_build_info",
        "Version of the daemon; always 1.",
        ("version", "python_version", "tzdata_version"),
        {around.build: 1},
    )
    yield _gauge("schedctl_database_up", "Whether the database answered the last look (1) or not (0).", (), {(): up})
    yield from _loops(around)
    yield from _own(around)
    yield from _http(tally)
    yield from _webhooks(tally)
    yield from _configuration(tally, configuration)
    yield from notification_families(tally, gauges, configuration)
    if gauges is not None:
        yield from _ledger(gauges, now)
    broken = around.broken()
    yield _gauge(
        "schedctl_invariant_broken",
        "1 while the ledger contradicts itself in this way.",
        ("invariant",),
        {(name,): 0 for name in INVARIANTS} | {(name,): 1 for name in broken},
    )
    for name, help_text, word in _COUNTERS:
        yield CounterMetricFamily(name, help_text, value=tally.count(word))
    yield _gauge(
        "schedctl_audit_last_timestamp_seconds",
        "Unix time of the last audit of this process; 0 if none yet.",
        (),
        {(): tally.count("audited_at")},
    )
    buckets, total = tally.histogram("start_delay", START_DELAY_BOUNDS)
    yield HistogramMetricFamily(
        "schedctl_start_delay_seconds", "Actual start minus scheduled time.", buckets=buckets, sum_value=total
    )


_COUNTERS = (
    ("schedctl_unaccounted", "Instants that an audit found without a run or a reason.", "unaccounted"),
    ("schedctl_clock_steps", "Times the wall clock was found to have been set.", "clock_steps"),
    ("schedctl_supervisor_losses", "Times the supervisor ended by itself.", "supervisor_losses"),
    ("schedctl_node_deaths", "Nodes that this one declared dead.", "node_deaths"),
)


def _loops(around: Surroundings) -> Iterator[Metric]:
    silent = {name: around.monotonic() - loop.turned_at for name, loop in around.loops.items()}
    last = time.time() - max(silent.values(), default=0.0)
    yield _gauge(
        "schedctl_last_tick_timestamp_seconds",
        "Unix time of the last complete turn of the loop that turned least recently.",
        (),
        {(): last} if silent else {},
    )
    yield _gauge(
        "schedctl_loop_silent_seconds",
        "Seconds since the loop last turned well.",
        ("loop",),
        {(name,): seconds for name, seconds in silent.items()},
    )
    yield _gauge(
        "schedctl_loop_tick_seconds",
        "Duration of the loop's last turn.",
        ("loop",),
        {(name,): loop.last_seconds for name, loop in around.loops.items()},
    )
    family = CounterMetricFamily("schedctl_loop_errors", "Turns of the loop that failed.", labels=["loop"])
    for name, loop in around.loops.items():
        family.add_metric([name], loop.errors)
    yield family


def _own(around: Surroundings) -> Iterator[Metric]:
    family = CounterMetricFamily("schedctl_log_messages", "Lines that the daemon logged, by level.", labels=["level"])
    for level, count in around.messages().items():
        family.add_metric([level], count)
    yield family
    own = around.own()
    if own is None:
        return
    yield _gauge(
        "schedctl_daemon_problem",
        "1 while the daemon knows this to be wrong with itself; `schedctl status` says what.",
        ("about",),
        {(about,): about in own.problems for about in PROBLEMS},
    )
    yield _gauge(
        "schedctl_standing_aside",
        "1 while this node cannot load the configuration in force and neither plans nor starts anything.",
        (),
        {(): own.aside},
    )
    yield _gauge(
        "schedctl_worker_slots",
        "Runs that this node holds (busy), and those that it could hold besides (free).",
        ("state",),
        {("busy",): own.taken, ("free",): max(0, own.slots - own.taken)},
    )
    yield _gauge(
        "schedctl_clock_offset_seconds",
        "Seconds that the database's clock is ahead of this machine's.",
        (),
        {(): own.clock_offset},
    )
    yield from canary_families(own.canary)
    yield from ping_families(own.pings)


def _http(tally: Tally) -> Iterator[Metric]:
    counts = tally.counts("http_requests")
    family = CounterMetricFamily(
        "schedctl_http_requests", "Answers of the API, by declared path.", labels=["route", "method", "code"]
    )
    for labels, count in counts.items():
        family.add_metric(list(labels), count)
    yield family
    durations = HistogramMetricFamily(
        "schedctl_http_request_duration_seconds",
        "How long answers of the API took to make; long polls wait on purpose.",
        labels=["route"],
    )
    for route in sorted({labels[0] for labels in counts}):
        buckets, total = tally.histogram("http_seconds", HTTP_BOUNDS, (route,))
        durations.add_metric([route], buckets, total)
    yield durations


def _webhooks(tally: Tally) -> Iterator[Metric]:
    family = CounterMetricFamily(
        "schedctl_webhooks_received",
        "Requests to /webhooks/, by source and what became of them: stored, duplicate, or why not.",
        labels=["source", "result"],
    )
    for labels, count in tally.counts("webhooks").items():
        family.add_metric(list(labels), count)
    yield family


def _configuration(tally: Tally, configuration: Configuration | None) -> Iterator[Metric]:
    yield _gauge(
        "schedctl_config_info",
        "Hash of the configuration that this node works with; always 1.",
        ("hash",),
        {} if configuration is None else {(configuration.hash,): 1},
    )
    known = bool(tally.counts("reloads"))
    yield _gauge(
        "schedctl_config_last_reload_successful",
        "Whether the last load of jobs.yaml was accepted (1) or refused (0).",
        (),
        {(): tally.count("last_reload_ok") if known else 1},
    )
    yield _gauge(
        "schedctl_config_last_reload_success_timestamp_seconds",
        "Unix time of the last accepted configuration.",
        (),
        {(): tally.count("last_reload_at")},
    )
    family = CounterMetricFamily("schedctl_config_reloads", "Loads of jobs.yaml, by result.", labels=["result"])
    for result in ("accepted", "refused"):
        family.add_metric([result], tally.count("reloads", (result,)))
    yield family


def _ledger(gauges: Gauges, now: datetime) -> Iterator[Metric]:
    states = {"enabled": 0, "disabled": 0, "paused": 0, "running": 0, "overdue": 0}
    states |= dict.fromkeys(("missed", "failing", "unknown", "new"), 0)
    for one in gauges.jobs:
        states["enabled" if one.state.enabled else "disabled"] += 1
        states["paused"] += one.paused_since is not None
        states["running"] += one.running > 0
        states["overdue"] += one.state.deadline_at is not None and one.state.deadline_at < now
        states["new"] += one.state.last_success_at is None
        if one.state.state in states:
            states[one.state.state] += 1
    by_state = {(name,): float(count) for name, count in states.items()}
    yield _gauge("schedctl_jobs", "Jobs by state; a job may be in several.", ("state",), by_state)
    due = [one.state.next_due_at for one in gauges.jobs if one.state.enabled and one.state.next_due_at is not None]
    yield _gauge(
        "schedctl_planning_lag_seconds",
        "How long the most overdue instant has been waiting to be planned; 0 if none is overdue.",
        (),
        {(): max(0.0, (now - min(due)).total_seconds()) if due else 0.0},
    )
    yield _gauge(
        "schedctl_dead_letters",
        "Runs with a payload that gave up for good, over all jobs, removed ones too.",
        (),
        {(): sum(gauges.dead_letters.values())},
    )
    items: dict[tuple[str, ...], float] = {}
    ages: dict[tuple[str, ...], float] = {}
    for view in gauges.queues:
        name = view.queue.name
        counts = {"running": view.running, "ready": view.ready, "time": 0, "lock": 0, "pause": 0, **view.waiting}
        items |= {(name, state): float(count) for state, count in counts.items()}
        ages[name,] = max(0.0, (now - view.oldest).total_seconds()) if view.oldest is not None else 0.0
    yield _gauge("schedctl_queue_items", "Runs in the queue, by what they do or wait for.", ("queue", "state"), items)
    yield _gauge(
        "schedctl_queue_oldest_item_age_seconds", "Age of the oldest run that is ready to start.", ("queue",), ages
    )
    yield _gauge("schedctl_generation", "The newest generation in the database.", (), {(): gauges.generation})
    nodes = {"live": 0.0, "stopping": 0.0}
    for node in gauges.nodes:
        if node.node.state in nodes:
            nodes[node.node.state] += 1
    yield _gauge("schedctl_nodes", "Nodes by state.", ("state",), {(state,): count for state, count in nodes.items()})


def _gauge(name: str, help_text: str, labels: tuple[str, ...], values: Mapping[Any, float]) -> Metric:
    family = GaugeMetricFamily(name, help_text, labels=list(labels))
    for key, value in values.items():
        family.add_metric([clean(part) for part in key], value)
    return family
