"""`schedctl_notifications_*`: from 0 on, by channel and result; and which channel takes nothing."""

from __future__ import annotations

from datetime import timedelta

from scheduler.config.load import load_texts
from scheduler.core.channel import Answer
from scheduler.core.notices import Bus
from scheduler.core.notifying import stands
from scheduler.observe.metrics import EVERY, Metrics
from scheduler.store.store import SqlStore
from tests.engine.doubles import START
from tests.engine.rig import Rig

TEXT = "notify: {ops: {url: 'json://h'}, mail: {url: 'json://h'}}\njobs: {}\n"


def test_notifications_are_counted_from_nothing_on() -> None:
    configuration = load_texts({"f": TEXT}, "f", environ={})
    bus = Bus()
    metrics = Metrics(bus, "1", "2", configuration=lambda: configuration)

    def shown() -> dict[str, float]:
        lines = metrics.render().decode().splitlines()
        found = (line.split() for line in lines if line.startswith("schedctl_notifications_total{"))
        return {name.partition("{")[2].rstrip("}"): float(value) for name, value in found}

    assert shown() == {
        f'channel="{channel}",result="{result}"': 0.0
        for channel in ("ops", "mail")
        for result in ("sent", "delayed", "failed")
    }
    bus.publish("notification.sent", channel="ops", count=900, reason=None)
    bus.publish("notification.delayed", channel="mail", count=2, reason="no")
    bus.publish("notification.failed", channel="mail", count=1, reason="no")
    bus.publish("notification.failed", channel="gone", count=1, reason="no")
    changed = {name: value for name, value in shown().items() if value}
    assert changed == {
        'channel="ops",result="sent"': 900.0,
        'channel="mail",result="delayed"': 2.0,
        'channel="mail",result="failed"': 1.0,
    }


NO, OK = Answer(False, "no"), Answer(True, "ok")


class Sender:
    """A node that sends by its channels, and what it says of them."""

    def __init__(self, store: SqlStore, text: str = TEXT) -> None:
        self.rig = Rig(store, text)
        self.seconds = 0.0
        self.metrics = Metrics(
            self.rig.bus,
            "1",
            "2",
            configuration=lambda: self.rig.in_force.current.configuration,
            monotonic=lambda: self.seconds,
        )
        self.refresh()

    def send(self, channel: str, answer: Answer) -> None:
        now = self.rig.clock.now()
        with self.rig.store.begin() as tx:
            standing = tx.notifications.take(channel, self.rig.node, now, now + timedelta(minutes=2))
            after = stands(standing, [answer], now)
            assert tx.notifications.give_back(channel, self.rig.node, after, [], now)

    def refresh(self) -> None:
        """As its loop does."""
        self.seconds += EVERY
        look = self.rig.store.look(self.rig.node, self.rig.in_force.current.generation)
        if not self.metrics.rests(look):
            self.metrics.refresh(self.rig.store, self.rig.clock.now())

    def failing(self) -> dict[str, float]:
        self.refresh()
        lines = self.metrics.render().decode().splitlines()
        found = (line.split() for line in lines if line.startswith("schedctl_notifications_failing_since"))
        return {name.split('"')[1]: float(value) for name, value in found}


def test_a_channel_that_takes_nothing_says_since_when(store: SqlStore) -> None:
    one = Sender(store)
    assert one.failing() == {"ops": 0.0, "mail": 0.0}
    one.send("mail", NO)
    assert one.failing() == {"ops": 0.0, "mail": START.timestamp()}
    one.rig.turn(hours=1)
    one.send("mail", NO)
    one.send("ops", OK)
    assert one.failing() == {"ops": 0.0, "mail": START.timestamp()}
    one.send("mail", OK)
    assert one.failing() == {"ops": 0.0, "mail": 0.0}


def test_every_node_says_it_and_a_restart_forgets_nothing(store: SqlStore) -> None:
    one = Sender(store)
    one.send("ops", NO)
    other = Sender(store)
    assert other.failing()["ops"] == START.timestamp()
    other.rig.turn(minutes=5)
    other.send("ops", OK)
    assert (one.failing()["ops"], other.failing()["ops"]) == (0.0, 0.0)


def test_nobody_hears_of_a_channel_that_is_gone(store: SqlStore) -> None:
    one = Sender(store)
    one.send("ops", NO)
    one.rig.reload(TEXT.replace("ops:", "others:"))
    assert one.failing() == {"others": 0.0, "mail": 0.0}
