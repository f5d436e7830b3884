"""A process that lists for one scan at a time: each page is asked for when the one before it is stored."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from functools import partial

from compensators import registry
from scheduler.core.compensator import Compensator, CursorExpired, ListingFailed, Page, Throttled, answering
from scheduler.core.counted import counted
from scheduler.core.errors import InvalidInput
from scheduler.executors.workers.function import SourceStamps, own_traceback
from scheduler.executors.workers.scan_messages import (
    asking,
    coverage_message,
    end_message,
    failure_message,
    packed_page,
    read_window,
)
from scheduler.executors.workers.surroundings import Surroundings, appending, left
from scheduler.executors.workers.wire import READY, Message, Unpacker, no_room, pack

_EXPECTED = (CursorExpired, Throttled, ListingFailed, InvalidInput)


class CompensateWorker:
    """Serves its channel as `scan_messages` says. A compensator's prints are the output of the run, and so is the
    traceback of one that raises what it should not. Plug-ins that were changed on disk make it refuse the scan as
    stale: a fresh process then takes it."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._surroundings = Surroundings(channel)
        self._stamps = SourceStamps()

    def serve(self) -> None:
        """Until the daemon closes the channel."""
        orders = self._orders()
        self._channel.sendall(pack(READY))
        for order in orders:
            # Anything else is left of a scan that could not be opened.
            if order["do"] == "open":
                self._scan(order, orders)

    def _orders(self) -> Iterator[Message]:
        unpacker = Unpacker()
        while piece := self._channel.recv(1 << 16):
            yield from unpacker.feed(piece)

    def _scan(self, opening: Message, orders: Iterator[Message]) -> None:
        run = opening["run"]
        if self._stamps.stale():
            self._channel.sendall(pack({"run": run, "stale": True}))
            return
        try:
            output = appending(opening["output"])
        except OSError as error:
            self._channel.sendall(pack({"run": run, **no_room(error)}))
            return
        with self._surroundings.of(opening["environment"], output):
            last = self._converse(opening, orders)
            self._surroundings.end_if_forked(0)
        ended = time.clock_gettime(time.CLOCK_BOOTTIME)
        self._stamps.extend()
        threads, processes = left()
        self._channel.sendall(pack({"run": run, "at": ended, "threads": threads, "processes": processes, **last}))

    def _converse(self, opening: Message, orders: Iterator[Message]) -> Message:
        """Until the daemon says that it is enough; what to say last."""
        run = opening["run"]
        try:
            compensator = registry.build(
                opening["compensator"], opening["options"], opening["event"], opening["plugins"]
            )
            answer = coverage_message(run, compensator.coverage())
        except BaseException as error:
            return _failed(error)
        self._channel.sendall(pack(answer))
        pages: Iterator[Page] = iter(())
        with answering(partial(self._known, run, orders)), suppress(_Stopped):
            for order in orders:
                if order["do"] == "stop":
                    break
                if order["do"] == "list":
                    pages = _pages(compensator, order)
                self._channel.sendall(_next(run, pages))
        return {}

    def _known(self, run: str, orders: Iterator[Message], ids: Collection[str]) -> Collection[str]:
        self._channel.sendall(pack(asking(run, ids)))
        order = next(orders, None)
        if order is None or order["do"] != "known":
            raise _Stopped
        found: list[str] = order["ids"]
        return found


class _Stopped(BaseException):
    """The daemon wants no answer any more, in the middle of a page; no compensator may take that for an error."""


def _pages(compensator: Compensator, order: Message) -> Iterator[Page]:
    """Nothing of the compensator's runs before the first page is asked for. What is listed is told in the output."""
    window, cursor = read_window(order), order["cursor"]
    place = "" if cursor is None else ", where it was left"
    print(f"listing {window.start.isoformat()} to {window.end.isoformat()}{place}")
    for page in compensator.pages(window, cursor):
        if isinstance(page, Page):
            print(f"a page of {counted(len(page.items), 'item')} by {counted(page.calls, 'call')}")
        yield page


def _next(run: str, pages: Iterator[Page]) -> bytes:
    """The message that answers."""
    try:
        page = next(pages, None)
        if page is None:
            return pack(end_message(run))
        if not isinstance(page, Page):
            raise ListingFailed(f"the compensator gave a {type(page).__name__}; yield Page", final=True)
        return packed_page(run, page)
    except _Stopped:
        raise
    except BaseException as error:
        return pack({"run": run, "say": "failure", **_failed(error)})


def _failed(error: BaseException) -> Message:
    if isinstance(error, _EXPECTED):
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
    else:
        print(own_traceback(error), end="", file=sys.stderr)
    return failure_message(error)
