"""The checker finds what it is there to find: a clean history with one fault planted at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.crash.checker import History, RunRow, SkipRow, check
from tests.crash.stamps import Stamp

SINCE, UNTIL = 1000, 1020


def clean() -> History:
    """One job, 20 instants: 10 runs of 1.5 s, each of which is in the way of the next instant."""
    runs, stamps, skips = [], [], []
    for at in range(SINCE + 1, UNTIL + 1, 2):
        run = f"run-{at}"
        runs.append(RunRow(run, "job", at, "COMPLETED", None, 1, unfinished=False))
        stamps.append(Stamp("S", "job", at, run, 1, at, at + 0.1))
        stamps.append(Stamp("E", "job", at, run, 1, at, at + 1.6))
        skips.append(SkipRow("job", "overlap", at + 1, at + 1, 1))
    return History({"job": "skip"}, SINCE, UNTIL, [(999.0, 1000.5)], stamps, runs, skips)


def test_a_clean_history_is_clean() -> None:
    verdict = check(clean())
    assert verdict.problems == []
    assert verdict.figures == {"expected": 20, "ran": 10, "skipped overlap": 10}


def lost_instant(history: History) -> None:
    history.skips.pop(3)


def two_runs_of_an_instant(history: History) -> None:
    history.runs.append(RunRow("other", "job", 1005, "COMPLETED", None, 1, unfinished=False))


def run_and_skip(history: History) -> None:
    history.skips.append(SkipRow("job", "overlap", 1005, 1005, 1))


def attempt_started_twice(history: History) -> None:
    history.stamps.append(Stamp("S", "job", 1005, "run-1005", 1, 1005, 1005.3))


def instant_run_by_two(history: History) -> None:
    history.stamps.append(Stamp("S", "job", 1005, "ghost", 1, 1, 1007.0))


def overlap(history: History) -> None:
    history.stamps[:] = [replace(s, at=1007.4) if s.run == "run-1005" and s.kind == "E" else s for s in history.stamps]


def survivor(history: History) -> None:
    history.survivors.append("4711 sleep 300")


def false_completed(history: History) -> None:
    history.stamps[:] = [s for s in history.stamps if not (s.run == "run-1009" and s.kind == "E")]


def false_lost(history: History) -> None:
    history.runs[:] = [replace(r, status="FAILED", reason="lost") if r.id == "run-1009" else r for r in history.runs]


def never_finished(history: History) -> None:
    history.runs[:] = [replace(r, status="RUNNING", unfinished=True) if r.id == "run-1019" else r for r in history.runs]


def missed_although_up(history: History) -> None:
    history.skips[:] = [replace(s, reason="missed") if s.first == 1010 else s for s in history.skips]


def overlap_without_a_run(history: History) -> None:
    history.runs[:] = [r for r in history.runs if r.instant is None or r.instant < 1009]
    history.stamps[:] = [s for s in history.stamps if s.at < 1009]
    history.skips[:] = [s for s in history.skips if s.first < 1009] + [SkipRow("job", "overlap", 1009, 1020, 12)]


def everything_skipped(history: History) -> None:
    history.runs.clear()
    history.stamps.clear()
    history.skips[:] = [SkipRow("job", "missed", 1001, 1020, 20)]


def not_in_the_ledger(history: History) -> None:
    history.stamps.append(Stamp("S", "job", 1030, "unknown", 1, 1, 1030.1))


def never_started(history: History) -> None:
    history.stamps[:] = [s for s in history.stamps if s.at < 1005]


@pytest.mark.parametrize(
    "plant",
    [
        lost_instant,
        two_runs_of_an_instant,
        run_and_skip,
        attempt_started_twice,
        instant_run_by_two,
        overlap,
        survivor,
        false_completed,
        false_lost,
        never_finished,
        missed_although_up,
        overlap_without_a_run,
        everything_skipped,
        not_in_the_ledger,
        never_started,
    ],
    ids=lambda plant: plant.__name__,
)
def test_a_planted_fault_is_found(plant: Callable[[History], None]) -> None:
    history = clean()
    plant(history)
    assert not check(history).clean
