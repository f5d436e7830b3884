"""The checker finds what it is there to find: a flawless history with one fault planted at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.chaos.checker import check
from tests.chaos.flawless import (
    JOBS,
    befall,
    change_attempt,
    change_run,
    change_stamp,
    clean,
    drop,
    forget,
    lose,
    skip_instead,
)
from tests.chaos.history import History
from tests.chaos.log import EVERYBODY, Request, Rest, Sighting
from tests.crash.checker import RunRow, SkipRow
from tests.crash.stamps import Stamp


def test_a_clean_history_is_clean() -> None:
    verdict = check(clean())
    assert [str(problem) for problem in verdict.problems] == []
    figures = verdict.figures
    assert (figures["expected"], figures["ran"], figures["skipped overlap"]) == (195, 165, 30)
    assert (figures["most at once"], figures["most starts in 60 s"]) == (4, 60)


# ---------------------------------------------------------------- planted faults


def lost_occurrence(history: History) -> None:
    forget(history, "swap-1025")
    drop(history, "swap-1025")


def lost_skip(history: History) -> None:
    history.skips.pop(3)


def two_runs_of_an_instant(history: History) -> None:
    history.runs.append(RunRow("other", "swap", 1025, "COMPLETED", None, 1, False))


def run_and_skip(history: History) -> None:
    history.skips.append(SkipRow("swap", "missed", 1025, 1025, 1))


def skipped_twice(history: History) -> None:
    history.skips.append(history.skips[3])


def skip_of_too_many(history: History) -> None:
    history.skips[3] = replace(history.skips[3], count=2)


def run_where_there_is_no_instant(history: History) -> None:
    change_run(history, "swap-1025", instant=1027)


def attempt_begun_twice(history: History) -> None:
    history.stamps.append(Stamp("S", "rated", 1025, "rated-1025", 1, 10_000, 1025.3, "/n1"))


def instant_run_by_two(history: History) -> None:
    history.stamps.append(Stamp("S", "rated", 1025, "ghost", 1, 10_000, 1025.5, "/n1"))
    history.runs.append(RunRow("ghost", "rated", None, "COMPLETED", None, 1, False))


def overlap(history: History) -> None:
    change_stamp(history, "skip-1025", "E", at=1027.4)


def overlap_of_a_shared_lock(history: History) -> None:
    change_stamp(history, "left-1030", "E", at=1030.5)


def overlap_long_after_a_thaw(history: History) -> None:
    befall(history, "freeze-node", "n0", 1020.0, 1026.0, 1026.2)
    befall(history, "freeze-node", "n1", 1020.0, 1026.0, 1026.2)
    change_stamp(history, "skip-1025", "E", at=1027.4)


def shrunk_fence(history: History) -> None:
    change_stamp(history, "skip-1025", "S", fence=3)
    change_stamp(history, "skip-1025", "E", fence=3)


def same_fence(history: History) -> None:
    other = next(one.fence for one in history.stamps if one.run == "left-1030")
    change_stamp(history, "right-1030", "S", fence=other)
    change_stamp(history, "right-1030", "E", fence=other)


def five_at_once(history: History) -> None:
    change_stamp(history, "narrow-0-1025", "E", at=1030.6)


def too_many_starts(history: History) -> None:
    for number in range(30):
        name = f"more-{number}"
        history.stamps.append(Stamp("S", "rated", None, name, 1, 10_000 + number, 1040.0 + number / 10, "/n0"))
        history.stamps.append(Stamp("E", "rated", None, name, 1, 10_000 + number, 1040.05 + number / 10, "/n0"))
        history.runs.append(RunRow(name, "rated", None, "COMPLETED", None, 1, False, "manual", name))


def never_ended_but_completed(history: History) -> None:
    drop(history, "skip-1025", "E")


def lost_but_nothing_was_wrong(history: History) -> None:
    lose(history)


def lost_elsewhere(history: History) -> None:
    """Something was wrong then, but with the other node."""
    lost_but_nothing_was_wrong(history)
    place = next(one.place for one in history.stamps if one.run == "skip-1025")
    befall(history, "kill-node", "n1" if place == "/n0" else "n0", 1025.5, 1026.0, 1026.5)


def failed_but_ended_well(history: History) -> None:
    change_run(history, "skip-1025", status="FAILED", reason="exit")


def completed_but_ended_badly(history: History) -> None:
    change_run(history, "fails-1020", status="COMPLETED", reason=None)


def canceled_by_nobody(history: History) -> None:
    change_run(history, "skip-1025", status="CANCELED")


def replaced_before_the_next_was_due(history: History) -> None:
    change_run(history, "swap-1025", status="CANCELED")


def tried_again_for_nothing(history: History) -> None:
    for kind, at in (("S", 1025.5), ("E", 1025.7)):
        history.stamps.append(Stamp(kind, "swap", 1025, "swap-1025", 2, 10_000, at, "/n1"))
    change_run(history, "swap-1025", attempt=2)


def ran_elsewhere_than_told(history: History) -> None:
    own = next(one.node for one in history.attempts if one.run == "skip-1025")
    other = next(one.node for one in history.attempts if one.node != own)
    change_attempt(history, "skip-1025", node=other)


def held_another_fence_than_told(history: History) -> None:
    change_attempt(history, "skip-1025", fence=10_000)


def attempt_that_nobody_noted(history: History) -> None:
    history.attempts[:] = [one for one in history.attempts if one.run != "skip-1025"]


def never_finished(history: History) -> None:
    change_run(history, "skip-1059", status="RUNNING", unfinished=True)


def not_in_the_ledger(history: History) -> None:
    forget(history, "asked-k3")


def more_attempts_than_known(history: History) -> None:
    change_run(history, "skip-1025", attempt=0)


def missed_though_all_was_well(history: History) -> None:
    skip_instead(history, "missed")


def missed_though_one_node_was_well(history: History) -> None:
    missed_though_all_was_well(history)
    befall(history, "freeze-node", "n0", 1018.0, 1030.0, 1030.5)


def paused_by_nobody(history: History) -> None:
    skip_instead(history, "paused")


def ran_though_paused(history: History) -> None:
    history.log.rests.append(Rest("swap", 1022.0, 1022.1, 1028.0, 1028.1))


def blacked_out(history: History) -> None:
    skip_instead(history, "blackout")


def waited_for_nobodys_lock(history: History) -> None:
    change_run(history, "left-1030", status="SKIPPED", reason="lock")
    drop(history, "left-1030")
    forget(history, "right-1030")
    drop(history, "right-1030")


def overlap_without_a_run(history: History) -> None:
    for instant in range(1025, 1061, 2):
        forget(history, f"skip-{instant}")
        drop(history, f"skip-{instant}")
    history.skips[:] = [skip for skip in history.skips if skip.first < 1025]
    history.skips.append(SkipRow("skip", "overlap", 1025, 1060, 36))


def replace_that_skips(history: History) -> None:
    skip_instead(history, "overlap")


def everything_missed(history: History) -> None:
    """And the database was away all the time, to make it credible."""
    befall(history, "restart-fast", EVERYBODY, 1000.0, 1060.0, 1060.0)
    history.runs.clear()
    history.stamps.clear()
    history.skips[:] = [
        SkipRow(job.name, "missed", first, 1060, (1060 - first) // job.period + 1)
        for job in JOBS
        if job.period is not None
        for first in [-(-1001 // job.period) * job.period]
    ]
    history.log.requests.clear()
    history.log.told.clear()


def everything_skipped_quietly(history: History) -> None:
    everything_missed(history)
    history.log.troubles.clear()


def nothing_ever_begins(history: History) -> None:
    history.stamps[:] = [one for one in history.stamps if one.at < 1005]
    for run in history.runs:
        if (run.instant or 0) >= 1005:
            change_run(history, run.id, status="FAILED", reason="lost")


def survivor_of_its_lease(history: History) -> None:
    history.log.sightings.append(Sighting("n0", "4711 sleep 20", 1030.0))


def survivor_at_the_end(history: History) -> None:
    history.survivors.append("4711 sleep 20")


def accepted_and_gone(history: History) -> None:
    forget(history, "asked-k2")
    drop(history, "asked-k2")


def accepted_and_dropped(history: History) -> None:
    change_run(history, "asked-k2", status="CANCELED")
    drop(history, "asked-k2")


def one_key_two_runs(history: History) -> None:
    history.log.requests.append(Request("asked", "k2", "asked-k3", "api", 1012.0, 1012.1))


def event_without_a_run(history: History) -> None:
    forget(history, "event-event:shop:e2")
    drop(history, "event-event:shop:e2")


def event_with_two_runs(history: History) -> None:
    history.runs.append(RunRow("again", "event", None, "COMPLETED", None, 1, False, "event", "event:shop:e2"))


def node_that_did_not_come_back(history: History) -> None:
    history.log.complaints.append((1040.0, "n1 is not ready 60 s after its trouble was over"))


PLANTED = [
    (lost_occurrence, "nothing accounts for instant 1025"),
    (lost_skip, "nothing accounts for instant 1008"),
    (two_runs_of_an_instant, "instant 1025 has 2 runs"),
    (run_and_skip, "instant 1025 has a run and a skip"),
    (skipped_twice, "instant 1008 is skipped 2 times"),
    (skip_of_too_many, "a skip of 2 instants from 1008 to 1008, of which 1 are"),
    (run_where_there_is_no_instant, "a run at 1027, where the schedule has none"),
    (attempt_begun_twice, "attempt 1 of rated-1025 began 2 times"),
    (instant_run_by_two, "instant 1025 was run by 2 runs"),
    (overlap, "before the last sign of life of skip-1025.1"),
    (overlap_of_a_shared_lock, "before the last sign of life of left-1030.1"),
    (overlap_long_after_a_thaw, "before the last sign of life of skip-1025.1"),
    (shrunk_fence, "fence 3 of skip-1025.1"),
    (same_fence, "is not above"),
    (five_at_once, "5 at once in queue narrow"),
    (too_many_starts, "starts in 10 s, allowed are 23"),
    (never_ended_but_completed, "COMPLETED, but its attempt 1 never wrote its end"),
    (lost_but_nothing_was_wrong, "while it ran"),
    (lost_elsewhere, "while it ran"),
    (failed_but_ended_well, "its child did not end with 3"),
    (completed_but_ended_badly, "its children end with 3"),
    (canceled_by_nobody, "nobody asked for that"),
    (replaced_before_the_next_was_due, "before the next occurrence was due"),
    (tried_again_for_nothing, "swap-1025 was tried again"),
    (ran_elsewhere_than_told, "attempt 1 of skip-1025 is said to have run in /n"),
    (held_another_fence_than_told, "attempt 1 of skip-1025 has fence 10000"),
    (attempt_that_nobody_noted, "attempt 1 of skip-1025 ran, and the ledger has no such attempt"),
    (never_finished, "RUNNING, but everything has ended"),
    (not_in_the_ledger, "ran and is not in the ledger"),
    (more_attempts_than_known, "had more attempts than the ledger knows"),
    (missed_though_all_was_well, "SKIPPED(missed), but nothing was wrong then"),
    (missed_though_one_node_was_well, "SKIPPED(missed), but nothing was wrong then"),
    (paused_by_nobody, "nobody had paused it"),
    (ran_though_paused, "though the job was paused"),
    (blacked_out, "there was no reason for that"),
    (waited_for_nobodys_lock, "no other job held its lock"),
    (overlap_without_a_run, "no run of it was unfinished then"),
    (replace_that_skips, "its overlap is replace"),
    (everything_missed, "only 0 of 0 instants"),
    (everything_skipped_quietly, "nothing was wrong then"),
    (nothing_ever_begins, "and never began"),
    (survivor_of_its_lease, "survivor on n0: 4711 sleep 20"),
    (survivor_at_the_end, "survivor at the end: 4711 sleep 20"),
    (accepted_and_gone, "was accepted and is gone"),
    (accepted_and_dropped, "was accepted and is CANCELED"),
    (one_key_two_runs, "key k2 has 2 runs"),
    (event_without_a_run, "event e2 has 0 runs"),
    (event_with_two_runs, "event e2 has 2 runs"),
    (node_that_did_not_come_back, "n1 is not ready"),
]


def test_what_begins_late_is_found_where_it_counts() -> None:
    history = clean()
    for kind in "SE":
        at = next(one.at for one in history.stamps if (one.run, one.kind) == ("skip-1025", kind))
        change_stamp(history, "skip-1025", kind, at=at + 1.2)
    history.skips[:] = [one for one in history.skips if one.first != 1026]
    history.skips.append(SkipRow("skip", "overlap", 1026, 1026, 1))
    forget(history, "skip-1027")
    drop(history, "skip-1027")
    history.skips.append(SkipRow("skip", "overlap", 1027, 1027, 1))
    assert check(history).problems == []
    assert [str(problem) for problem in check(history, punctual=True).problems] == [
        "skip: run skip-1025 began 1.30 s late, undisturbed"
    ]
    befall(history, "cut-reset", "n1", 1024.5, 1024.6, 1024.7)
    assert check(history, punctual=True).problems == []


@pytest.mark.parametrize(("plant", "found"), PLANTED, ids=[plant.__name__ for plant, _ in PLANTED])
def test_a_planted_fault_is_found(plant: Callable[[History], None], found: str) -> None:
    history = clean()
    plant(history)
    assert [str(problem) for problem in check(history).problems if found in str(problem)]
