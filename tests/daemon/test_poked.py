"""What is announced does not wait for the notifier's next round."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from scheduler.core.notices import Bus
from scheduler.engine.clock import SystemClock
from scheduler.engine.in_force import InForce
from scheduler.engine.lookout import Lookout
from scheduler.telling import Telling


def test_the_notifier_is_woken_by_what_is_announced_and_by_nothing_else() -> None:
    bus, poked = Bus(), list[str]()
    store: Any = SimpleNamespace(now=lambda: datetime.now(UTC))
    settings: Any = SimpleNamespace(public_url="", environment="default")
    lookout = Lookout(store, SystemClock(), lambda: "n", lambda: 1)
    telling = Telling(store, InForce(), bus, lambda: "n", settings, poked.append, lookout)
    assert list(telling.loops) == ["notifier"]
    bus.publish("run.settled", run="r")
    assert poked == []
    bus.publish("notification.announced", count=1)
    assert poked == ["notifier"]
