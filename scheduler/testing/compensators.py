"""What every compensator has to hold, as tests for pytest. For one of your own:

    class TestMine(CompensatorContract):
        @pytest.fixture
        def world(self) -> Iterator[World]:
            with MyFakeProvider() as fake:
                yield MyWorld(fake)

The fake has a hundred events or so, over some hours, in more than one page, several in one second. What a world does
not offer is skipped.
"""

from __future__ import annotations

import json
import unittest
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from compensators.common.options import options_of
from scheduler.core.compensator import (
    Compensator,
    Coverage,
    CursorExpired,
    ListedEvent,
    ListingFailed,
    Page,
    Throttled,
    Undecodable,
    Window,
)

_SECOND = timedelta(seconds=1)
_MOST_PAGES = 10_000


class World(ABC):
    """A provider, real or not, with what it did, and a compensator that lists it."""

    @abstractmethod
    def compensator(self) -> Compensator:
        """A fresh one each time."""

    @abstractmethod
    def events(self) -> Mapping[str, datetime]:
        """The truth: the id of each event, as its webhook carries it, and its time by the provider's clock."""

    def secrets(self) -> Iterable[str]:
        """Values that no text may show."""
        return ()

    def webhook(self, event: str) -> Any:
        """The JSON of this event's webhook."""
        raise unittest.SkipTest("this world does not say what a webhook holds")

    def go_away(self) -> None:
        """From now on the provider answers nothing, or 503."""
        raise unittest.SkipTest("this world cannot go away")

    def refuse(self) -> None:
        """From now on the key is wrong."""
        raise unittest.SkipTest("this world refuses nobody")

    def throttle(self) -> None:
        """From now on every call is answered 429."""
        raise unittest.SkipTest("this world has no limit")

    def forget_cursors(self) -> None:
        """Cursors that were given out are not known any more."""
        raise unittest.SkipTest("this world forgets no cursors")

    def poison(self) -> None:
        """From now on pages hold items that are no events, beside those that are."""
        raise unittest.SkipTest("this world has no such items")

    def distrust(self) -> None:
        """From now on the list lacks things, and the provider lets one know: a scope is missing, events are off."""
        raise unittest.SkipTest("this world's list can always be trusted")


