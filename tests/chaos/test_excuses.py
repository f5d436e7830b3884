"""What the nemesis' log explains is no problem: a flawless history in which something happened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.chaos.checker import check
from tests.chaos.flawless import (
    JOBS,
    QUIET,
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
from tests.chaos.log import EVERYBODY, Rest, Step, Swap
from tests.crash.checker import AttemptRow, SkipRow
from tests.crash.stamps import Stamp


def node_of(history: History, run: str) -> str:
    return history.log.places[next(one.place for one in history.stamps if one.run == run)]


def missed_while_the_database_was_away(history: History) -> None:
    skip_instead(history, "missed")
    befall(history, "restart-fast", EVERYBODY, 1024.0, 1025.5, 1026.0)


def missed_while_all_nodes_were_frozen(history: History) -> None:
    skip_instead(history, "missed")
    befall(history, "freeze-node", "n0", 1020.0, 1026.0, 1026.5)
    befall(history, "kill-node", "n1", 1024.9, 1025.5, 1026.0)


def lost_with_its_node(history: History) -> None:
    lose(history)
    befall(history, "kill-node", node_of(history, "skip-1025"), 1025.5, 1026.0, 1026.5)


def tried_again_because_its_node_died(history: History) -> None:
    try_again(history)
    befall(history, "kill-node", node_of(history, "swap-1025"), 1025.2, 1026.0, 1026.5)


def tried_again_because_a_lease_ran_out_after_the_network_was_well(history: History) -> None:
    try_again(history)
    drop(history, "swap-1025", "E")
    history.stamps.append(Stamp("E", "swap", 1025, "swap-1025", 2, 10_000, 1025.7, "/n1"))
    befall(history, "cut-black-hole", node_of(history, "swap-1025"), 1020.6, 1022.0, 1022.0)


def try_again(history: History) -> None:
    """A second attempt of swap's run of 1025."""
    for kind, at in (("S", 1025.5), ("E", 1025.7)):
        history.stamps.append(Stamp(kind, "swap", 1025, "swap-1025", 2, 10_000, at, "/n1"))
    history.attempts.append(AttemptRow("swap-1025", 2, "life-in-/n1", 10_000))
    drop(history, "swap-1030")
    forget(history, "swap-1030")
    history.skips.append(SkipRow("swap", "missed", 1030, 1030, 1))
    for run in range(1035, 1061, 5):
        change_stamp(history, f"swap-{run}", "S", fence=10_000 + run)
        change_stamp(history, f"swap-{run}", "E", fence=10_000 + run)
        change_attempt(history, f"swap-{run}", fence=10_000 + run)
    befall(history, "stall", EVERYBODY, 1029.0, 1030.0, 1030.0)
    change_run(history, "swap-1025", attempt=2)


def overlap_right_after_a_thaw(history: History) -> None:
    befall(history, "freeze-node", node_of(history, "skip-1025"), 1025.5, 1027.0, 1027.2)
    change_stamp(history, "skip-1025", "E", at=1027.4)


def overlap_in_the_moment_of_a_thaw(history: History) -> None:
    """Stamps are older by up to their resolution than what they tell of."""
    befall(history, "freeze-node", node_of(history, "skip-1025"), 1025.5, 1027.308, 1027.4)
    change_stamp(history, "skip-1025", "E", at=1027.3)


