"""Between an event loop and a thread that serves many callers with one commit."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

Asked = TypeVar("Asked")
Answered = TypeVar("Answered")
_Served = list[tuple[Any, list[Answered]]]


class Porter(Generic[Asked, Answered]):
    """Carries what is asked for to `submit` and answers back into this event loop, those of one commit together. Used
    from one event loop."""

    def __init__(self, submit: Callable[[Sequence[Asked], Any, Callable[[_Served[Answered]], None]], None]) -> None:
        self._submit = submit
        self._loop: asyncio.AbstractEventLoop | None = None

    async def ask(self, asked: Sequence[Asked]) -> list[Answered]:
        """One answer for each, when they are on disk."""
        found: asyncio.Future[list[Answered]] = asyncio.get_running_loop().create_future()
        self.hand(asked, lambda answers: None if found.done() else found.set_result(answers))
        return await found

    def hand(self, asked: Sequence[Asked], then: Callable[[list[Answered]], None]) -> None:
        """`then`, which must not raise, is called in the event loop with the answers when they are on disk."""
        self._loop = asyncio.get_running_loop()
        self._submit(asked, then, self._deliver)

    def _deliver(self, served: _Served[Answered]) -> None:
        assert self._loop is not None
        with contextlib.suppress(RuntimeError):  # The loop was closed: nobody waits any more.
            self._loop.call_soon_threadsafe(_hand_out, served)


def _hand_out(served: list[tuple[Callable[[list[Any]], None], list[Any]]]) -> None:
    for then, answers in served:
        then(answers)
