"""The metrics of notifications: what became of attempts to tell people."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from scheduler.core.job import Configuration
from scheduler.core.queries import Gauges
from scheduler.observe.tally import Tally

RESULTS = ("sent", "delayed", "failed")
"""Taken by the channel; to be tried again; given up."""


def notification_families(tally: Tally, gauges: Gauges | None, configuration: Configuration | None) -> Iterator[Metric]:
    """Of the channels that are configured, from 0 on: what this node did, and what the database says."""
    channels = () if configuration is None else tuple(configuration.channels)
    counted = CounterMetricFamily(
        "schedctl_notifications",
        "Notifications that this node handed to a channel, by what came of it; delayed ones are tried again.",
        labels=["channel", "result"],
    )
    for channel in channels:
        for result in RESULTS:
            counted.add_metric([channel, result], tally.count("notifications", (channel, result)))
    yield counted
    if gauges is None:
        return
    failing = GaugeMetricFamily(
        "schedctl_notifications_failing_since_timestamp_seconds",
        "Unix time since which the channel has taken nothing although it was tried, by whichever node; 0 if it has.",
        labels=["channel"],
    )
    for channel in channels:
        since = gauges.failing_channels.get(channel)
        failing.add_metric([channel], 0.0 if since is None else since.timestamp())
    yield failing
