"""What scans make of a list, whatever is in it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from scheduler.core import scanning
from scheduler.core.compensator import ListedEvent, Page, Undecodable, Window
from scheduler.core.event import Known
from scheduler.core.scan import Counts, ScanState

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)

names = st.sampled_from("abcdefgh")
items = st.lists(
    st.builds(
        ListedEvent, names, st.integers(-100, 100).map(lambda minutes: NOON + minutes * MINUTE), st.just({"n": 1})
    )
    | st.builds(Undecodable, names, st.just("no id")),
    max_size=12,
)
stored = st.builds(
    Known,
    seq=st.just(1),
    received_at=st.sampled_from([NOON - MINUTE, NOON + MINUTE]),
    found_by=st.sampled_from(["", "scan", "other"]),
    missed=st.booleans(),
)


@given(items, st.dictionaries(names, stored), st.sets(names), st.data())
def test_every_item_is_counted_once_and_in_one_way(
    listed: list[ListedEvent | Undecodable], inbox: dict[str, Known], seen: set[str], data: st.DataObject
) -> None:
    window = Window(NOON - 60 * MINUTE, NOON)
    state = ScanState("scan", "payments", window=window, began_at=NOON)
    page = Page(tuple(listed), None, NOON)
    found = scanning.sort(page, inbox, seen, state, window, "scan")
    injected = data.draw(st.integers(0, len(found.missing)))
    counts = scanning.counted(Counts(), page, found, injected, NOON + 5 * MINUTE)
    assert counts.listed == counts.known + counts.injected + counts.too_young + counts.undecodable
    events = [one for one in listed if isinstance(one, ListedEvent)]
    sorted_ones = (*found.missing, *found.known, *found.young)
    assert len({one.id for one in sorted_ones}) == len(sorted_ones)
    assert not {one.id for one in found.missing} & inbox.keys()
    assert all(window.start <= one.occurred_at <= window.end for one in found.missing)
    assert all(one.occurred_at > window.end for one in found.young)
    outside = sum(one.occurred_at < window.start for one in _firsts(events, seen))
    assert len(sorted_ones) + found.repeated + outside == len(events)
    assert list(found.missing) == sorted(found.missing, key=lambda one: (one.occurred_at, one.id))


def _firsts(events: list[ListedEvent], seen: set[str]) -> list[ListedEvent]:
    first = {one.id: one for one in reversed(events)}
    return [one for one in first.values() if one.id not in seen]
