"""A ledger that was restored: what came by webhook since the backup is found by the next scan."""

from __future__ import annotations

from datetime import timedelta

from scheduler.core.model import Status
from scheduler.engine.recovery import predecessors
from scheduler.store.store import SqlStore
from tests.engine.doubles import START
from tests.scans.provider import HOUR, MINUTE, ScanRig


def test_the_first_scan_after_a_restore_looks_back_over_the_gap(store: SqlStore) -> None:
    rig = ScanRig(store, {"scan": {"margin": "10m", "first_window": "10m"}})
    rig.reload(rig.text.replace('"compensate"', '"schedule": "*/30 * * * *", "compensate"', 1))
    rig.scan()
    assert rig.stands().watermark == START - 5 * MINUTE
    # From here on the ledger is the backup, and everything else happened to the one that was lost.
    rig.turn(hours=5, seconds=20)
    for hours in range(1, 5):
        rig.provider.happens(f"e{hours}", hours * HOUR)
    again = ScanRig(store, {"scan": {}}, start=False, clock=rig.clock)
    again.text, again.providers["scan"].events = rig.text, rig.provider.events
    gone = predecessors(again.store, None)
    again.reloader.start(again.load(), author="start", node=again.node, gone=gone, after_restore=True)
    again.register()
    again.tick()
    assert again.handled() == []
    assert [(skip.reason.value, skip.count) for skip in again.skips("scan")] == [("missed", 10)]
    again.turn(minutes=30)
    again.tick()
    again.tick()
    (run,) = [run for run in again.runs("scan") if run.scheduled_for is not None]
    assert run.status is Status.COMPLETED
    assert sorted(again.handled()) == ["e1", "e2", "e3", "e4"]
    assert again.report.window is not None
    assert again.report.window.start <= START - 5 * MINUTE - timedelta(minutes=10)
    assert again.holes() == []
