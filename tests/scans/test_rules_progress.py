"""The rules of compensation, 10 to 18: what a watermark may pass, going on after a break, and order."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from scheduler.core.compensator import CursorExpired, ListingFailed, Throttled, Window
from scheduler.core.model import Status
from scheduler.store.store import SqlStore
from tests.engine.doubles import START
from tests.scans.provider import DAY, HOUR, MINUTE, ScanRig


def many(rig: ScanRig, count: int = 6) -> list[str]:
    names = [f"e{number}" for number in range(count)]
    for number, name in enumerate(names):
        rig.provider.happens(name, (60 - number) * MINUTE)
    return names


@pytest.mark.parametrize("newest_first", [False, True])
def test_r10_the_watermark_waits_for_the_whole_window(store: SqlStore, newest_first: bool) -> None:
    rig = ScanRig(store)
    names = many(rig)
    rig.provider.newest_first = newest_first
    rig.provider.fails[3] = ListingFailed("502 Bad Gateway")
    run = rig.scan()
    assert run.status is Status.FAILED
    assert rig.stands().watermark is None
    assert len(rig.handled()) == 4
    assert (rig.report.complete, rig.report.why) == (False, "the list cannot be read: 502 Bad Gateway")
    rig.scan()
    assert sorted(rig.handled()) == names
    assert rig.stands().watermark == START - 5 * MINUTE


def test_r11_what_is_inserted_while_pages_are_read_moves_nothing(rig: ScanRig) -> None:
    names = many(rig)

    def meanwhile(number: int) -> None:
        rig.provider.happens(f"new{number}", timedelta(0))

    rig.provider.before_page = meanwhile
    rig.scan()
    assert rig.handled() == names
    assert rig.report.counts.repeated == 0


@pytest.mark.parametrize("came", [False, True])
def test_r11_a_list_that_shifts_repeats_items_and_counts_them_once(store: SqlStore, came: bool) -> None:
    """By page numbers, newest first: each new event pushes the last item of a page onto the next one."""
    rig = ScanRig(store)
    names = many(rig)
    for name in names if came else ():
        rig.webhook(name, HOUR)
    rig.provider.newest_first = True
    rest = rig.provider._rest

    def shifted(window: Window, after: tuple[datetime, str] | None) -> Any:
        found, everything = rest(window, after), rest(window, None)
        return found if after is None else everything[len(everything) - len(found) - 1 :]

    rig.provider._rest = shifted  # type: ignore[method-assign]
    rig.scan()
    assert sorted(rig.handled()) == names
    counts = rig.report.counts
    assert (counts.listed, counts.injected, counts.known) == ((6, 0, 6) if came else (6, 6, 0))
    assert counts.repeated > 0


def test_r12_a_scan_goes_on_from_its_last_page(store: SqlStore) -> None:
    """Bounded pages per attempt; between two of them another daemon may have taken over."""
    rig = ScanRig(store, most_pages=1)
    names = many(rig)
    run = rig.scan()
    assert run.status is Status.PENDING
    assert rig.handled() == names[:2]
    cursor = rig.stands().cursor
    assert rig.stands().counts.listed == 2
    rig.succeed()
    rig.tick(seconds=6)
    rig.tick()
    assert rig.provider.cursors[1] == cursor
    assert rig.handled() == names[:4]
    rig.tick(seconds=6)
    rig.tick()
    assert rig.run(run.id).status is Status.COMPLETED
    assert rig.handled() == names
    counts = rig.report.counts
    assert (counts.listed, counts.injected, counts.pages, counts.repeated) == (6, 6, 3, 0)
    assert rig.provider.windows == [rig.provider.windows[0]] * 3


@pytest.mark.parametrize("came", [False, True])
def test_r12_an_expired_cursor_begins_the_window_again_not_the_run(store: SqlStore, came: bool) -> None:
    """G19. What was found before stays counted, once."""
    rig = ScanRig(store)
    names = many(rig)
    for name in names if came else ():
        rig.webhook(name, HOUR)
    rig.provider.fails[3] = CursorExpired("410 Gone")
    run = rig.scan()
    assert run.status is Status.COMPLETED
    assert run.attempt == 1
    assert rig.provider.cursors == [None, None]
    assert rig.provider.windows[0] == rig.provider.windows[1]
    assert rig.handled() == names
    counts = rig.report.counts
    found = (counts.listed, counts.injected, counts.known, counts.repeated)
    assert found == ((6, 0, 6, 0) if came else (6, 6, 0, 4))


def test_r12_a_cursor_that_always_expires_is_a_failure_not_a_loop(rig: ScanRig) -> None:
    many(rig)
    rig.provider.fails = {number: CursorExpired("410 Gone") for number in range(1, 100)}
    assert rig.scan().status is Status.FAILED
    assert "cursors expired" in rig.report.why
    assert rig.provider.calls == 3


def test_r12_a_cursor_is_worth_nothing_for_another_question(store: SqlStore) -> None:
    """Square: it must be used with the query that it came of."""
    rig = ScanRig(store, most_pages=1)
    names = many(rig)
    rig.scan()
    rig.reload(rig.text.replace('"compensator": "scripted"', '"compensator": "scripted", "with": {"account": "other"}'))
    rig.tick(seconds=6)
    rig.tick()
    assert rig.provider.cursors == [None, None]
    for _ in range(8):
        rig.tick(seconds=6)
    assert rig.handled() == names


def test_r13_what_the_provider_lists_no_longer_is_a_hole(rig: ScanRig) -> None:
    rig.provider.keeps = 3 * DAY
    rig.scan()
    watermark = rig.stands().watermark
    assert watermark == START - 5 * MINUTE
    assert rig.holes() == []
    rig.turn(days=5)
    rig.provider.happens("listed", 2 * DAY)
    rig.provider.happens("gone", 4 * DAY)
    assert rig.scan().status is Status.COMPLETED
    (hole,) = rig.holes()
    now = rig.clock.now()
    assert (hole.start, hole.end) == (watermark, now - 3 * DAY)
    assert rig.report.holes == (hole,)
    assert rig.handled() == ["listed"]
    assert rig.named("scan.hole")[0]["start"] == watermark
    rig.scan()
    assert rig.holes() == [hole]


def test_r13_a_hole_that_grows_while_the_list_cannot_be_read_is_one_hole(rig: ScanRig) -> None:
    rig.provider.keeps = 3 * DAY
    rig.scan()
    watermark = rig.stands().watermark
    rig.provider.fails = {number: ListingFailed("down") for number in range(2, 5)}
    for _ in range(3):
        rig.turn(days=4)
        rig.scan()
    rig.scan()
    (hole,) = rig.holes()
    assert (hole.start, hole.end) == (watermark, rig.clock.now() - 3 * DAY)


def test_r13_a_margin_that_reaches_further_than_the_list_is_no_hole(store: SqlStore) -> None:
    rig = ScanRig(store, {"scan": {"margin": "72h", "first_window": "1h"}})
    rig.provider.keeps = 2 * DAY
    rig.scan()
    rig.turn(hours=1)
    rig.scan()
    assert rig.provider.windows[1].start == rig.clock.now() - 2 * DAY
    assert rig.holes() == []


SHORT = {"payments": {"keep": "2d"}}


def _known_and_forgotten(rig: ScanRig) -> datetime:
    """After three days without a scan; the watermark before them."""
    rig.scan()
    watermark = rig.stands().watermark
    assert watermark is not None
    for hours in range(0, 72, 6):
        rig.provider.happens(f"e{hours}")
        rig.webhook(f"e{hours}")
        rig.tick()
        rig.finish()
        rig.turn(hours=6)
    return watermark


def test_r13_what_the_inbox_has_forgotten_is_a_hole_and_not_found_again(store: SqlStore) -> None:
    """Its ids are kept for two days, and there was no scan for three."""
    rig = ScanRig(store, sources=SHORT)
    rig.provider.size = 100
    watermark = _known_and_forgotten(rig)
    before = rig.handled()
    rig.retention.tick(rig.clock.now())
    rig.provider.happens("lost", 30 * HOUR)
    assert rig.scan().status is Status.COMPLETED
    (hole,) = rig.holes()
    assert (hole.start, hole.end) == (watermark, START + 18 * HOUR + timedelta(seconds=1))
    assert "the inbox remembers" in hole.why
    assert rig.report.counts.injected == 1
    assert rig.report.unlisted == 0
    assert rig.handled() == [*before, "lost"]
    rig.scan()
    assert rig.holes() == [hole]


def test_r13_what_is_forgotten_while_a_list_is_read_is_not_found_again(store: SqlStore) -> None:
    rig = ScanRig(store, sources=SHORT)
    rig.provider.size = 1
    _known_and_forgotten(rig)

    def meanwhile(number: int) -> None:
        if number == 3:
            rig.retention.tick(rig.clock.now())

    rig.provider.before_page = meanwhile
    assert rig.scan().status is Status.COMPLETED
    assert rig.report.counts.injected == 0
    assert [hole.end for hole in rig.holes()] == [START + 18 * HOUR + timedelta(seconds=1)]


def test_r13_a_longer_keep_brings_back_nothing_that_is_forgotten(store: SqlStore) -> None:
    rig = ScanRig(store, sources=SHORT)
    _known_and_forgotten(rig)
    rig.retention.tick(rig.clock.now())
    rig.reload(rig.text.replace('"keep": "2d"', '"keep": "30d"'))
    assert rig.scan().status is Status.COMPLETED
    assert rig.report.counts.injected == 0
    assert len(rig.holes()) == 1


@pytest.mark.parametrize("came", [False, True])
def test_r13_nothing_is_a_hole_of_which_nothing_was_forgotten(store: SqlStore, came: bool) -> None:
    """A fresh source, and one that was quiet for longer than it keeps what comes."""
    rig = ScanRig(store, {"scan": {"first_window": "46h"}}, sources=SHORT)
    if came:
        rig.scan()
        rig.turn(days=9)
    rig.provider.happens("lost", 40 * HOUR)
    rig.retention.tick(rig.clock.now())
    assert rig.scan().status is Status.COMPLETED
    assert rig.holes() == []
    assert rig.handled() == ["lost"]


def test_r14_the_first_scan_begins_where_its_author_says(store: SqlStore) -> None:
    rig = ScanRig(store, {"scan": {"first_window": "2h"}})
    rig.provider.happens("history", 3 * HOUR)
    rig.provider.happens("wanted", HOUR)
    rig.scan()
    assert rig.provider.windows[0].start == START - 2 * HOUR
    assert rig.handled() == ["wanted"]


def test_r14_a_first_window_that_the_provider_does_not_have_is_a_hole(store: SqlStore) -> None:
    rig = ScanRig(store, {"scan": {"first_window": "10d"}}, sources={"payments": {"keep": "30d"}})
    rig.provider.keeps = 3 * DAY
    rig.scan()
    (hole,) = rig.holes()
    assert (hole.start, hole.end) == (START - 10 * DAY, START - 3 * DAY)


def test_r15_what_a_page_found_is_handled_in_its_order(rig: ScanRig) -> None:
    """G13: a list that is newest first must not have the old state applied last."""
    rig.provider.newest_first = True
    rig.provider.size = 10
    names = many(rig)
    rig.scan()
    assert rig.handled() == names


def test_r16_an_old_event_that_is_found_late_says_so(rig: ScanRig) -> None:
    """G14: a handler can refuse to put an older state over a newer one."""
    rig.provider.happens("v1", 50 * MINUTE, about="order-7")
    rig.webhook("v2", 40 * MINUTE, subject="order-7")
    rig.scan()
    late = {run.payload["event"]["id"]: run.payload["event"]["late"] for run in rig.payloads()}
    assert late == {"v2": False, "v1": True}


def test_r16_where_webhooks_carry_no_time_they_are_as_new_as_their_coming(rig: ScanRig) -> None:
    rig.turn(minutes=40)
    rig.provider.happens("v1", 40 * MINUTE, about="order-7")
    rig.undated("v2", subject="order-7")
    rig.scan()
    late = {run.payload["event"]["id"]: run.payload["event"]["late"] for run in rig.payloads()}
    assert late == {"v2": False, "v1": True}


def test_r17_a_deletion_is_an_event_like_others(rig: ScanRig) -> None:
    rig.provider.happens("made", 50 * MINUTE, type="order.created", about="o1")
    rig.provider.happens("gone", 40 * MINUTE, type="order.deleted", about="o1")
    rig.scan()
    assert [run.payload["event"]["type"] for run in rig.payloads()] == ["order.created", "order.deleted"]


@pytest.mark.parametrize(("retry_after", "least"), [(600.0, 600), (None, 60)])
def test_r18_a_provider_that_says_when_is_not_asked_before(
    store: SqlStore, retry_after: float | None, least: int
) -> None:
    """The spread is added, never taken away; it costs no retry, and what is read stays read."""
    rig = ScanRig(store)
    names = many(rig)
    rig.provider.fails[2] = Throttled("429 Too Many Requests", retry_after)
    run = rig.scan()
    assert (run.status, run.failures) == (Status.PENDING, 0)
    assert run.not_before is not None
    wait = run.not_before - START
    assert timedelta(seconds=least) <= wait <= timedelta(seconds=least * 1.1)
    rig.tick(seconds=least - 1)
    assert rig.provider.calls == 2
    rig.tick(seconds=least * 0.1 + 2)
    rig.tick()
    assert rig.handled() == names
    assert rig.run(run.id).status is Status.COMPLETED
