"""The rules of compensation, 1 to 9: one door, one identity, and the window."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import timedelta

import pytest

from scheduler.config.load import load_texts
from scheduler.core.compensator import ListedEvent, Window
from scheduler.core.errors import InvalidInput
from scheduler.core.event import Known, Via
from scheduler.core.model import Status
from scheduler.store.events import SqlEvents
from scheduler.store.store import SqlStore
from tests.engine.doubles import START
from tests.engine.senders import kept, subscribed
from tests.scans.provider import DAY, HOUR, MINUTE, PLUGINS, ScanRig, via


def test_r01_what_a_scan_finds_goes_through_the_door_of_webhooks(rig: ScanRig) -> None:
    rig.provider.happens("lost", 30 * MINUTE)
    rig.scan()
    assert via(rig, "lost") is Via.SCAN
    (run,) = rig.payloads()
    assert (run.key, run.cause) == ("event:payments:lost", "event")
    assert run.payload["event"]["via"] == "scan"
    rig.webhook("lost", 30 * MINUTE)  # It comes after all.
    rig.scan()
    assert rig.handled() == ["lost"]
    found = kept(rig, "lost")
    assert found is not None
    assert (found.via, found.webhook_at, found.missed) == (Via.SCAN, START, False)


def test_r02_the_unique_index_decides_never_a_look_before(rig: ScanRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """A webhook comes after the scan looked for it and before it stores what it found."""
    rig.provider.happens("both", 30 * MINUTE)
    rig.webhook("both", 30 * MINUTE)

    def nothing(self: SqlEvents, source: str, ids: Collection[str], job: str = "") -> Mapping[str, Known]:
        return {}

    monkeypatch.setattr(SqlEvents, "known", nothing)
    assert rig.scan().status is Status.COMPLETED
    assert rig.handled() == ["both"]
    assert (rig.report.counts.known, rig.report.counts.injected) == (1, 0)


def test_r03_the_key_is_the_events_own_id_and_none_is_an_error(rig: ScanRig) -> None:
    """Whatever is no id is put aside: with one key for all of them the first would make duplicates of the rest."""
    at = START - 30 * MINUTE
    rig.provider.events["none"] = ListedEvent("", at, {"n": 1})
    rig.provider.events["blank"] = ListedEvent("a\nb", at, {"n": 2})
    rig.provider.events["other"] = ListedEvent("delivery-7", at, {"id": "evt_7"})
    rig.provider.events["good"] = ListedEvent("evt_8", at, {"id": "evt_8"})
    rig.scan()
    assert rig.handled() == ["evt_8"]
    assert rig.report.counts.undecodable == 3
    with rig.store.read() as tx:
        aside = {item.why for _, _, item in tx.scans.aside("payments", 10)}
    assert any("listed as delivery-7, and its webhook would be evt_7" in why for why in aside)


def test_r03_ids_are_remembered_longer_than_anybody_tells_them_again() -> None:
    text = subscribed(payments={"keep": "24h"}).replace(
        '"jobs": {', '"jobs": {"scan": {"compensate": {"source": "payments", "compensator": "scripted"}}, '
    )
    with pytest.raises(InvalidInput, match="ids are forgotten after"):
        load_texts({"jobs.yaml": text}, "jobs.yaml", environ={"SCHEDULER_PLUGINS": str(PLUGINS)})


def test_r04_an_event_and_what_is_to_be_done_with_it_are_stored_together(rig: ScanRig) -> None:
    rig.provider.happens("lost", 30 * MINUTE)

    def cut(number: int) -> None:
        rig.store.broken_commits = int(number == 1)

    rig.provider.before_page = cut
    run = rig.scan()
    assert run.status is Status.PENDING  # Snoozed: the database was away, which is nobody's failure.
    assert kept(rig, "lost") is None
    assert rig.handled() == []
    rig.tick(minutes=1)
    assert rig.run(run.id).failures == 0
    assert rig.handled() == ["lost"]


def test_r05_what_may_still_come_by_itself_is_left_alone(rig: ScanRig) -> None:
    rig.provider.happens("young", 4 * MINUTE)
    rig.provider.happens("old", 6 * MINUTE)
    rig.scan()
    assert rig.handled() == ["old"]
    rig.turn(minutes=2)
    rig.scan()
    assert rig.handled() == ["old", "young"]


def test_r05_a_list_that_says_more_than_it_was_asked_injects_no_more(rig: ScanRig) -> None:
    """Some lists cannot be cut by time: what is outside of the window must not slip in with the rest."""
    for name, ago in (("young", MINUTE), ("old", HOUR), ("ancient", 30 * DAY)):
        rig.provider.happens(name, ago)
    rest = rig.provider._rest
    everything = Window(START - 90 * DAY, START + DAY)
    rig.provider._rest = lambda window, after: rest(everything, after)  # type: ignore[method-assign]
    rig.scan()
    assert rig.handled() == ["old"]
    counts = rig.report.counts
    assert (counts.listed, counts.injected, counts.too_young) == (2, 1, 1)


def test_r06_each_window_begins_before_the_watermark(rig: ScanRig) -> None:
    """G16: an event that is listed long after it occurred is found as long as `margin` is longer than that."""
    rig.provider.visible_after = 50 * MINUTE
    rig.provider.happens("slow", 40 * MINUTE)
    rig.scan()
    assert rig.handled() == []
    assert rig.stands().watermark == START - 5 * MINUTE
    rig.turn(minutes=20)
    rig.scan()
    assert rig.provider.windows[1].start == START - 5 * MINUTE - HOUR
    assert rig.handled() == ["slow"]


@pytest.mark.parametrize("skew", [-3 * HOUR, 3 * HOUR, timedelta(seconds=-90)])
def test_r07_windows_are_cut_by_the_providers_clock(store: SqlStore, skew: timedelta) -> None:
    rig = ScanRig(store)
    rig.provider.skew = skew
    rig.provider.happens("old", 10 * MINUTE)
    rig.provider.happens("young", 4 * MINUTE)
    rig.scan()
    assert rig.provider.windows[0].end == START + skew - 5 * MINUTE
    assert rig.stands().watermark == START + skew - 5 * MINUTE
    assert rig.handled() == ["old"]
    rig.turn(minutes=5)
    rig.scan()
    assert rig.handled() == ["old", "young"]
    assert rig.report.lag == 5 * MINUTE


def test_r07_the_upper_end_is_fixed_before_the_first_page(rig: ScanRig) -> None:
    rig.provider.size = 1
    for minute in (30, 20, 10):
        rig.provider.happens(f"e{minute}", minute * MINUTE)

    def later(number: int) -> None:
        rig.turn(minutes=5)

    rig.provider.before_page = later
    rig.scan()
    assert rig.stands().watermark == START - 5 * MINUTE


def test_r07_a_clock_that_only_pages_tell_holds_the_watermark_back(rig: ScanRig) -> None:
    """Coverage does not know the provider's clock, which is ten minutes behind ours: what it makes of the next ten
    minutes must not lie before the watermark."""
    rig.provider.tells = False
    rig.provider.skew = -10 * MINUTE
    rig.scan()
    assert rig.stands().watermark == START - 15 * MINUTE


def test_r07_a_clock_that_is_set_back_takes_the_watermark_with_it(rig: ScanRig) -> None:
    """What occurs next occurs before it, by that clock."""
    rig.scan()
    rig.provider.skew = -30 * MINUTE
    assert rig.scan().status is Status.COMPLETED
    assert rig.provider.windows[1].end == START - 35 * MINUTE
    assert rig.stands().watermark == START - 35 * MINUTE


@pytest.mark.parametrize("passes", [40 * MINUTE, 5 * HOUR])
@pytest.mark.parametrize("scans", [1, 3])
def test_r07_what_occurs_after_a_providers_clock_was_ahead_is_found(
    store: SqlStore, scans: int, passes: timedelta
) -> None:
    """One scan or more by a clock that is three hours ahead, and again when it is right."""
    rig = ScanRig(store, {"scan": {"margin": "0s"}})
    rig.scan()
    rig.provider.skew = 3 * HOUR
    for _ in range(scans):
        rig.turn(minutes=10)
        rig.scan()
    rig.provider.skew = timedelta(0)
    rig.turn(minutes=10)
    rig.provider.happens("lost")
    rig.turn(seconds=passes.total_seconds())
    assert rig.scan().status is Status.COMPLETED
    assert rig.handled() == ["lost"]
    assert rig.stands().watermark == rig.clock.now() - 5 * MINUTE
    assert rig.holes() == []


def test_r07_a_watermark_that_was_set_back_stays_there_until_something_is_proven(rig: ScanRig) -> None:
    rig.provider.skew = 3 * HOUR
    rig.scan()
    rig.provider.skew = timedelta(0)
    rig.provider.trusted = "not now"
    for _ in range(3):
        rig.turn(hours=1)
        assert rig.scan().status is Status.FAILED
        assert rig.stands().watermark == START - 5 * MINUTE


@pytest.mark.parametrize("ahead", [3 * HOUR, 9 * HOUR])
@pytest.mark.parametrize("passes", [30 * MINUTE, 4 * HOUR])
def test_r07_what_occurs_after_our_own_clock_was_ahead_is_found(
    store: SqlStore, ahead: timedelta, passes: timedelta
) -> None:
    """And nobody tells the provider's. The next scan comes soon, or when the clock has caught up, as a planned one."""
    rig = ScanRig(store, {"scan": {"margin": "0s", "first_window": "10m"}})
    rig.provider.tells, rig.provider.silent = False, True
    rig.scan()
    rig.turn(minutes=30)
    rig.tick()
    rig.clock.step(seconds=ahead.total_seconds())
    rig.tick(seconds=1)
    rig.provider.skew = -ahead
    for _ in range(4):
        rig.provider.happens(f"e{len(rig.provider.events)}")
        rig.turn(minutes=30)
        rig.scan()
    rig.clock.step(seconds=-ahead.total_seconds())
    rig.provider.skew = timedelta(0)
    rig.tick(seconds=1)
    rig.provider.happens("after")
    rig.turn(seconds=passes.total_seconds())
    assert rig.scan().status is Status.COMPLETED
    assert sorted(rig.handled()) == ["after", "e0", "e1", "e2", "e3"]
    assert rig.stands().watermark == rig.clock.now() - 5 * MINUTE


