"""What daemon and `compensate` worker say to each other, message by message.

    daemon  {do: open, run, compensator, plugins, options, event, environment, output}    options hold secrets
    worker  {run, say: coverage, …}
    daemon  {do: list, run, window, cursor}
    worker  {run, say: page, items, next, …}
    worker  {run, say: known?, ids}                                                       on the way to a page, maybe
    daemon  {do: known, run, ids}                                                         those that came already
    daemon  {do: go on, run}                                                              the page is stored
    …
    worker  {run, say: end}          the window is over; or {run, say: failure, failed}
    daemon  {do: list, …} again, or {do: stop, run}
    worker  {run, at}                the last message, which ends the task

Each is answered by exactly one. What cannot be opened is answered {run, at, failed} at once, which ends the task too.
Instants are RFC 3339, durations seconds. An event of a page is an object with `id`, an item that could not be read one
with `raw` and `why`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from scheduler.core.compensator import (
    Coverage,
    Cursor,
    CursorExpired,
    ListedEvent,
    ListingFailed,
    Page,
    Throttled,
    Undecodable,
    Window,
)
from scheduler.core.errors import InvalidInput
from scheduler.executors.attempts.values import storable
from scheduler.executors.workers.wire import Message, pack


def opening(
    run: str,
    compensator: str,
    options: Mapping[str, Any],
    event: Mapping[str, str],
    *,
    plugins: Sequence[str],
    environment: Mapping[str, str],
    output: str,
) -> Message:
    """`event`: the source's event fields by name; `output`: the file that takes what the compensator prints."""
    return {
        "do": "open",
        "run": run,
        "compensator": compensator,
        "plugins": list(plugins),
        "options": dict(options),
        "event": dict(event),
        "environment": dict(environment),
        "output": output,
    }


def listing(run: str, window: Window, cursor: Cursor | None) -> Message:
    ends = {"start": _text(window.start), "end": _text(window.end)}
    return {"do": "list", "run": run, "window": ends, "cursor": cursor}


def going_on(run: str) -> Message:
    return {"do": "go on", "run": run}


def asking(run: str, ids: Collection[str]) -> Message:
    return {"run": run, "say": "known?", "ids": sorted(ids)}


def told_known(run: str, ids: Collection[str]) -> Message:
    return {"do": "known", "run": run, "ids": sorted(ids)}


def stopping(run: str) -> Message:
    return {"do": "stop", "run": run}


def read_window(order: Message) -> Window:
    return Window(_instant(order["window"]["start"]), _instant(order["window"]["end"]))


def coverage_message(run: str, coverage: Coverage) -> Message:
    back = coverage.reaches_back
    return {
        "run": run,
        "say": "coverage",
        "reaches_back": None if back is None else back.total_seconds(),
        "complete": coverage.complete,
        "why": coverage.why,
        "provider_now": _maybe_text(coverage.provider_now),
    }


def read_coverage(said: Message) -> Coverage:
    back = said["reaches_back"]
    reaches_back = None if back is None else timedelta(seconds=back)
    return Coverage(reaches_back, said["complete"], said["why"], _maybe_instant(said["provider_now"]))


def packed_page(run: str, page: Page) -> bytes:
    """The message as it travels: a thousand bodies are written once. ListingFailed, final, for a page that is not what
    the seam says: naive times, bodies that are no JSON."""
    message = _page_message(run, page)
    try:
        return pack(message, strict=True)
    except (TypeError, ValueError, RecursionError) as error:
        _check(page.next, "the cursor")
        for one in page.items:
            if isinstance(one, ListedEvent):
                _check(one.body, f"the body of {one.id}")
        raise _misshapen(f"a page: {error}", "it has to be JSON") from None


def _page_message(run: str, page: Page) -> Message:
    return {
        "run": run,
        "say": "page",
        "items": [_item_message(one) for one in page.items],
        "next": page.next,
        "provider_now": _maybe_text(page.provider_now),
        "calls": page.calls,
        "throttled": page.throttled,
    }


def read_page(said: Message) -> Page:
    items = tuple(_item(one) for one in said["items"])
    return Page(items, said["next"], _maybe_instant(said["provider_now"]), said["calls"], said["throttled"])


def end_message(run: str) -> Message:
    return {"run": run, "say": "end"}


def failure_message(error: BaseException) -> Message:
    """To be added to a message with `run`."""
    match error:
        case CursorExpired():
            return {"failed": {"kind": "cursor_expired", "why": str(error)}}
        case Throttled():
            return {"failed": {"kind": "throttled", "why": str(error), "retry_after": error.retry_after}}
        case ListingFailed():
            return {"failed": {"kind": "failed", "why": str(error), "final": error.final}}
        case InvalidInput():
            return {"failed": {"kind": "failed", "why": str(error), "final": True}}
    return {"failed": {"kind": "failed", "why": f"{type(error).__name__}: {error}".rstrip(": "), "final": False}}


def read_failure(said: Message) -> CursorExpired | Throttled | ListingFailed:
    """The error that was raised in the worker."""
    found = said["failed"]
    if found["kind"] == "cursor_expired":
        return CursorExpired(found["why"])
    if found["kind"] == "throttled":
        return Throttled(found["why"], found["retry_after"])
    return ListingFailed(found["why"], final=found["final"])


def _item_message(one: ListedEvent | Undecodable) -> Message:
    if isinstance(one, Undecodable):
        at = None if one.occurred_at is None else _text(one.occurred_at)
        return {"raw": storable(one.raw), "why": storable(one.why), "at": at}
    if not isinstance(one, ListedEvent):
        raise _misshapen(f"an item of type {type(one).__name__}", "yield ListedEvent and Undecodable")
    if not one.id or not isinstance(one.id, str):
        raise _misshapen(f"the id {one.id!r}", "an id is a text that is not empty")
    return {
        "id": one.id,
        "at": _text(one.occurred_at),
        "body": one.body,
        "type": one.type,
        "subject": one.subject,
        "headers": dict(one.headers),
    }


def _item(found: Message) -> ListedEvent | Undecodable:
    if "raw" in found:
        return Undecodable(found["raw"], found["why"], _maybe_instant(found["at"]))
    at = _instant(found["at"])
    return ListedEvent(found["id"], at, found["body"], found["type"], found["subject"], found["headers"])


def _check(value: Any, what: str) -> None:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise _misshapen(f"{what}: {error}", "it has to be JSON") from None


def _text(instant: datetime) -> str:
    if not isinstance(instant, datetime) or instant.utcoffset() is None:
        raise _misshapen(f"the time {instant!r}", "a time is a datetime with a zone")
    return instant.isoformat()


def _maybe_text(instant: datetime | None) -> str | None:
    return None if instant is None else _text(instant)


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _maybe_instant(text: str | None) -> datetime | None:
    return None if text is None else _instant(text)


def _misshapen(what: str, remedy: str) -> ListingFailed:
    return ListingFailed(f"the compensator gave {what}; {remedy}", final=True)
