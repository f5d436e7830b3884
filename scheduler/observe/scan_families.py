"""The metrics of compensation scans."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import field
from datetime import datetime

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from scheduler.core.job import Configuration
from scheduler.core.queries import Gauges, Queries
from scheduler.core.scan_queries import ScanView
from scheduler.core.scanning import overdue_since
from scheduler.core.value_object import value_object
from scheduler.observe.tally import Tally

RESULTS = ("injected", "known", "too_young", "undecodable")


@value_object
class ScanLook:
    """What the database said of scans. `overdue` counts by source the events whose webhook nobody waits for any longer;
    `holes` the parts of its past that cannot be proven complete."""

    views: tuple[ScanView, ...] = ()
    overdue: Mapping[str, int] = field(default_factory=dict)
    holes: Mapping[str, int] = field(default_factory=dict)


def look(queries: Queries, configuration: Configuration | None, now: datetime) -> ScanLook:
    """Costs nothing where nobody scans."""
    jobs = {} if configuration is None else configuration.jobs
    specs = {name: job.compensate for name, job in jobs.items() if job.compensate is not None}
    if not specs:
        return ScanLook()
    first = {spec.source: spec for spec in sorted(specs.values(), key=lambda spec: spec.alarm_after, reverse=True)}
    overdue = {
        source: queries.webhooks_overdue(source, *overdue_since(spec, now)) for source, spec in sorted(first.items())
    }
    holes = dict.fromkeys(overdue, 0)
    for hole in queries.scan_holes():
        if hole.source in holes:
            holes[hole.source] += 1
    return ScanLook(tuple(queries.scans(sorted(specs))), overdue, holes)


def scan_families(found: ScanLook, tally: Tally, gauges: Gauges, now: datetime, *, vouch: bool) -> Iterator[Metric]:
    """`now` is when the database was read; with `vouch` False a deadline that says +Inf is left out, as for jobs."""
    if not found.views:
        return
    sources = sorted(found.overdue)
    counted = CounterMetricFamily(
        "schedctl_compensations",
        "Events that scans were told of, by source and what became of them: injected are those whose webhook was lost.",
        labels=["source", "result"],
    )
    for source in sources:
        for result in RESULTS:
            counted.add_metric([source, result], tally.count("compensations", (source, result)))
    yield counted
    yield _gauge(
        "schedctl_webhooks_overdue",
        "Events that a scan found, and whose webhook has not come by alarm_after; each counts for a day.",
        "source",
        found.overdue,
    )
    yield _gauge(
        "schedctl_compensation_holes",
        "Parts of the source's past that cannot be proven complete: its provider lists them no longer.",
        "source",
        found.holes,
    )
    deadlines = {one.state.name: one.state.deadline_at for one in gauges.jobs}
    known = {view.job: deadlines.get(view.job) for view in found.views if view.job in deadlines}
    yield _gauge(
        "schedctl_compensation_scan_deadline_timestamp_seconds",
        "Unix time by which the scan must have succeeded; +Inf while nothing is expected.",
        "scan",
        {job: math.inf if at is None else at.timestamp() for job, at in known.items() if vouch or at is not None},
    )
    marks = {view.job: view.state.watermark for view in found.views if view.state is not None}
    yield _gauge(
        "schedctl_compensation_watermark_lag_seconds",
        "How long ago everything is settled up to: what occurred since may be missing still.",
        "scan",
        {job: max(0.0, (now - mark).total_seconds()) for job, mark in marks.items() if mark is not None},
    )
    yield from _last(found)


def _last(found: ScanLook) -> Iterator[Metric]:
    last = {view.job: view.last for view in found.views if view.last is not None}
    yield _gauge(
        "schedctl_compensation_last_scan_complete",
        "Whether the last scan read its whole window and could trust the list (1) or not (0).",
        "scan",
        {job: float(one.complete) for job, one in last.items()},
    )
    settled = {job: one.counts.injected + one.counts.known for job, one in last.items()}
    yield _gauge(
        "schedctl_compensation_miss_ratio",
        "Of the events of the last scan that were old enough, the share whose webhook was lost.",
        "scan",
        {job: one.counts.injected / settled[job] if settled[job] else 0.0 for job, one in last.items()},
    )
    yield _gauge(
        "schedctl_compensation_oldest_unseen_seconds",
        "Age of the oldest event that the last scan found to be missing; 0 if none was.",
        "scan",
        {
            job: 0.0 if one.counts.oldest_unseen is None else one.counts.oldest_unseen.total_seconds()
            for job, one in last.items()
        },
    )
    yield _gauge(
        "schedctl_compensation_unlisted",
        "Webhooks of the last scan's window that its list lacks: a broken list, or somebody else who can sign.",
        "scan",
        {job: float(one.unlisted) for job, one in last.items()},
    )


def heard(tally: Tally, fields: Mapping[str, object]) -> None:
    """A page of a list was taken."""
    source = str(fields["source"])
    for result in RESULTS:
        count = fields.get(result)
        if isinstance(count, int) and count:
            tally.add("compensations", (source, result), count)


def _gauge(name: str, help_text: str, label: str, values: Mapping[str, float]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, help_text, labels=[label])
    for value, number in values.items():
        family.add_metric([value], number)
    return family