def clock_of_the_database_set_forwards(history: History) -> None:
    """By 20 s at 1030: 1031 to 1050 fall due at once, and all that comes is 20 s earlier."""
    history.log.steps.append(Step(1029.9, 1030.0, 20.0))
    befall(history, "clock-database", EVERYBODY, 1029.9, 1030.0, 1030.0)
    gone = [run.id for run in history.runs if run.instant is not None and 1030 <= run.instant < 1050]
    for run in gone:
        forget(history, run)
        drop(history, run)
    history.skips[:] = [one for one in history.skips if not 1030 <= one.first < 1050]
    history.stamps[:] = [
        replace(one, at=one.at - 20.0) if (one.instant or 0) >= 1050 else one for one in history.stamps
    ]
    for job in JOBS:
        if job.period is not None:
            first = -(-1030 // job.period) * job.period
            last = 1049 // job.period * job.period
            history.skips.append(SkipRow(job.name, "missed", first, last, (last - first) // job.period + 1))
    history.log.swaps[1] = replace(history.log.swaps[1], asked=QUIET - 20, answered=QUIET - 19.9)


def schedule_changed(history: History) -> None:
    """swap, due every 5 s, every 15 s from 1032 on."""
    old, quiet = history.log.swaps
    history.log.swaps[:] = [old, Swap(1031.9, 1032.0, {**old.periods, "swap": 15}), quiet]
    for instant in (1040, 1045, 1055, 1060):
        forget(history, f"swap-{instant}")
        drop(history, f"swap-{instant}")


def paused(history: History) -> None:
    skip_instead(history, "paused")
    history.log.rests.append(Rest("swap", 1022.0, 1022.1, 1028.0, 1028.1))


def canceled_since_nobody_could_write_its_end(history: History) -> None:
    change_run(history, "swap-1025", status="CANCELED")
    befall(history, "restart-immediate", EVERYBODY, 1025.5, 1026.0, 1026.5)


def paused_by_a_clock_that_was_set_back(history: History) -> None:
    """What had not been planned yet when the clock was set back lies in the pause that then began."""
    skip_instead(history, "paused")
    history.log.steps[:] = [Step(1025.4, 1025.5, -10.0), Step(1027.9, 1028.0, 0.0)]
    history.log.rests.append(Rest("swap", 1026.0, 1026.1, 1029.0, 1029.1))
    befall(history, "clock-database", EVERYBODY, 1025.4, 1028.0, 1028.0)


def paused_before_anybody_could_plan_it(history: History) -> None:
    """It fell due while all nodes were frozen; somebody paused the job before they thawed."""
    skip_instead(history, "paused")
    for node in history.nodes:
        befall(history, "freeze-node", node, 1024.5, 1027.0, 1027.2)
    history.log.rests.append(Rest("swap", 1026.0, 1027.1, 1029.0, 1029.1))


def lost_because_its_end_could_not_be_written(history: History) -> None:
    """Its node was well while it ran, and was stopped before it had told anybody."""
    change_run(history, "swap-1025", status="FAILED", reason="lost")
    (end,) = [one.at for one in history.stamps if (one.run, one.kind) == ("swap-1025", "E")]
    befall(history, "stop-daemon", node_of(history, "swap-1025"), end + 0.2, 1034.0, 1034.2)


def waited_until_somebody_could_plan_the_next_one(history: History) -> None:
    """Its lock was not had by others before its next instant came, but before anybody could plan that."""
    befall(history, "restart-fast", EVERYBODY, 1029.5, 1040.5, 1041.0)
    change_run(history, "left-1030", status="SKIPPED", reason="lock")
    for run in ("left-1030", "right-1030"):
        drop(history, run)
    forget(history, "right-1030")
    history.skips.append(SkipRow("right", "missed", 1030, 1030, 1))


EXCUSED = [
    waited_until_somebody_could_plan_the_next_one,
    paused_before_anybody_could_plan_it,
    lost_because_its_end_could_not_be_written,
    paused_by_a_clock_that_was_set_back,
    canceled_since_nobody_could_write_its_end,
    missed_while_the_database_was_away,
    missed_while_all_nodes_were_frozen,
    lost_with_its_node,
    tried_again_because_its_node_died,
    tried_again_because_a_lease_ran_out_after_the_network_was_well,
    overlap_right_after_a_thaw,
    overlap_in_the_moment_of_a_thaw,
    clock_of_the_database_set_forwards,
    schedule_changed,
    paused,
]


@pytest.mark.parametrize("befalls", EXCUSED, ids=lambda one: one.__name__)
def test_what_the_log_explains_is_no_problem(befalls: Callable[[History], None]) -> None:
    history = clean()
    befalls(history)
    assert [str(problem) for problem in check(history).problems] == []
