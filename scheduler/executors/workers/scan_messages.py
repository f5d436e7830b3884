"""What daemon and worker say to each other while a provider's list is read.

    daemon  {run, compensator, plugins, options}       the task; `options` hold secrets
    worker  {run, say: "coverage", …}                  asked for before anything is listed
    daemon  {run, do: "list", window, cursor}          or {run, do: "stop"}: nothing is to be listed
    worker  {run, say: "page", items, next, …}
    daemon  {run, do: "go on"}                         the page is stored; or {run, do: "stop"}
    …
    worker  {run, done: true}                          after the last page or `stop`; or one of
            {run, expired: why}  {run, throttled: why, retry_after}  {run, failed: why, final}  {run, error: why, final}

Whatever has `say` waits for an answer; the last message has none and ends the task. Instants are RFC 3339 in UTC,
durations seconds. An event of a page is an object with `id`, an item that could not be read one with `raw` and `why`.
After `expired` the worker is there for the same task no longer: the daemon gives it a new one.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from scheduler.core.compensator import Coverage, ListedEvent, Page, Undecodable, Window
from scheduler.executors.workers.wire import Message


def coverage_message(run: str, coverage: Coverage) -> Message:
    back = coverage.reaches_back
    return {
        "run": run,
        "say": "coverage",
        "reaches_back": None if back is None else back.total_seconds(),
        "complete": coverage.complete,
        "why": coverage.why,
        "provider_now": _text(coverage.provider_now),
    }


def read_coverage(said: Message) -> Coverage:
    back = said["reaches_back"]
    reaches_back = None if back is None else timedelta(seconds=back)
    return Coverage(reaches_back, said["complete"], said["why"], _instant(said["provider_now"]))


def window_message(window: Window) -> Message:
    return {"start": _text(window.start), "end": _text(window.end)}


def read_window(said: Message) -> Window:
    return Window(_must(said["start"]), _must(said["end"]))


def page_message(run: str, page: Page) -> Message:
    return {
        "run": run,
        "say": "page",
        "items": [_item(item) for item in page.items],
        "next": page.next,
        "provider_now": _text(page.provider_now),
        "calls": page.calls,
        "throttled": page.throttled,
    }


def read_page(said: Message) -> Page:
    items = tuple(_read_item(item) for item in said["items"])
    return Page(items, said["next"], _instant(said["provider_now"]), said["calls"], said["throttled"])


def _item(item: ListedEvent | Undecodable) -> Message:
    if isinstance(item, Undecodable):
        return {"raw": item.raw, "why": item.why, "occurred_at": _text(item.occurred_at)}
    return {
        "id": item.id,
        "occurred_at": _text(item.occurred_at),
        "body": item.body,
        "type": item.type,
        "subject": item.subject,
        "headers": dict(item.headers),
    }


def _read_item(said: Message) -> ListedEvent | Undecodable:
    if "raw" in said:
        return Undecodable(said["raw"], said["why"], _instant(said["occurred_at"]))
    occurred_at = _must(said["occurred_at"])
    return ListedEvent(said["id"], occurred_at, said["body"], said["type"], said["subject"], said["headers"])


def _text(instant: datetime | None) -> str | None:
    return None if instant is None else instant.astimezone(UTC).isoformat()


def _instant(text: Any) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _must(text: Any) -> datetime:
    return datetime.fromisoformat(text)