def test_r07_what_began_after_our_clock_was_set_back_goes_on(store: SqlStore) -> None:
    """The time comes twice, and a listing of several attempts began in its second coming."""
    rig = ScanRig(store, {"scan": {"margin": "0s"}}, most_pages=1)
    for minute in (50, 40, 30, 20, 10):
        rig.provider.happens(f"e{minute}", minute * MINUTE)
    rig.tick()
    rig.clock.step(hours=-1)
    rig.provider.skew = HOUR
    rig.tick(seconds=1)
    rig.turn(minutes=30)
    rig.scan()
    for _ in range(3):
        rig.tick(seconds=7)
    assert rig.handled() == ["e50", "e40", "e30", "e20", "e10"]
    assert [cursor is None for cursor in rig.provider.cursors] == [True, False, False]
    assert len({window.start for window in rig.provider.windows}) == 1


def test_r08_the_lower_end_belongs_to_the_window(store: SqlStore) -> None:
    """A list that knows whole seconds only: what shares the second of the watermark would be lost for ever."""
    rig = ScanRig(store, {"scan": {"margin": "0s"}})
    rig.turn(seconds=0.7)
    rig.provider.whole_seconds = True
    rig.scan()
    watermark = rig.stands().watermark
    assert watermark is not None
    assert watermark.microsecond == 700_000
    rig.turn(minutes=1)
    rig.provider.happens("tie", rig.provider.now - (watermark + timedelta(milliseconds=100)))
    rig.scan()
    assert rig.provider.windows[1].start == watermark.replace(microsecond=0)
    assert rig.handled() == ["tie"]


def test_r09_a_page_full_of_one_instant_moves_on(rig: ScanRig) -> None:
    """G17: the cursor is (time, id)."""
    for name in "abcde":
        rig.provider.happens(name, 30 * MINUTE)
    rig.provider.happens("z", 20 * MINUTE)
    rig.scan()
    assert rig.handled() == ["a", "b", "c", "d", "e", "z"]
    assert rig.report.counts.pages == 3
    assert rig.report.counts.repeated == 0
