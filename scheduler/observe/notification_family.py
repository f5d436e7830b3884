"""The metric of notifications: what became of attempts to tell people."""

from __future__ import annotations

from prometheus_client.metrics_core import CounterMetricFamily

from scheduler.core.job import Configuration
from scheduler.observe.tally import Tally

RESULTS = ("sent", "delayed", "failed")
"""Taken by the channel; to be tried again; given up."""


def notification_family(tally: Tally, configuration: Configuration | None) -> CounterMetricFamily:
    """Of the channels that are configured, from 0 on, by this node."""
    family = CounterMetricFamily(
        "schedctl_notifications",
        "Notifications that this node handed to a channel, by what came of it; delayed ones are tried again.",
        labels=["channel", "result"],
    )
    for channel in () if configuration is None else configuration.channels:
        for result in RESULTS:
            family.add_metric([channel, result], tally.count("notifications", (channel, result)))
    return family
