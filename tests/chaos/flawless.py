"""The history of a flawless minute of two nodes, and ways to spoil it."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.history import History
from tests.chaos.load import NARROW, RATED, ChaosJob
from tests.chaos.log import Log, Request, Swap, Told, Trouble
from tests.crash.checker import AttemptRow, RunRow, SkipRow
from tests.crash.stamps import Stamp

START, QUIET, UNTIL = 1000.5, 1060.5, 1075.0
LEASE = 5.0
JOBS = [
    ChaosJob("skip", "skip", 1.5, 1),
    ChaosJob("swap", "replace", 0.2, 5),
    ChaosJob("left", "queue", 0.2, 10, "both"),
    ChaosJob("right", "skip", 0.2, 10, "both"),
    ChaosJob("fails", "skip", 0.2, 20, fails=True),
    *(ChaosJob(f"narrow-{number}", "allow", 4.0, 5, queue=NARROW) for number in range(4)),
    ChaosJob("rated", "allow", 0.0, 1, queue=RATED),
    ChaosJob("asked", "allow", 0.2),
    ChaosJob("event", "allow", 0.2, on_event=True),
]


class Maker:
    """Writes what a flawless installation would."""

    def __init__(self) -> None:
        periods = {job.name: job.period for job in JOBS}
        quiet: dict[str, int | None] = dict.fromkeys(periods)
        log = Log(
            swaps=[Swap(START - 0.2, START, periods), Swap(QUIET, QUIET + 0.1, quiet)],
            places={"/n0": "n0", "/n1": "n1"},
        )
        jobs = {job.name: job for job in JOBS}
        self.history = History(jobs, ("n0", "n1"), LEASE, UNTIL, log, [], [], [], [])
        self._fence = 0

    def run(
        self, job: str, instant: int | None, at: float, seconds: float, key: str = "", cause: str = "schedule"
    ) -> str:
        name = f"{job}-{instant if instant is not None else key}"
        self._fence += 1
        place = "/n0" if self._fence % 2 else "/n1"
        for kind, when in (("S", at), ("E", at + seconds)):
            self.history.stamps.append(Stamp(kind, job, instant, name, 1, self._fence, when, place))
        self.history.attempts.append(AttemptRow(name, 1, f"life-in-{place}", self._fence))
        fails = self.history.jobs[job].fails
        status, reason = ("FAILED", "exit") if fails else ("COMPLETED", None)
        self.history.runs.append(RunRow(name, job, instant, status, reason, 1, False, cause, key))
        return name


def clean() -> History:
    """A minute of two nodes."""
    maker = Maker()
    log = maker.history.log
    for instant in range(1001, 1061):
        if instant % 2:
            maker.run("skip", instant, instant + 0.1, 1.5)
        else:
            maker.history.skips.append(SkipRow("skip", "overlap", instant, instant, 1))
        maker.run("rated", instant, instant + 0.1, 0.01)
        if instant % 5 == 0:
            maker.run("swap", instant, instant + 0.05, 0.2)
            for number in range(4):
                maker.run(f"narrow-{number}", instant, instant + 0.1, 4.0)
        if instant % 10 == 0:
            maker.run("left", instant, instant + 0.1, 0.2)
            maker.run("right", instant, instant + 0.4, 0.2)
        if instant % 20 == 0:
            maker.run("fails", instant, instant + 0.1, 0.2)
    for number in range(5):
        run = maker.run("asked", None, 1010.2 + number, 0.2, f"k{number}", "api")
        log.requests.append(Request("asked", f"k{number}", run, "api", 1010.0 + number, 1010.1 + number))
        maker.run("event", None, 1020.2 + number, 0.2, f"event:shop:e{number}", "event")
        log.told.append(Told(f"e{number}", ("event",), 1020.0 + number, 1020.1 + number))
    maker.history.stamps.sort(key=lambda stamp: stamp.at)
    return maker.history


def change_run(history: History, name: str, **changes: object) -> None:
    assert any(run.id == name for run in history.runs)
    history.runs[:] = [replace(run, **changes) if run.id == name else run for run in history.runs]  # type: ignore[arg-type]


def change_attempt(history: History, name: str, **changes: object) -> None:
    assert any(one.run == name for one in history.attempts)
    history.attempts[:] = [
        replace(one, **changes) if one.run == name else one  # type: ignore[arg-type]
        for one in history.attempts
    ]


def change_stamp(history: History, name: str, kind: str, **changes: object) -> None:
    assert any((one.run, one.kind) == (name, kind) for one in history.stamps)
    history.stamps[:] = [
        replace(one, **changes) if (one.run, one.kind) == (name, kind) else one  # type: ignore[arg-type]
        for one in history.stamps
    ]


def drop(history: History, name: str, kinds: str = "SE") -> None:
    history.stamps[:] = [one for one in history.stamps if one.run != name or one.kind not in kinds]


def forget(history: History, name: str) -> None:
    history.runs[:] = [run for run in history.runs if run.id != name]


def befall(history: History, fault: str, whom: str, begin: float, healed: float, end: float) -> None:
    history.log.troubles.append(Trouble(fault, whom, begin, healed, end))


def skip_instead(history: History, reason: str) -> None:
    """swap has a skip at 1025 and no run."""
    forget(history, "swap-1025")
    drop(history, "swap-1025")
    history.skips.append(SkipRow("swap", reason, 1025, 1025, 1))


def lose(history: History) -> None:
    """skip's run of 1025 is lost."""
    change_run(history, "skip-1025", status="FAILED", reason="lost")
    drop(history, "skip-1025", "E")
