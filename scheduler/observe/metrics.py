"""`/metrics`: what the database said last, what notices told, rendered from memory.

All series of a job exist from the first refresh after it was loaded (counters at 0) and end with it; its deadline says
`+Inf` for a while longer, also after a restart, so that no rule that looks back sees a ghost. Label values are names
and short fixed words.
"""

from __future__ import annotations

import math
import platform
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric

from scheduler.core.job import Configuration
from scheduler.core.look import Look
from scheduler.core.notices import Bus, Notice
from scheduler.core.queries import Gauges, Readable
from scheduler.core.value_object import value_object
from scheduler.observe.daemon_families import (
    HTTP_BOUNDS,
    START_DELAY_BOUNDS,
    OwnState,
    Surroundings,
    Turning,
    daemon_families,
)
from scheduler.observe.job_families import DURATION_BOUNDS, UNWANTED, JobFamilies
from scheduler.observe.scan_families import ScanLook, heard, look, scan_families
from scheduler.observe.tally import Tally

EVERY = 5.0
"""Seconds between two looks at the database."""
ASKING, LULL = 180.0, 60.0
"""For so many seconds somebody who asked is expected again; while nobody is, what other nodes do is read less often."""
WHOLE = 300.0
"""Seconds after which a look takes in every job again, not just those of which something was heard."""
OVERDUE = 12.0
"""Seconds without a look after which the database counts as away."""
BLIND = 60.0
"""Seconds without the database after which `+Inf` deadlines are no longer vouched for."""


class Metrics:
    """`configuration` is the one in force on this node (None: not yet), `loops` its loops by name, `broken` the broken
    invariants, `own` what this node says of itself, `messages` how much it logged, by level. `job_histograms`: how long
    runs take in 18 series per job rather than 2."""

    def __init__(
        self,
        bus: Bus,
        version: str,
        tzdata: str,
        *,
        configuration: Callable[[], Configuration | None] = lambda: None,
        loops: Mapping[str, Turning] | None = None,
        broken: Callable[[], Mapping[str, str]] = dict,
        own: Callable[[], OwnState | None] = lambda: None,
        messages: Callable[[], Mapping[str, int]] = dict,
        monotonic: Callable[[], float] = time.monotonic,
        job_histograms: bool = False,
    ) -> None:
        self._configuration = configuration
        self._monotonic = monotonic
        self._surroundings = Surroundings(
            build=(version, platform.python_version(), tzdata),
            loops=loops or {},
            broken=broken,
            own=own,
            messages=messages,
            monotonic=monotonic,
        )
        self._tally = Tally()
        self._jobs = JobFamilies(self._tally, job_histograms)
        self._lock = threading.Lock()
        self._gauges: Gauges | None = None
        self._scans = ScanLook()
        self._read_at = -math.inf
        self._whole_at = -math.inf
        self._refreshed_at = self._asked_at = -math.inf
        self._mark: str | None = None
        self._touched: set[str] | None = None
        self._now = datetime.now(UTC)
        self._database_up = False
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)
        bus.subscribe(self._hear, but={"event.received"})

    def rests(self, look: Look) -> bool:
        """Nothing was written since the last refresh, so what it read is what is there now; or that is no EVERY ago.
        What other nodes write may wait for LULL while nobody asks."""
        monotonic = self._monotonic()
        if monotonic - self._read_at < EVERY:
            return True
        asked = monotonic - self._asked_at < ASKING
        elsewhere = look.mark != self._mark and (asked or monotonic - self._refreshed_at >= LULL)
        if self._gauges is None or self._touched is None or self._touched or elsewhere:
            self._mark = look.mark
            return False
        with self._lock:
            self._now, self._read_at, self._database_up = look.now, monotonic, True
        return True

    def refresh(self, readable: Readable, now: datetime, *, force: bool = False) -> bool:
        """Reads the gauges if the last look is EVERY seconds old; whether it did. What the database raises goes
        through, and is shown as `schedctl_database_up 0`."""
        monotonic = self._monotonic()
        if not force and monotonic - self._read_at < EVERY:
            return False
        touched = self._touched
        if force or self._gauges is None or not _alone(self._gauges) or monotonic - self._whole_at >= WHOLE:
            touched = None
        # Before the look: what is heard while it lasts may be younger than what it finds.
        self._touched = set()
        try:
            with readable.queries() as queries:
                gauges = queries.gauges(now, touched)
                scans = look(queries, self._configuration(), now)
        except BaseException:
            self._database_up = False
            self._touched = None
            raise
        if touched is None or self._gauges is None:
            self._whole_at = monotonic
        else:
            gauges = _merged(self._gauges, gauges, touched)
        with self._lock:
            self._jobs.update(gauges)
            self._gauges, self._now, self._read_at, self._database_up = gauges, now, monotonic, True
            self._refreshed_at, self._scans = monotonic, scans
        return True

    def render(self) -> bytes:
        """The exposition text. Takes no lock that a refresh holds while it waits for the database."""
        self._asked_at = self._monotonic()
        configuration = self._configuration()
        parts: list[bytes] = []
        with self._lock:
            if self._gauges is not None:
                jobs = configuration.jobs if configuration is not None else {}
                texts = self._jobs.families(self._gauges, jobs, vouch=self._silent <= BLIND)
                parts = [text.encode() for text in texts]
        parts.append(generate_latest(self._registry))
        return b"".join(parts)

    @property
    def _silent(self) -> float:
        """Seconds since the database was read."""
        return self._monotonic() - self._read_at

    def collect(self) -> Iterator[Metric]:
        """What prometheus_client asks for: all but the metrics of each job."""
        configuration = self._configuration()
        with self._lock:
            gauges, now, scans, silent = self._gauges, self._now, self._scans, self._silent
            # A look that hangs raises nothing.
            up = self._database_up and silent <= OVERDUE
        if gauges is not None:
            yield from scan_families(scans, self._tally, gauges, now, vouch=silent <= BLIND)
        yield from daemon_families(self._surroundings, self._tally, gauges, configuration, now, up=up)

    def served(self, route: str, method: str, status: int, seconds: float) -> None:
        """An answer of the API; `route` is a declared path, never one that somebody sent."""
        self._tally.add("http_requests", (route, method, str(status)))
        self._tally.observe("http_seconds", HTTP_BOUNDS, seconds, (route,))

    def received(self, source: str, what: str) -> None:
        """A request of a webhook's sender, and what became of it. `source` is one that is configured, or `other`."""
        self._tally.add("webhooks", (source, what))

    def _hear(self, notice: Notice) -> None:
        job = notice.fields.get("job")
        if self._touched is not None and isinstance(job, str):
            self._touched.add(job)
        elif notice.name == "config.loaded":
            self._touched = None
        listener = _LISTENERS.get(notice.name)
        if listener is not None:
            listener(self._tally, notice.fields)


