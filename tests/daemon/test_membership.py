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


class Told:
    """What the beats are told, in order."""

    def __init__(self, owner: ShyOwner) -> None:
        self.owner = owner
        self.heard: list[tuple[str, int]] = []

    def distrust(self) -> None:
        self.heard.append(("distrust", len(self.owner.asked)))

    def extend_trust(self, switch: ShyOwner, before: float) -> None:
        self.heard.append(("extend_trust", len(self.owner.asked)))

    def hurry(self) -> None:
        self.heard.append(("hurry", len(self.owner.asked)))


def member(owner: ShyOwner, beats: Told | None = None) -> Membership:
    anything: Any = SimpleNamespace
    made = Membership(
        anything(), "1", anything(publish=lambda *_, **__: None), anything(boottime=lambda: 0.0), anything()
    )
    made.join(anything(lease=None, owner=owner, beats=beats or Told(owner)))
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


def test_nothing_is_started_between_two_supervisors() -> None:
    owner = ShyOwner(0)
    told = Told(owner)
    member(owner, told).replace_supervisor(owner.supervisor_pid)
    assert told.heard == [("distrust", 0), ("extend_trust", 1), ("hurry", 1)]
