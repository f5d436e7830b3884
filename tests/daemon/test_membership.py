"""A node and its supervisor, when that one does not come up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from scheduler.core.errors import SchedulerError, StartError
from scheduler.membership import TRIES, Membership


class ShyOwner:
    """Its first `failures` supervisors do not come up."""

    supervisor_pid = 4711

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.asked: list[str] = []

    def replace(self, node: str) -> None:
        self.asked.append(node)
        if len(self.asked) <= self.failures:
            raise StartError("the supervisor process did not come up")

    def trust(self, term_at: float | None, kill_at: float | None) -> None:
        pass


def member(owner: ShyOwner) -> Membership:
    anything: Any = SimpleNamespace
    made = Membership(anything(), "1", anything(publish=lambda *_, **__: None), anything(), anything())
    made.join(anything(lease=None, owner=owner, beats=anything(hurry=lambda: None)))
    return made


def test_another_supervisor_is_tried_where_one_does_not_come_up() -> None:
    owner = ShyOwner(TRIES - 1)
    node = member(owner)
    node.replace_supervisor(owner.supervisor_pid)
    assert owner.asked == [node.node()] * TRIES


def test_without_any_the_daemon_does_not_go_on() -> None:
    owner = ShyOwner(TRIES)
    with pytest.raises(SchedulerError, match="without a supervisor this daemon cannot go on"):
        member(owner).replace_supervisor(owner.supervisor_pid)
    assert len(owner.asked) == TRIES
