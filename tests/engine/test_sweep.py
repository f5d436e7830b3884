"""When which part of the locks that runs wait for is looked at."""

from __future__ import annotations

from scheduler.engine.sweep import EVERY, Sweep


def test_a_part_a_second_until_the_round_is_over() -> None:
    now = [100.0]
    sweep = Sweep(lambda: now[0])
    assert sweep.begin() == ""
    sweep.looked("lock:k")
    assert sweep.begin() is None
    now[0] += EVERY
    assert sweep.begin() == "lock:k"
    sweep.looked("")
    assert sweep.begin() == ""
