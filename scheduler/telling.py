"""How people are told: the notifier, what it sends with, and the loop that hosts it."""

from __future__ import annotations

import os
from collections.abc import Callable

from scheduler.core.news import Place
from scheduler.core.notices import Bus
from scheduler.engine.in_force import InForce
from scheduler.engine.lookout import Lookout
from scheduler.engine.notifier import Notifier
from scheduler.observe.channels.couriers import ProcessCourier
from scheduler.settings import Settings
from scheduler.store.store import SqlStore

LONGEST = 15.0
"""Seconds that a daemon that stops waits for what is being sent."""


class Telling:
    """Of one daemon; `loops` are to be hosted like all others. What is announced is sent at once."""

    def __init__(
        self,
        store: SqlStore,
        in_force: InForce,
        bus: Bus,
        node: Callable[[], str],
        settings: Settings,
        poke: Callable[[str], None],
        lookout: Lookout,
    ) -> None:
        self._courier = ProcessCourier(os.environ)
        place = Place(settings.public_url, settings.environment)
        self.notifier = Notifier(store, store, in_force, self._courier, bus, node, place, lambda: poke("notifier"))
        self.loops = {"notifier": lookout.loop("notifier", self.notifier, store.now)}
        bus.subscribe(lambda _: poke("notifier"), "notification.announced")

    def close(self) -> None:
        """Nothing more is begun; what is under way gets a little time."""
        self.notifier.close(LONGEST)
        self._courier.close()
