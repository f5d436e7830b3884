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
        self._loop = asyncio.get_running_loop()
        ticket: asyncio.Future[list[Answered]] = self._loop.create_future()
        self._submit(asked, ticket, self._deliver)
        return await ticket

    def _deliver(self, served: _Served[Answered]) -> None:
        assert self._loop is not None
        with contextlib.suppress(RuntimeError):  # The loop was closed: nobody waits any more.
            self._loop.call_soon_threadsafe(_hand_out, served)


def _hand_out(served: list[tuple[Any, list[Any]]]) -> None:
    for ticket, answers in served:
        if not ticket.done():
            ticket.set_result(answers)
