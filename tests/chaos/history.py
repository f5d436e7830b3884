"""What a campaign leaves to be judged, and what follows: when which instants were due, what was in whose way."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

from tests.chaos.load import ChaosJob
from tests.chaos.log import EVERYBODY, Log, Swap, Trouble
from tests.chaos.timeline import Timeline
from tests.crash.checker import SETTLING, AttemptRow, RunRow, SkipRow
from tests.crash.stamps import Ran, Stamp, attempts_of

RECOVERY = 3.0
"""Seconds after a lease has run out, or a trouble is over, in which the nodes have put everything in order."""
HICCUP = 3.5
"""Seconds for which the rows of a node that was stopped may stay locked, and a little more."""
PLANNING = 1.0
"""Seconds after an instant in which it may not be planned yet, on a node that is well: as often each looks."""
SWAPPING = 0.3
"""Seconds by which the clocks of those who look may differ."""


@dataclass
class Problem:
    """`at`: where to look in real time; None: everywhere."""

    what: str
    job: str = ""
    at: float | None = None

    def __str__(self) -> str:
        return f"{self.job}: {self.what}" if self.job else self.what


@dataclass
class History:
    """`nodes`: the names of those that were there from the start to the end; `until`: the real time at which the ledger
    was read; `lease` in seconds; `survivors`: what was left at the end."""

    jobs: Mapping[str, ChaosJob]
    nodes: tuple[str, ...]
    lease: float
    until: float
    log: Log
    stamps: list[Stamp]
    runs: list[RunRow]
    skips: list[SkipRow]
    attempts: list[AttemptRow]
    survivors: list[str] = field(default_factory=list)

    # ------------------------------------------------------------ instants

    @cached_property
    def timeline(self) -> Timeline:
        return Timeline(self.log.steps)

    def instants(self, job: str) -> tuple[list[int], set[int]]:
        """Of the database's clock: those that must be accounted for, and those that may be (they fell due while the
        schedule was being changed, or had been shown by a clock that was set back before that)."""
        certain: set[int] = set()
        open_: set[int] = set()
        swaps = sorted(self.log.swaps, key=lambda swap: swap.asked)
        for number, swap in enumerate(swaps):
            period = swap.periods.get(job)
            if period is None:
                continue
            end = swaps[number + 1] if number + 1 < len(swaps) else None
            same = end is not None and end.periods.get(job) == period
            change = next((later for later in swaps[number + 1 :] if later.periods.get(job) != period), None)
            begun = number > 0 and swaps[number - 1].periods.get(job) == period
            last = self.timeline.furthest(self.until if end is None else end.answered) + 1
            first = int(self.timeline.shown(swap.asked)) // period * period - period * 45
            for instant in range(first, int(last) + 1, period):
                due = self.timeline.due(instant)
                again = not begun and self._shown_again(swap, instant)
                if due > (self.until if end is None else end.answered) + SWAPPING:
                    continue
                if due < swap.asked - SWAPPING and not again:
                    continue
                early = again or (due <= swap.answered + SWAPPING and not begun)
                late = end is not None and due >= end.asked - SWAPPING and not same
                late = late or (change is not None and self._shown_again(change, instant))
                (open_ if early or late else certain).add(instant)
        return sorted(certain), open_ - certain

    def _shown_again(self, swap: Swap, instant: int) -> bool:
        """Whether the clock had shown it before that reload, and shows it once more after it: then what was planned
        of it by then is of the old schedule, and the rest of the new one."""
        shown, furthest = self.timeline.shown, self.timeline.furthest(swap.answered)
        first = min(shown(swap.asked), shown(swap.answered))
        return first - SWAPPING < instant <= furthest + SWAPPING

    # ------------------------------------------------------------ who ran what

    @cached_property
    def ran(self) -> dict[str, Ran]:
        """What children wrote, by run."""
        return attempts_of(self.stamps)

    @cached_property
    def rows(self) -> dict[str, RunRow]:
        return {run.id: run for run in self.runs}

    @cached_property
    def runs_of(self) -> dict[str, list[RunRow]]:
        found: dict[str, list[RunRow]] = defaultdict(list)
        for run in self.runs:
            found[run.job].append(run)
        return found

    def node(self, ran: Ran, attempt: int) -> str:
        """Where an attempt ran, as its child says. EVERYBODY: it does not say."""
        return self.log.places.get(ran.places.get(attempt, ""), EVERYBODY)

    # ------------------------------------------------------------ what excuses what

    def troubles(self, first: float, last: float, node: str = EVERYBODY) -> list[Trouble]:
        """What was wrong at any time of this, with this node or with everybody (EVERYBODY: with any node)."""
        return [
            one
            for one in self.log.troubles
            if one.near(first, last) and (node == EVERYBODY or one.whom in (node, EVERYBODY))
        ]

    def shaken(self, first: float, last: float, node: str) -> list[Trouble]:
        """What may have ended a child of that node in this time: what was wrong then, or kept the node from renewing a
        lease that ran out then, though all was well again."""
        return [
            one
            for one in self.troubles(first - self.lease, last, node)
            if one.near(first, last) or (one.disables and one.begin <= last and first <= one.begin + self.lease)
        ]

    @cached_property
    def blackouts(self) -> list[tuple[float, float]]:
        """When nothing at all can be expected: the database or the machine in trouble, all nodes at once."""
        found = [(one.begin - PLANNING, one.end + RECOVERY) for one in self.log.troubles if one.whom == EVERYBODY]
        down = [one for one in self.log.troubles if one.whom != EVERYBODY and one.disables]
        edges = sorted({edge for one in down for edge in (one.begin, one.end)})
        for first, last in pairwise(edges):
            if {one.whom for one in down if one.begin <= first and last <= one.end}.issuperset(self.nodes):
                found.append((first - 0.5, last + RECOVERY))
        return _joined(found)

    @cached_property
    def outages(self) -> list[tuple[float, float]]:
        """When nothing can be expected to start on time: blackouts, and the moment after something befell a node, which
        may have held rows. The database takes them from one that was stopped after 2 s, from one that died at once; one
        with a slow network holds them as long as it lasts."""
        hiccups = [
            (one.begin - PLANNING, one.end if one.fault == "cut-slow" else one.begin + _hiccup(one))
            for one in self.log.troubles
            if one.whom != EVERYBODY and one.disables
        ]
        return _joined([*self.blackouts, *hiccups])

    def out(self, at: float) -> bool:
        return self.out_until(at) is not None

    def out_until(self, at: float) -> float | None:
        """When the outage is over in which this lies; None: in none."""
        return next((last for first, last in self.outages if first <= at <= last), None)

    @cached_property
    def asked(self) -> dict[str, float]:
        """When a run was asked for, by run."""
        return {one.run: one.asked for one in self.log.requests}

    def began(self, run: RunRow) -> float | None:
        """From when on a run may have been unfinished, as far as schedules, clients and children show it."""
        if run.instant is not None:
            return self.timeline.due(run.instant)
        if run.id in self.asked:
            return self.asked[run.id]
        return self.ran[run.id].first - RECOVERY if run.id in self.ran else None

    def unfinished(self, run: RunRow) -> tuple[float, float] | None:
        """When a run may have been unfinished; None: never, as far as anybody knows."""
        began = self.began(run)
        if began is None:
            return None
        ran = self.ran.get(run.id)
        if ran is None:
            return began, max(self.known_by(began, EVERYBODY), self._followed(run))
        final = max(ran.attempts)
        end = ran.attempts[final][1]
        return began, self.known_by(ran.last if end is None else end, self.node(ran, final))

    def _followed(self, run: RunRow) -> float:
        """When the next occurrence of its job got a run: as long may one have waited that never began."""
        if run.instant is None:
            return 0.0
        later = bisect_right(self._planned[run.job], run.instant)
        return self.timeline.due(self._planned[run.job][later]) if later < len(self._planned[run.job]) else 0.0

    @cached_property
    def _planned(self) -> dict[str, list[int]]:
        """The instants of each job that got a run, in order."""
        return {
            job: sorted(one.instant for one in runs if one.instant is not None and one.status != "SKIPPED")
            for job, runs in self.runs_of.items()
        }

    def known_by(self, end: float, node: str) -> float:
        """When at the latest the ledger knows of what ended then on that node: by itself, which takes longer where
        somebody else holds the rows; or when the lease of a node that something befell has run out, or when there is a
        database again, and nodes."""
        known = end + SETTLING
        if any(first <= known and end <= last for first, last in self.outages):
            known += HICCUP
        befell = [one.begin for one in self.troubles(end - 1.0, known, node) if one.disables]
        if befell:
            known = max(known, max(befell) + self.lease + RECOVERY)
        for first, last in self.blackouts:
            if first <= known and end <= last:
                known = max(known, last + self.lease + RECOVERY)
        return known

    @cached_property
    def given_up(self) -> dict[str, list[tuple[int, int]]]:
        """Runs of each job that waited for a lock until they were given up: instants of such a run and of the next
        one that began, between which the job was in its own way."""
        found: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for job, runs in self.runs_of.items():
            began = sorted(one.instant for one in runs if one.instant is not None and one.id in self.ran)
            for run in runs:
                if run.instant is not None and run.status == "SKIPPED" and run.reason == "lock":
                    after = bisect_right(began, run.instant)
                    found[job].append((run.instant, began[after] if after < len(began) else run.instant))
        return found

    @cached_property
    def busy(self) -> dict[str, list[tuple[float, float]]]:
        """When a run of each job may have been unfinished."""
        found: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for run in self.runs:
            span = self.unfinished(run)
            if span is not None and run.status != "SKIPPED":
                found[run.job].append(span)
        return {job: sorted(spans) for job, spans in found.items()}


def _hiccup(trouble: Trouble) -> float:
    return 1.5 if trouble.fault.startswith("kill") else HICCUP


def _joined(spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    joined: list[tuple[float, float]] = []
    for first, last in sorted(spans):
        if joined and first <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return joined