class CompensatorContract:
    """Subclass it as `Test…` and give it a fixture `world`."""

    def test_its_kind_and_options_can_be_written(self, world: World) -> None:
        made = world.compensator()
        assert made.kind
        assert made.kind.isidentifier()
        assert hasattr(made, "__dataclass_fields__"), "a compensator is a dataclass: its fields are the options"
        names = {one.name for one in options_of(type(made))}
        assert set(made.secret_options) <= names, "secret_options names fields"

    def test_secrets_are_not_shown(self, world: World) -> None:
        shown = repr(world.compensator())
        assert not [one for one in world.secrets() if one in shown], "write field(repr=False)"

    def test_coverage_says_how_far_the_list_reaches(self, world: World) -> None:
        found = world.compensator().coverage()
        assert isinstance(found, Coverage)
        assert found.complete, found.why
        assert found.reaches_back is None or found.reaches_back > timedelta(0)
        assert found.provider_now is None or found.provider_now.tzinfo is not None

    def test_every_event_of_the_window_is_listed(self, world: World) -> None:
        truth = world.events()
        assert _listed(world, _whole(truth)).keys() == truth.keys()

    def test_events_have_the_times_of_the_provider(self, world: World) -> None:
        truth = world.events()
        found = _listed(world, _whole(truth))
        assert {one.id: one.occurred_at for one in found.values()} == truth

    def test_both_ends_belong_to_the_window(self, world: World) -> None:
        truth = world.events()
        for instant in (min(truth.values()), max(truth.values()), _busiest(truth)):
            wanted = {one for one, at in truth.items() if at == instant}
            assert _listed(world, Window(instant, instant)).keys() == wanted

    def test_what_lies_outside_is_left_out(self, world: World) -> None:
        truth = world.events()
        whole = _whole(truth)
        quarter = (whole.end - whole.start) / 4
        window = Window(whole.start + quarter, whole.end - quarter)
        wanted = {one for one, at in truth.items() if window.start <= at <= window.end}
        assert wanted != truth.keys(), "the fake's events lie too close together"
        assert _listed(world, window).keys() == wanted

    def test_a_window_without_events_is_no_error(self, world: World) -> None:
        first = min(world.events().values())
        window = Window(first - timedelta(hours=2), first - timedelta(hours=1))
        assert _listed(world, window) == {}

    def test_two_windows_that_touch_lack_nothing(self, world: World) -> None:
        truth = world.events()
        whole, cut = _whole(truth), _busiest(truth)
        for seam in (cut, cut - _SECOND / 2, cut + _SECOND / 2):
            earlier = _listed(world, Window(whole.start, seam)).keys()
            assert earlier | _listed(world, Window(seam, whole.end)).keys() == truth.keys()

    def test_a_body_is_what_the_webhook_holds(self, world: World) -> None:
        for event in _listed(world, _whole(world.events())).values():
            assert event.body == world.webhook(event.id)

    def test_another_process_goes_on_from_any_cursor(self, world: World) -> None:
        truth = world.events()
        whole = _whole(truth)
        pages = list(_pages(world.compensator(), whole))
        assert len(pages) > 1, "the fake's events fit in one page"
        assert pages[-1].next is None
        before: set[str] = set()
        for page in pages[:-1]:
            before |= _events(page).keys()
            cursor = json.loads(json.dumps(page.next))
            after = {id_ for rest in _pages(world.compensator(), whole, cursor) for id_ in _events(rest)}
            assert before | after == truth.keys()

    def test_listing_twice_gives_the_same(self, world: World) -> None:
        made, whole = world.compensator(), _whole(world.events())
        first = {id_ for page in _pages(made, whole) for id_ in _events(page)}
        assert {id_ for page in _pages(made, whole) for id_ in _events(page)} == first

    def test_calls_are_counted(self, world: World) -> None:
        for page in _pages(world.compensator(), _whole(world.events())):
            assert page.calls >= 0
            assert 0 <= page.throttled <= page.calls

    def test_a_provider_that_is_away_is_no_empty_list(self, world: World) -> None:
        whole = _whole(world.events())
        world.go_away()
        assert str(_raises(world, whole, ListingFailed, Throttled)), "say what went wrong"

    def test_a_wrong_key_is_final_and_the_words_do_not_show_it(self, world: World) -> None:
        whole = _whole(world.events())
        world.refuse()
        error = _raises(world, whole, ListingFailed)
        assert isinstance(error, ListingFailed)
        assert error.final
        assert not [one for one in world.secrets() if one in str(error)]

    def test_a_limit_is_told(self, world: World) -> None:
        whole = _whole(world.events())
        world.throttle()
        _raises(world, whole, Throttled)

    def test_a_forgotten_cursor_is_told(self, world: World) -> None:
        whole = _whole(world.events())
        first = next(_pages(world.compensator(), whole))
        assert first.next is not None
        world.forget_cursors()
        _raises(world, whole, CursorExpired, cursor=first.next)
        assert _listed(world, whole).keys() == world.events().keys()

    def test_what_is_no_event_is_kept_and_holds_up_nothing(self, world: World) -> None:
        truth = world.events()
        world.poison()
        pages = list(_pages(world.compensator(), _whole(truth)))
        assert {id_ for page in pages for id_ in _events(page)} == truth.keys()
        poison = [one for page in pages for one in page.items if isinstance(one, Undecodable)]
        assert poison
        assert all(one.raw and one.why for one in poison)

    def test_a_list_that_lacks_things_is_not_trusted(self, world: World) -> None:
        world.distrust()
        found = world.compensator().coverage()
        assert not found.complete
        assert found.why, "say why, and what to do"


def _whole(truth: Mapping[str, datetime]) -> Window:
    return Window(min(truth.values()), max(truth.values()))


def _busiest(truth: Mapping[str, datetime]) -> datetime:
    """The instant that most events share."""
    times = list(truth.values())
    return max(times, key=lambda one: (times.count(one), one))


def _pages(made: Compensator, window: Window, cursor: Any = None) -> Iterator[Page]:
    for number, page in enumerate(made.pages(window, cursor)):
        assert isinstance(page, Page)
        assert number < _MOST_PAGES, "it never ends"
        yield page


def _events(page: Page) -> dict[str, ListedEvent]:
    found = {one.id: one for one in page.items if isinstance(one, ListedEvent)}
    for one in found.values():
        assert one.id
        assert one.occurred_at.utcoffset() is not None
        json.dumps(one.body, allow_nan=False)
    return found


def _listed(world: World, window: Window) -> dict[str, ListedEvent]:
    return {id_: one for page in _pages(world.compensator(), window) for id_, one in _events(page).items()}


def _raises(world: World, window: Window, *kinds: type[Exception], cursor: Any = None) -> Exception:
    try:
        for _ in _pages(world.compensator(), window, cursor):
            pass
    except kinds as error:
        return error
    raise AssertionError(f"it should have raised {' or '.join(one.__name__ for one in kinds)}")
