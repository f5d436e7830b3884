"""The load: jobs of every kind, whose children write down by themselves when they start, live on and end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.crash.load import MARK, QUIET
from tests.crash.stamps import stamp_command

NARROW, CONCURRENCY = "narrow", 4
RATED, RATE, BURST = "rated", 120, 1
"""`RATE` starts a minute."""
SOURCE, SECRET = "shop", "nobody-knows"
SECRET_NAME = "CHAOS_SHOP_SECRET"

_PERIODS = (5, 10, 15, 20, 30, 60)
_LONGS = (0.0, 0.2, 1.5, 0.0, 4.0, 0.5, 9.0, 0.2, 20.0, 2.5)


@dataclass(frozen=True)
class ChaosJob:
    """`period` in seconds (None: no schedule); `seconds`: how long its children take; `fails`: they end with 3."""

    name: str
    overlap: str
    seconds: float
    period: int | None = None
    lock: str | None = None
    queue: str = "wide"
    on_lost: str = "fail"
    fails: bool = False
    on_event: bool = False
    wavers: bool = False
    """Its period changes with every other reload."""

    @property
    def exclusion(self) -> str | None:
        """What its runs hold while they run; None: nothing."""
        return None if self.overlap == "allow" else self.lock or self.name


def jobs(count: int) -> list[ChaosJob]:
    """Half of them are due every second, the others every 5 s to every minute; all policies, a shared lock, both
    queues; besides them one that runs nearly always, and the jobs that only clients ask for."""
    made = [_scheduled(number) for number in range(count)]
    return [
        *made,
        # Whatever befalls a node finds a child of it that has seconds to go.
        ChaosJob("long", "skip", 9.0, 1),
        ChaosJob("api-short", "allow", 0.2, on_lost="retry"),
        ChaosJob("api-long", "allow", 5.0, on_lost="retry"),
        ChaosJob("api-line", "queue", 0.5, on_lost="retry"),
        ChaosJob("api-narrow", "allow", 3.0, queue=NARROW, on_lost="retry"),
        ChaosJob("api-rated", "allow", 0.2, queue=RATED, on_lost="retry"),
        ChaosJob("event-a", "allow", 0.2, on_event=True, on_lost="retry"),
        ChaosJob("event-b", "queue", 0.2, on_event=True, on_lost="retry"),
    ]


def _scheduled(number: int) -> ChaosJob:
    name = f"load-{number:03d}"
    on_lost = "retry" if number % 3 == 0 else "fail"
    period = 1 if number % 2 == 0 else _PERIODS[number // 2 % len(_PERIODS)]
    seconds = _LONGS[number // 2 % len(_LONGS)]
    if number % 10 == 1:  # more than four at once would like to run
        return ChaosJob(name, "skip", 4.0, 5, queue=NARROW, on_lost=on_lost)
    if number % 20 == 2:
        return ChaosJob(name, "skip", 0.2, 1, queue=RATED, on_lost=on_lost)
    if number % 10 in (3, 8):
        return ChaosJob(
            name, "queue" if number % 20 == 3 else "skip", min(seconds, 2.5), period, f"shared-{number // 20}"
        )
    if number % 10 == 4:
        return ChaosJob(name, "allow", min(seconds, 2.5), period, on_lost=on_lost)
    if number % 10 == 5:
        return ChaosJob(name, "replace", seconds, period, on_lost=on_lost)
    if number % 10 == 6:
        return ChaosJob(name, "queue", seconds, period, on_lost=on_lost)
    if number % 20 == 12:
        return ChaosJob(name, "skip", 0.2, 2, on_lost=on_lost, wavers=True)
    return ChaosJob(name, "skip", seconds, period, on_lost=on_lost, fails=number % 20 == 17)


def periods(load: list[ChaosJob], reload: int) -> dict[str, int | None]:
    """What each job's period is after so many reloads."""
    return {job.name: 3 if job.wavers and reload % 4 >= 2 else job.period for job in load}


def text(load: list[ChaosJob], stamps: Path, mark: str, periods: Mapping[str, int | None], serial: int) -> str:
    """A jobs file; each `serial` makes another one. A job without a period for once is due in a year."""
    lines = [
        f"# {serial}",
        "defaults: {timezone: UTC, queue: wide, retries: 0, kill_after: 1s}",
        "queues:",
        "  wide: {concurrency: 2000}",
        f"  {NARROW}: {{concurrency: {CONCURRENCY}}}",
        f"  {RATED}: {{rate: {RATE}/m, burst: {BURST}}}",
        "sources:",
        f"  {SOURCE}:",
        f"    signature: {{scheme: hmac, header: X-Signature, secrets: [{{env: {SECRET_NAME}}}]}}",
        "    event: {id: id, type: type}",
        "jobs:",
    ]
    for number, job in enumerate(load):
        lines.append(f"  {job.name}:")
        if job.period is not None:
            lines.append(f"    schedule: '{_cron(periods[job.name])}'")
        if job.on_event:
            lines.append(f"    on_event: {SOURCE}")
        lines.append(f"    overlap: {job.overlap}")
        if job.lock is not None:
            lines.append(f"    lock: {job.lock}")
        # Half of the jobs are changed by every reload.
        lines += [
            f"    queue: {job.queue}",
            f"    on_lost: {job.on_lost}",
            f"    description: of file {serial if number % 2 else 0}",
            f"    env: {{{MARK}: {mark}}}",
            f"    command: '{_command(job, stamps)}'",
        ]
    return "\n".join(lines) + "\n"


def _cron(period: int | None) -> str:
    if period is None:
        return QUIET
    return "0 * * * * *" if period == 60 else f"*/{period} * * * * *"


def _command(job: ChaosJob, stamps: Path) -> str:
    start, lives, end = (stamp_command(kind, stamps) for kind in "STE")
    seconds = job.seconds
    steps = ""
    if seconds >= 2:
        whole = int(seconds)
        steps = f"i=0; while [ $i -lt {whole} ]; do sleep 1; {lives}; i=$((i+1)); done; "
        seconds -= whole
    if seconds:
        steps += f"sleep {seconds}; "
    return f"{start}; {steps}{end}" + ("; exit 3" if job.fails else "")
