"""Reloads, good and bad, in great number do not disturb what they do not concern."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from tests.daemon.conftest import Make
from tests.daemon.waiting import wait_for
from tests.long import LONG

pytestmark = [pytest.mark.load, pytest.mark.timeout(240), pytest.mark.xdist_group("load")]

STEADY = 200 if LONG else 40
"""Jobs that no reload concerns; each is due every second."""


def text(file: Path, edit: int) -> str:
    lines = ["defaults: {timezone: UTC, queue: load}", "queues: {load: {concurrency: 500}}", "jobs:"]
    for number in range(STEADY):
        lines.append(
            f"  steady-{number}: {{schedule: '* * * * * *', env: {{FILE: '{file}'}}, command: "
            "'read u _ < /proc/uptime; echo \"$SCHED_JOB_NAME $SCHED_SCHEDULED_FOR $u\" >> $FILE'}"
        )
    lines.append(f"  edited: {{schedule: '*/{2 + edit % 5} * * * * *', command: 'true', description: edit {edit}}}")
    if edit % 3 == 0:
        lines.append(f"  comes-and-goes-{edit}: {{schedule: '* * * * * *', command: 'true'}}")
    return "\n".join(lines) + "\n"


def test_nothing_is_lost_or_late(make_world: Make, tmp_path: Path) -> None:
    file, rounds = tmp_path / "stamps", 250 if LONG else 15
    world = make_world(text(file, 0), SCHEDULER_SLOTS="250")  # Who has as many at once gives them room.
    world.start()
    answers: Counter[int] = Counter()

    def reload() -> None:
        answers[world.ask("POST", "/v1/reload", {"drop_pending": True})[0]] += 1

    for number in range(rounds):
        broken = number % 5 == 4
        world.config.write_text("jobs: {broken: {schedule: '61 * * * *'}}" if broken else text(file, number))
        threads = [threading.Thread(target=reload) for _ in range(2)]
        for thread in threads:
            thread.start()
        threading.Event().wait(0.2)
        for thread in threads:
            thread.join()
    assert answers[200] >= rounds
    assert answers[422] >= rounds // 5
    assert set(answers) == {200, 422}
    # A good file at last, and a moment in which its jobs have run.
    world.config.write_text(text(file, 1))
    reload()
    threading.Event().wait(2)
    assert world.stop() == 0

    runs, skips = world.read_ledger()
    ran: dict[str, set[int]] = defaultdict(set)
    for run in runs:
        if run.instant is not None and run.job.startswith("steady"):
            assert run.instant not in ran[run.job], f"{run.job} has two runs of {run.instant}"
            ran[run.job].add(run.instant)
    skipped = {(skip.job, at) for skip in skips for at in range(skip.first, skip.last + 1)}
    for job, instants in ran.items():
        for instant in range(min(instants), max(instants) + 1):
            assert (instant in instants) != ((job, instant) in skipped), f"{job} at {instant}"
    # Late by more than a second would have been missed: every second has its occurrence.
    assert not [skip for skip in skips if skip.job.startswith("steady") and skip.reason == "missed"]
    late = sorted(stamp_lateness(world.boot(), file))
    assert len(late) > STEADY * 4
    print(f"lateness of {len(late)} starts: p50 {late[len(late) // 2]:.3f} s, last {late[-1]:.3f} s")
    wait_for(lambda: not world.survivors(), 5, "no process is left")


def stamp_lateness(boot: float, file: Path) -> list[float]:
    from datetime import datetime

    result = []
    for line in file.read_text().splitlines():
        _, instant, at = line.split()
        result.append(boot + float(at) - datetime.fromisoformat(instant).timestamp())
    return result
