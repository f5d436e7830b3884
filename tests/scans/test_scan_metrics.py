"""What `/metrics` says of scans."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from prometheus_client.parser import text_string_to_metric_families

from scheduler.observe.metrics import Metrics
from scheduler.store.store import SqlStore
from tests.engine.doubles import START
from tests.scans.provider import DAY, HOUR, MINUTE, ScanRig


class Scraped:
    def __init__(self, rig: ScanRig) -> None:
        self.rig = rig
        self.metrics = Metrics(rig.bus, "0", "0", configuration=lambda: rig.in_force.current.configuration)

    def __call__(self) -> dict[str, float]:
        """Series about scans by name and label values."""
        self.metrics.refresh(self.rig.store, self.rig.clock.now(), force=True)
        text = self.metrics.render().decode()
        families = text_string_to_metric_families(text)
        samples = [sample for family in families for sample in family.samples]
        return {
            "/".join([sample.name.removeprefix("schedctl_"), *_in_order(sample.labels)]): sample.value
            for sample in samples
            if "compensation" in sample.name or "overdue" in sample.name
        }


def _in_order(labels: Mapping[str, str]) -> list[str]:
    return [labels[name] for name in ("source", "scan", "result") if name in labels]


def test_scans_show_what_they_found_and_how_far_they_are(sqlite: SqlStore) -> None:
    rig = ScanRig(sqlite)
    scraped = Scraped(rig)
    before = scraped()
    assert before["compensations_total/payments/injected"] == 0
    assert before["webhooks_overdue/payments"] == 0
    assert "compensation_watermark_lag_seconds/scan" not in before
    rig.provider.happens("lost", 30 * MINUTE)
    rig.provider.happens("came", 20 * MINUTE)
    rig.webhook("came", 20 * MINUTE)
    rig.webhook("forged", 10 * MINUTE)
    rig.scan()
    rig.turn(minutes=1)
    after = scraped()
    assert after["compensations_total/payments/injected"] == 1
    assert after["compensations_total/payments/known"] == 1
    assert after["compensation_watermark_lag_seconds/scan"] == 360
    assert after["compensation_miss_ratio/scan"] == 0.5
    assert after["compensation_oldest_unseen_seconds/scan"] == 1800
    assert after["compensation_unlisted/scan"] == 1
    assert after["compensation_last_scan_complete/scan"] == 1
    assert after["compensation_holes/payments"] == 0


def test_a_webhook_is_overdue_after_alarm_after_and_for_a_day(sqlite: SqlStore) -> None:
    rig = ScanRig(sqlite, {"scan": {"alarm_after": "1h"}})
    scraped = Scraped(rig)
    rig.provider.happens("lost", 30 * MINUTE)
    rig.provider.happens("late", 30 * MINUTE)
    rig.scan()
    assert scraped()["webhooks_overdue/payments"] == 0
    rig.turn(minutes=31)
    assert scraped()["webhooks_overdue/payments"] == 2
    rig.webhook("late", HOUR)
    assert scraped()["webhooks_overdue/payments"] == 1
    rig.turn(hours=24)
    assert scraped()["webhooks_overdue/payments"] == 0


def test_a_scan_has_a_deadline_like_every_job(sqlite: SqlStore) -> None:
    rig = ScanRig(sqlite, {"scan": {}})
    rig.reload(rig.text.replace('"scan": {', '"scan": {"schedule": "*/30 * * * *", "grace": "20m", '))
    deadline = Scraped(rig)()["compensation_scan_deadline_timestamp_seconds/scan"]
    assert deadline == (START + timedelta(minutes=50)).timestamp()


def test_a_hole_is_counted(sqlite: SqlStore) -> None:
    rig = ScanRig(sqlite)
    rig.provider.keeps = 2 * DAY
    rig.scan()
    rig.turn(days=5)
    rig.scan()
    assert Scraped(rig)()["compensation_holes/payments"] == 1
