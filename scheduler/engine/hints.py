"""Hints: which of the things that happen here are worth a word to the other nodes, and what their words do here."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection

from scheduler.core.hints import CANCEL, CONFIGURATION, SETTLED, WORK, Ear, Word
from scheduler.core.notices import Notice

_WORDS = {
    "run.planned": (WORK,),
    "run.claimed": (WORK,),
    "run.settled": (SETTLED, WORK),
    "run.lost": (WORK,),
    "job.resumed": (WORK,),
    "run.cancel_asked": (CANCEL,),
    "config.loaded": (CONFIGURATION,),
}
HINTED = tuple(_WORDS)
"""The names of the notices that become hints."""
_LOOPS = {WORK: "worker", CANCEL: "worker", CONFIGURATION: "keeper"}


class Hints:
    """Hears every notice of the bus (`notice`). `alone`: no other node is known, so nothing is said. `takes_all`: this
    node can take whatever could be taken now, so others need not look. `poke` has a loop look soon."""

    def __init__(
        self,
        alone: Callable[[], bool],
        takes_all: Callable[[], bool],
        poke: Callable[[str], None],
    ) -> None:
        self._alone = alone
        self._takes_all = takes_all
        self._poke = poke
        self._ear: Ear | None = None
        self._guard = threading.Lock()
        self._waiting: set[str] = set()
        self._told: tuple[Callable[[], None], ...] = ()

    def start(self, ear: Ear | None) -> None:
        """None: there are no other nodes."""
        self._ear = ear
        if ear is not None:
            ear.start()

    def stop(self) -> None:
        if self._ear is not None:
            self._ear.stop()

    def word(self, aside: str | None) -> Word:
        """What this node tells of itself."""
        if self._ear is None:
            return Word(None, aside)
        hearing = self._ear.hearing
        return Word(f"{hearing.state}: {hearing.why}" if hearing.why else hearing.state, aside)

    def when_settled(self, tell: Callable[[], None]) -> None:
        """`tell` is called, from any thread, whenever runs may have ended on other nodes."""
        self._told = (*self._told, tell)

    def notice(self, notice: Notice) -> None:
        """One of HINTED, from any thread; costs nothing to speak of when the same was noticed a moment ago."""
        words = _WORDS[notice.name]
        if self._ear is None or self._waiting.issuperset(words):
            return
        with self._guard:
            self._waiting.update(words)
        self._ear.ring()

    def said(self) -> Collection[str]:
        """What is to be said now; asked for once, it is not waiting any more. Whether others are needed for the work
        is judged only now: what was planned a moment ago may have been taken here meanwhile."""
        with self._guard:
            words, self._waiting = self._waiting, set()
        if self._alone():
            return ()
        return words - {WORK} if WORK in words and self._takes_all() else words

    def heard(self, words: Collection[str]) -> None:
        """Others said so."""
        for loop in sorted({_LOOPS[word] for word in words if word in _LOOPS}):
            self._poke(loop)
        if SETTLED in words:
            for tell in self._told:
                tell()
