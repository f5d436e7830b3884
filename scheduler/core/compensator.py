"""The seam around providers' lists of events: what a compensator is asked, and what it answers.

A compensator is a plug-in: one file in `compensators/` or in a folder named by SCHEDULER_PLUGINS. It lists; it neither
stores nor decides what is new. It runs in a worker process, sees this module alone of the product, and may use httpx.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, ClassVar, Protocol

Json = Any
"""Anything `json.dumps` takes."""

Cursor = Json
"""Where a listing goes on: whatever the compensator needs to know, as JSON. It is stored between pages and handed back,
maybe by another process, maybe hours later."""


@dataclass(frozen=True, slots=True)
class Window:
    """Events that occurred in `[start, end]`, in the provider's time; both ends belong to it."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class ListedEvent:
    """One event as the provider lists it. `id` is the one that its webhook carries, `body` the JSON that its webhook
    would have (a compensator that only gets a summary asks for the rest, see `known_to_inbox`). `headers`: those of the
    webhook, where the source reads fields from them. `occurred_at`: the provider's time, by which the list is cut."""

    id: str
    occurred_at: datetime
    body: Json = field(repr=False)
    type: str = ""
    subject: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Undecodable:
    """An item of the list that is no event as far as this compensator knows: kept as it came, so that it holds up
    nothing and is not lost."""

    raw: str = field(repr=False)
    why: str
    occurred_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """What one call gave. `next` None: that was the last. `provider_now`: the provider's clock, as the answer told it.
    `calls` and `throttled` count the requests that the page took, and those answered 429."""

    items: tuple[ListedEvent | Undecodable, ...]
    next: Cursor | None = None
    provider_now: datetime | None = None
    calls: int = 1
    throttled: int = 0


@dataclass(frozen=True, slots=True)
class Coverage:
    """`reaches_back`: how long the provider keeps its list (None: as long as anybody needs). `complete` False: the list
    must not be trusted now, `why` says why (events are switched off, the hook is inactive, a scope is missing) and
    what to do. `provider_now` as in Page: the provider's clock before the first page."""

    reaches_back: timedelta | None
    complete: bool = True
    why: str = ""
    provider_now: datetime | None = None


class CursorExpired(Exception):
    """The provider does not know this cursor any more: the window is listed again from its start."""


class Throttled(Exception):
    """The provider wants to be asked later, and said so again and again. `retry_after` is in seconds, from the last
    answer; None: it did not say."""

    def __init__(self, why: str, retry_after: float | None = None) -> None:
        super().__init__(why)
        self.retry_after = retry_after


class ListingFailed(Exception):
    """The list could not be read; nothing is known about the window. `final`: asking again will not help until somebody
    changes something (a wrong key, an address that does not exist)."""

    def __init__(self, why: str, *, final: bool = False) -> None:
        super().__init__(why)
        self.final = final


Known = Callable[[Collection[str]], Collection[str]]
"""Of these ids, those whose events came already."""

_known: ContextVar[Known | None] = ContextVar("known", default=None)


def known_to_inbox(ids: Collection[str]) -> set[str]:
    """Of these ids, those whose events came already, to be asked inside `pages` by a compensator whose bodies take a
    call each: these events it may give without (`body` None). Outside of a scan none is known."""
    known = _known.get()
    return set(ids) & set(known(ids)) if known is not None and ids else set()


@contextmanager
def answering(known: Known) -> Iterator[None]:
    """Compensators that list in this block, in this thread, are answered so."""
    token = _known.set(known)
    try:
        yield
    finally:
        _known.reset(token)


class Compensator(Protocol):
    """Made once per scan with its options: a dataclass whose fields are the keys below `with:`; secrets come as their
    values."""

    kind: ClassVar[str]
    """The word in jobs.yaml."""
    secret_options: ClassVar[Iterable[str]]
    """Names of options that may be `{env: …}` or `{file: …}`."""

    def pages(self, window: Window, cursor: Cursor | None) -> Iterator[Page]:
        """Every event of the window at least once, in any order, from `cursor` on (None: from the start). The end of
        the window is fixed before the first page; events that come while it is listed change nothing in it. Raises
        CursorExpired, Throttled, ListingFailed; what cannot be decoded is an item, not an error."""
        ...

    def coverage(self) -> Coverage:
        """Asked before the first page of each scan."""
        ...
