"""Runs that people and programs ask for: which are made, which are there already, which are refused. Many at once, in
one transaction."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from scheduler.core.commands import Accepted, IfBusy, RunRequest
from scheduler.core.errors import NotFound, Refused, SchedulerError
from scheduler.core.ids import short
from scheduler.core.job import Configuration, Job, Overlap
from scheduler.core.model import NewRun, Run, Status
from scheduler.core.ports import Transaction
from scheduler.engine.find import startable
from scheduler.engine.new_run import new_run

FINGERPRINT = "sha256:"
"""What the key of a request begins with that is known by its job and payload."""

Answer = Accepted | SchedulerError


def accept(
    tx: Transaction,
    configuration: Configuration,
    requests: Sequence[RunRequest],
    now: datetime,
    no_job: Callable[[str], NotFound],
    check: Callable[[], None],
    typical: Callable[[str], float | None],
) -> list[Answer]:
    """One answer per request, in their order; an error concerns that request alone. `no_job` is the error for a name
    that no job has; `check` raises if `configuration` is in force no longer; `typical` tells how many seconds runs of a
    job usually take (None: nobody knows)."""
    group = _Group(tx, configuration, now, typical)
    group.hold(requests)
    check()  # Not earlier: whoever replaces it may change these jobs until they are held.
    group.look_up(requests)
    for number, request in enumerate(requests):
        job = configuration.jobs.get(request.job)
        if job is None:
            group.answers[number] = no_job(request.job)
            continue
        try:
            group.take(number, request, startable(job))
        except SchedulerError as error:
            group.answers[number] = error
    group.write()
    return [group.answers[number] for number in range(len(requests))]


def key_of(request: RunRequest) -> str | None:
    """Under which the run is known in the ledger; None: under its id."""
    if request.key is not None:
        return f"api:{request.key}"
    if request.fingerprint:
        text = json.dumps([request.job, request.has_payload, request.payload], sort_keys=True, separators=(",", ":"))
        return f"api:{FINGERPRINT}{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"
    return None


@dataclass(slots=True)
class _Group:
    """`alone`: jobs of which a request asks what else there is. `made` are the new runs by the number of their request,
    `unwritten` those of them that are not inserted yet; `replaced` the runs that were asked to end for them."""

    tx: Transaction
    configuration: Configuration
    now: datetime
    typical: Callable[[str], float | None]
    alone: set[str] = field(default_factory=set)
    answers: dict[int, Answer] = field(default_factory=dict)
    known: dict[tuple[str, str], Run] = field(default_factory=dict)
    busy: dict[str, tuple[str, Status]] = field(default_factory=dict)
    made: dict[int, NewRun] = field(default_factory=dict)
    unwritten: list[int] = field(default_factory=list)
    keys: set[tuple[str, str]] = field(default_factory=set)
    replaced: dict[int, tuple[str, ...]] = field(default_factory=dict)

    def hold(self, requests: Sequence[RunRequest]) -> None:
        """The jobs' rows: nobody removes or changes them now, and nobody else makes a run of those that must have
        none."""
        jobs = self.configuration.jobs
        names = {request.job for request in requests if request.job in jobs}
        self.alone = {one.job for one in requests if one.job in names and _wants_to_be_alone(one, jobs[one.job])}
        if self.alone:
            # All of them at once, in their order: else two groups could wait for each other, or one and a reload.
            self.tx.jobs.states(names, lock=True)
        else:
            self.tx.jobs.hold(names)

    def look_up(self, requests: Sequence[RunRequest]) -> None:
        """What the ledger has of these jobs and keys."""
        if self.alone:
            for one in self.tx.runs.unfinished(self.alone):
                self.busy.setdefault(one.job, (one.run, one.status))
        self.known = self.tx.runs.by_keys(
            {(request.job, key) for request in requests if (key := key_of(request)) is not None}
        )

    def take(self, number: int, request: RunRequest, job: Job) -> None:
        key = key_of(request)
        if key is not None:
            pair = (job.name, key)
            if pair in self.keys:  # Its run is one of this group.
                self.write()
                self.known |= self.tx.runs.by_keys({pair})
            if pair in self.known:
                self.answers[number] = _known(self.known[pair], request)
                return
            self.keys.add(pair)
        self._make_room(number, request, job)
        new = new_run(
            job,
            request.cause,
            self.now,
            key,
            payload=request.payload,
            has_payload=request.has_payload,
            note=request.reason,
            author=request.author,
            trace=request.trace,
        )
        self.made[number] = new
        self.unwritten.append(number)
        self.busy[job.name] = (new.id, Status.PENDING)

    def _make_room(self, number: int, request: RunRequest, job: Job) -> None:
        if not _wants_to_be_alone(request, job):
            return
        if request.if_busy is IfBusy.REPLACE:
            self.write()  # What this group made before is there to be replaced, too.
            rid = self.tx.runs.replaceable(request.job)
            self.tx.runs.request_cancel(rid, f"replaced by {request.author}", self.now)
            self.replaced[number] = tuple(rid)
        elif request.job in self.busy:
            run, status = self.busy[request.job]
            hint = (
                f"wait for it: schedctl run-now {request.job} --queue; "
                f"or cancel it: schedctl run-now {request.job} --replace"
            )
            if job.compensate is not None:
                hint = (
                    f"see what it comes to: schedctl logs -f {short(run)}; "
                    f"or end it: schedctl cancel {short(run)}, then schedctl scan {request.job}"
                )
            raise Refused(f"{request.job} has an unfinished run: {short(run)} ({status})", hint=hint)

    def write(self) -> None:
        """Inserts what is not inserted yet, and answers."""
        numbers, self.unwritten = self.unwritten, []
        new = [self.made[number] for number in numbers]
        if not new:
            return
        lines = {pair: self.tx.queues.line(*pair) for pair in {(one.queue, one.priority) for one in new}}
        placed = self.tx.runs.place(new)
        ready: Counter[tuple[str, int]] = Counter()
        for number, one in zip(numbers, new, strict=True):
            if one.id not in placed:
                continue
            ahead = wait = None
            if placed[one.id] is None:
                pair = (one.queue, one.priority)
                ahead = lines[pair].ahead + ready[pair]
                wait = self._wait(one, ahead, lines[pair].running)
                ready[pair] += 1
            self.answers[number] = Accepted(
                one.id,
                one.job,
                Status.PENDING,
                True,
                one.queue,
                placed[one.id],
                ahead=ahead,
                wait=wait,
                replaced=self.replaced.get(number, ()),
            )
        self._yield_to_others([number for number in numbers if number not in self.answers])

    def _yield_to_others(self, numbers: list[int]) -> None:
        """Requests whose key somebody else, on another node, used first."""
        if not numbers:
            return
        found = self.tx.runs.by_keys({(self.made[number].job, self.made[number].key) for number in numbers})
        for number in numbers:
            new = self.made[number]
            try:
                self.answers[number] = _known(found[new.job, new.key], new)
            except Refused as error:
                self.answers[number] = error

    def _wait(self, new: NewRun, ahead: int, running: int) -> float | None:
        """About how many seconds until its start, by what its queue allows and how long such runs usually are."""
        queue = self.configuration.queues.get(new.queue)
        by_rate = 0.0
        if queue is not None and queue.rate is not None:
            by_rate = max(0.0, (ahead + 1 - queue.burst) / queue.rate)
        if queue is None or queue.concurrency is None:
            return round(by_rate, 1)
        turn = ahead + 1 - max(0, queue.concurrency - running)
        if turn <= 0:
            return round(by_rate, 1)
        length = self.typical(new.job)
        return None if length is None else round(max(by_rate, turn * length / queue.concurrency), 1)


def _wants_to_be_alone(request: RunRequest, job: Job) -> bool:
    """It asks what else there is of its job: such requests are served one after the other. Where runs may overlap
    there is nothing to wait for."""
    if request.if_busy is IfBusy.REPLACE:
        return True
    return request.if_busy is IfBusy.REFUSE and not request.has_payload and job.overlap is not Overlap.ALLOW


def _known(known: Run, asked: RunRequest | NewRun) -> Accepted:
    _check_same(known, asked)
    return Accepted(known.id, known.job, known.status, new=False, queue=known.queue, waits_for=known.waits_for)


def _check_same(known: Run, asked: RunRequest | NewRun) -> None:
    """As JSON: to Python 1, 1.0 and true are equal."""
    if _carried(known) != _carried(asked):
        raise Refused(
            f"this Idempotency-Key belongs to run {short(known.id)} with another payload", hint="use a new key"
        )


def _carried(one: Run | NewRun | RunRequest) -> str:
    return json.dumps([one.has_payload, one.payload], sort_keys=True)
