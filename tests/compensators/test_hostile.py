"""Every compensator against everything that may go wrong at once: what it lists in the end is the truth."""

from __future__ import annotations

import dataclasses

import pytest

from scheduler.core.compensator import (
    Cursor,
    CursorExpired,
    ListedEvent,
    ListingFailed,
    Throttled,
    Undecodable,
    Window,
)
from scheduler.testing.faults import HOSTILE, Faults
from tests.compensators.worlds import FORMS, NOON, ProviderWorld, provider_of, quick

HARD = dataclasses.replace(HOSTILE, throttle=0.15, outage=0.1, expire=0.05, poison=0.1, drift=0.1)
_MOST_RUNS = 200


class Scan:
    """One window, in as many runs as it takes: resumed from the last cursor, begun anew when that expires."""

    def __init__(self, world: ProviderWorld, window: Window) -> None:
        self.world = world
        self.window = window
        self.found: set[str] = set()
        self.poison = 0
        self.runs = self.expired = self.calls = self.throttled = 0
        self._cursor: Cursor | None = None

    def finish(self) -> None:
        while not self._run():
            self.runs += 1
            assert self.runs < _MOST_RUNS

    def _run(self) -> bool:
        try:
            for page in self.world.compensator().pages(self.window, self._cursor):
                self.found |= {one.id for one in page.items if isinstance(one, ListedEvent)}
                self.poison += sum(isinstance(one, Undecodable) for one in page.items)
                self.calls += page.calls
                self.throttled += page.throttled
                self._cursor = page.next
            return True
        except CursorExpired:
            self.expired += 1
            self._cursor = None
        except Throttled:
            pass
        except ListingFailed as error:
            if error.final:
                raise
        return False


@pytest.mark.parametrize("form", FORMS)
def test_what_is_listed_in_the_end_is_the_truth(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = quick(monkeypatch)
    with provider_of(form, HARD, now=NOON) as provider:
        world = ProviderWorld(provider, form)
        scan = Scan(world, Window(min(world.events().values()), max(world.events().values())))
        scan.finish()
        assert scan.found == world.events().keys()
        assert scan.throttled <= scan.calls
        assert provider.lists.throttled > 0
        assert waits, "it waited before it asked again"
        assert set(_clocks(world, scan)) == {NOON + HARD.clock}


def _clocks(world: ProviderWorld, scan: Scan) -> list[object]:
    world.provider.use(Faults(clock=HARD.clock))
    return [page.provider_now for page in world.compensator().pages(scan.window, None)]