@value_object
class Refresher:
    """What keeps `metrics` up to date, in a loop of its own."""

    metrics: Metrics
    readable: Readable

    def tick(self, now: datetime) -> int:
        """1 if it read the gauges."""
        return int(self.metrics.refresh(self.readable, now))

    def rests(self, look: Look) -> bool:
        return self.metrics.rests(look)


def _alone(gauges: Gauges) -> bool:
    """Whether nobody but this node changes the ledger, so that all changes are heard."""
    return sum(view.node.state in ("live", "stopping") for view in gauges.nodes) <= 1


def _merged(old: Gauges, new: Gauges, asked: Collection[str]) -> Gauges:
    """The new look, which asked for some jobs only, over the old one."""
    if not asked:
        return replace(new, jobs=old.jobs, gone=old.gone)
    jobs = {one.state.name: one for one in old.jobs if one.state.name not in asked}
    jobs |= {one.state.name: one for one in new.jobs}
    return replace(new, jobs=tuple(jobs[name] for name in sorted(jobs)), gone=old.gone)


def _settled(tally: Tally, fields: Mapping[str, object]) -> None:
    job, status, reason = str(fields["job"]), str(fields["status"]).lower(), fields.get("reason")
    if status == "pending":
        tally.add("retries", (job,))
        return
    result = str(reason) if status == "failed" and reason in ("timeout", "lost") else status
    tally.add("runs", (job, result))
    took = fields.get("took")
    if isinstance(took, float):
        tally.observe("duration", DURATION_BOUNDS, took, (job,))


def _skipped(tally: Tally, fields: Mapping[str, object]) -> None:
    job, reason, count = str(fields["job"]), str(fields["reason"]), fields.get("count", 1)
    tally.add("skipped", (job, reason), count if isinstance(count, int) else 1)
    if reason in UNWANTED:
        tally.put("last_lost_at", time.time(), (job,))


def _started(tally: Tally, fields: Mapping[str, object]) -> None:
    delay = fields.get("delay")
    if isinstance(delay, int | float):
        tally.observe("start_delay", START_DELAY_BOUNDS, delay)


def _loaded(tally: Tally, fields: Mapping[str, object]) -> None:
    tally.add("reloads", ("accepted",))
    tally.put("last_reload_ok", 1)
    tally.put("last_reload_at", time.time())


def _rejected(tally: Tally, fields: Mapping[str, object]) -> None:
    tally.add("reloads", ("refused",))
    tally.put("last_reload_ok", 0)


def _audited(tally: Tally, fields: Mapping[str, object]) -> None:
    unaccounted = fields.get("unaccounted")
    tally.add("unaccounted", (), unaccounted if isinstance(unaccounted, int) else 0)
    tally.put("audited_at", time.time())


def _stepped(tally: Tally, fields: Mapping[str, object]) -> None:
    tally.add("clock_steps")


def _told(tally: Tally, fields: Mapping[str, object], result: str) -> None:
    count = fields.get("count", 1)
    tally.add("notifications", (str(fields["channel"]), result), count if isinstance(count, int) else 1)


_LISTENERS: dict[str, Callable[[Tally, Mapping[str, object]], None]] = {
    "job.missed": lambda tally, fields: tally.add("missed_deadlines", (str(fields["job"]),)),
    "run.settled": _settled,
    "run.skipped": _skipped,
    "run.started": _started,
    "config.loaded": _loaded,
    "config.rejected": _rejected,
    "audit.finished": _audited,
    "clock.stepped": _stepped,
    "scan.read": heard,
    "notification.sent": lambda tally, fields: _told(tally, fields, "sent"),
    "notification.delayed": lambda tally, fields: _told(tally, fields, "delayed"),
    "notification.failed": lambda tally, fields: _told(tally, fields, "failed"),
    "supervisor.gone": lambda tally, fields: tally.add("supervisor_losses"),
    "node.dead": lambda tally, fields: tally.add("node_deaths"),
}
