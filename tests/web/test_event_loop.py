"""Which event loop serves HTTP."""

from __future__ import annotations

import asyncio
import sys
from contextlib import closing

import pytest

from scheduler.web.event_loop import new_event_loop


def test_it_is_the_fast_one() -> None:
    with closing(new_event_loop()) as loop:
        assert type(loop).__module__.startswith("uvloop")


def test_without_uvloop_it_is_that_of_asyncio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    with closing(new_event_loop()) as loop:
        assert isinstance(loop, asyncio.SelectorEventLoop)
