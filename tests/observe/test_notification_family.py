"""`schedctl_notifications_total`: from 0 on, by channel and result."""

from __future__ import annotations

from scheduler.config.load import load_texts
from scheduler.core.notices import Bus
from scheduler.observe.metrics import Metrics

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
