"""Reports of scans as JSON: the result of a run, and what the API shows."""

from __future__ import annotations

from dataclasses import asdict

from scheduler.core.model import Json
from scheduler.core.scan import Aside, Counts, Hole, ScanReport
from scheduler.core.stamp import to_text


def counts_json(counts: Counts) -> dict[str, Json]:
    """`oldest_unseen_s` in seconds, None if nothing was missing. `miss_rate`: the share of injected events among those
    that were old enough, None if there were none."""
    found: dict[str, Json] = asdict(counts)
    oldest = found.pop("oldest_unseen")
    settled = counts.known + counts.injected
    found["oldest_unseen_s"] = None if oldest is None else oldest.total_seconds()
    found["miss_rate"] = counts.injected / settled if settled else None
    return found


def hole_json(hole: Hole) -> dict[str, Json]:
    return {
        "job": hole.job,
        "source": hole.source,
        "start": to_text(hole.start),
        "end": to_text(hole.end),
        "why": hole.why,
        "found_at": to_text(hole.found_at),
    }


def aside_json(aside: Aside) -> dict[str, Json]:
    return {
        "job": aside.job,
        "source": aside.source,
        "found_at": to_text(aside.found_at),
        "occurred_at": None if aside.occurred_at is None else to_text(aside.occurred_at),
        "why": aside.why,
        "begins": aside.begins,
        "length": aside.length,
    }


def report_json(report: ScanReport) -> dict[str, Json]:
    return {
        "job": report.job,
        "source": report.source,
        "run": report.run,
        "window": {"start": to_text(report.window.start), "end": to_text(report.window.end)},
        **counts_json(report.counts),
        "began_at": to_text(report.began_at),
        "ended_at": to_text(report.ended_at),
        "complete": report.complete,
        "why": report.why,
        "holes": [hole_json(hole) for hole in report.holes],
        "unlisted": report.unlisted,
        "unlisted_ids": list(report.unlisted_ids),
        "lag_s": None if report.lag is None else report.lag.total_seconds(),
        "dry_run": report.dry_run,
        "asides": [aside_json(aside) for aside in report.asides],
    }
