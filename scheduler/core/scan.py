"""Scans: what a scan job remembers between its runs, and what it reports. Frozen values without behaviour or I/O."""

from __future__ import annotations

from dataclasses import field
from datetime import datetime, timedelta

from scheduler.core.compensator import Cursor, Window
from scheduler.core.value_object import value_object

NOTHING_OLD = "nothing is old enough yet"
"""Why a scan had no window to list."""


@value_object
class Counts:
    """`listed = known + injected + too_young + undecodable`, always. `known` counts what was in the inbox already (with
    `late` of them injected by an earlier scan and still without a webhook), `too_young` what is younger than `settle`
    and may still come by itself, `repeated` what the list itself said twice (not in `listed`). `oldest_unseen`: the
    age of the oldest injected event when it was found."""

    listed: int = 0
    known: int = 0
    injected: int = 0
    too_young: int = 0
    undecodable: int = 0
    repeated: int = 0
    late: int = 0
    pages: int = 0
    calls: int = 0
    throttled: int = 0
    oldest_unseen: timedelta | None = None


@value_object
class Hole:
    """A part of a source's past that cannot be proven complete: the provider does not list it any more, or the inbox
    has forgotten what came then. Known to the second at both ends."""

    job: str
    source: str
    start: datetime
    end: datetime
    why: str
    found_at: datetime


@value_object
class Aside:
    """An item of a list that nobody could read, with the job that found it first, and when. `begins`: how its text
    begins; `length`: of all of it, in characters."""

    job: str
    source: str
    found_at: datetime
    occurred_at: datetime | None
    why: str
    begins: str
    length: int


@value_object
class ScanState:
    """Where a scan job stands. `watermark`: everything before it is settled (None: it has never come to the end of a
    window). `window` is the one under way (None: none), `cursor` where its listing goes on, `counts` what it has come
    to so far; they are written with each page, in the transaction that stores the page's events."""

    job: str
    source: str
    watermark: datetime | None = None
    window: Window | None = None
    cursor: Cursor | None = None
    counts: Counts = Counts()
    began_at: datetime | None = None
    """When the listing of `window`, or of the last one, began, by our clock."""
    set_back_at: datetime | None = None
    """When our clock had been set back last, as far as was known when that began."""
    query: str = ""
    """A hash of what is asked of whom: `cursor` means something for that alone. "": not known."""
    run: str | None = None
    """The run that wrote it last."""


@value_object
class ScanReport:
    """What one pass over one window came to. `unlisted`: webhooks of the window that we have and the list lacks, with
    up to a hundred of their ids: the lister is broken, or somebody else can sign. `complete` False: the watermark was
    not moved, `why` says why. `lag`: provider's now minus the watermark, after it. `asides`: of a dry run, the first
    ten items that nobody could read; those of a scan are kept apart."""

    job: str
    source: str
    run: str
    window: Window
    counts: Counts
    began_at: datetime
    ended_at: datetime
    complete: bool
    why: str = ""
    holes: tuple[Hole, ...] = ()
    unlisted: int = 0
    unlisted_ids: tuple[str, ...] = field(default=(), repr=False)
    lag: timedelta | None = None
    dry_run: bool = False
    asides: tuple[Aside, ...] = field(default=(), repr=False)
