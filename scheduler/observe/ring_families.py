"""The metrics of those who watch the watcher: the canary, and pings to dead man's switches outside."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import datetime

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from scheduler.core.canary import CanaryFacts
from scheduler.core.ping import Standing
from scheduler.observe.exposition import clean


def canary_families(facts: CanaryFacts | None) -> Iterator[Metric]:
    """None while nobody looks after it."""
    if facts is None:
        return
    for name, help_text, value in (
        (
            "schedctl_canary_last_success_timestamp_seconds",
            "Unix time at which the canary last came through; 0 if never.",
            _unix(facts.last_success_at, 0.0),
        ),
        (
            "schedctl_canary_deadline_timestamp_seconds",
            "Unix time by which it must come through; +Inf while nothing is expected (paused, leaving, no free slot).",
            _unix(facts.deadline_at, math.inf),
        ),
        (
            "schedctl_canary_seconds",
            "From the instant of its last success until that was recorded; 0 if there was none.",
            facts.took or 0.0,
        ),
        ("schedctl_canary_late", "1 while the canary's deadline has passed.", float(facts.late)),
    ):
        yield GaugeMetricFamily(name, help_text, value=value)


def ping_families(standings: Mapping[str, Standing]) -> Iterator[Metric]:
    """By target: a job's name, or `daemon`."""
    accepted = GaugeMetricFamily(
        "schedctl_external_ping_last_success_timestamp_seconds",
        "Unix time of the last ping that an outside dead man's switch accepted; 0 if none yet in this process.",
        labels=["target"],
    )
    failures = CounterMetricFamily(
        "schedctl_external_ping_failures", "Pings that an outside dead man's switch did not accept.", labels=["target"]
    )
    failing = GaugeMetricFamily(
        "schedctl_external_ping_failing_since_timestamp_seconds",
        "Unix time since which no ping has been accepted although some wait; 0 while they are.",
        labels=["target"],
    )
    for target, one in standings.items():
        labels = [clean(target)]
        accepted.add_metric(labels, _unix(one.accepted_at, 0.0))
        failures.add_metric(labels, one.failures)
        failing.add_metric(labels, _unix(one.failing_since, 0.0))
    yield accepted
    yield failures
    yield failing


def _unix(instant: datetime | None, none: float) -> float:
    return none if instant is None else instant.timestamp()
