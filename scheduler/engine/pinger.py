"""The pinger: tells dead man's switches outside how the runs of jobs with `ping_url` went.

The end of a run lies in the outbox until it was taken, whatever happens meanwhile; a start is worth nothing when it is
old, and is kept in memory only. Nothing here is waited for: each ping is sent by a thread of its own, few at a time,
and of one job one at a time, so that a service sees its runs in their order.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import structlog

from scheduler.core.errors import SchedulerError
from scheduler.core.execution import Clock
from scheduler.core.look import Look
from scheduler.core.notices import Notice
from scheduler.core.ping import DAEMON, MOST_BODY, START, Answer, Ping, Send, address, body_of
from scheduler.core.ports import Store
from scheduler.core.queries import Readable
from scheduler.core.secret import Secret
from scheduler.core.value_object import value_object
from scheduler.engine.in_force import InForce, Loaded
from scheduler.engine.targets import Targets

log = structlog.get_logger("pings")

THREADS = 8
"""Pings under way at once."""
STARTS = 1_000
"""Starts that wait to be told, and ends that are remembered so that no start is told after them."""
STALE = 60.0
"""Seconds after which a start is not worth a ping any more."""
HELD = timedelta(minutes=2)
"""So long nobody else sends a ping that this node is sending: longer than it can take."""
LOOK = 5.0
"""Seconds between two looks into the outbox while nothing is heard: retries, and what others left."""
TIDY = 60.0
"""Seconds between two looks while no job has a `ping_url`, and between two rounds of forgetting."""
KEEP = timedelta(hours=24)
MOST = 1_000
"""What could not be told for so long, or lies behind so many newer ones of its job, is given up."""
FIRST_WAIT, LONGEST_WAIT = timedelta(seconds=5), timedelta(minutes=5)


@value_object
class _Start:
    job: str
    run: str
    at: float
    not_before: float = 0.0
    tries: int = 0


@value_object
class _Told:
    what: Ping | _Start
    answer: Answer


class Pinger:
    """`hear` listens to the bus; `tick` is a loop's. `resolve` reads a URL that is a secret (InvalidInput if it cannot
    be had), `wake` asks for a tick."""

    def __init__(
        self,
        store: Store,
        readable: Readable,
        in_force: InForce,
        clock: Clock,
        node: Callable[[], str],
        send: Send,
        resolve: Callable[[Secret], str],
        wake: Callable[[], None],
        targets: Targets,
    ) -> None:
        self._store = store
        self._readable = readable
        self._in_force = in_force
        self._clock = clock
        self._node = node
        self._send = send
        self._resolve = resolve
        self._wake = wake
        self._targets = targets
        self._seen: tuple[Loaded | None, frozenset[str]] = (None, frozenset())
        self._starts: deque[_Start] = deque(maxlen=STARTS)
        self._over: dict[str, None] = {}
        self._lock = threading.Lock()
        self._answers: queue.SimpleQueue[_Told] = queue.SimpleQueue()
        self._unwritten: list[_Told] = []
        self._busy: set[str] = set()
        self._limits: dict[str, int] = {}
        self._asked = True
        self._looked_at = self._tidied_at = -TIDY

    # ------------------------------------------------------------ what others ask

    @property
    def jobs(self) -> frozenset[str]:
        """Those with a `ping_url`."""
        loaded = self._in_force.loaded
        seen, names = self._seen
        if loaded is not seen and loaded is not None:
            jobs = loaded.configuration.jobs.values()
            names = frozenset(job.name for job in jobs if job.watch.ping_url is not None)
            self._seen = (loaded, names)
        return names

    def hear(self, notice: Notice) -> None:
        """Of starts and ends, from the bus, in the thread of whoever publishes."""
        if notice.fields["job"] not in self.jobs:
            return
        run = str(notice.fields["run"])
        if notice.name == "run.settled":
            with self._lock:
                self._over[run] = None
                while len(self._over) > STARTS:
                    del self._over[next(iter(self._over))]
        elif notice.fields["attempt"] == 1:
            self._starts.append(_Start(str(notice.fields["job"]), run, self._clock.monotonic()))
        self._asked = True
        self._wake()

    # ------------------------------------------------------------ the loop

    def rests(self, look: Look) -> bool:
        """Nothing is to be told, nor to be written down, and no target fails: that may be over any time."""
        if self._in_force.loaded is not self._seen[0]:
            self._asked = True  # Targets may have gone.
            return False
        waits = look.pings or self._starts or self._unwritten or self._targets.failing()
        return not waits and self._answers.empty()

    def tick(self, now: datetime) -> int:
        """Writes down what was answered, sends what is due; how many it began to send. What lies in the outbox is dated
        by the database's clock, not by `now`."""
        self._write_down()
        aside = self._in_force.behind is not None
        begun = 0 if aside else self._begin_starts()
        since = self._clock.monotonic() - self._looked_at
        if not self._asked and since < (LOOK if self.jobs else TIDY):
            return begun
        self._asked = False
        self._looked_at = self._clock.monotonic()
        self._acquit()
        if aside:
            return 0
        self._targets.keep(self.jobs | {DAEMON})
        now = self._store.now()
        begun += self._begin_ends(now)
        if self.jobs and self._clock.monotonic() - self._tidied_at >= TIDY:
            self._tidied_at = self._clock.monotonic()
            self._give_up(now)
        return begun

    def _write_down(self) -> None:
        while not self._answers.empty():
            self._unwritten.append(self._answers.get())
        told = self._unwritten
        if not told:
            return
        now = self._store.now()
        done = [one.what.seq for one in told if isinstance(one.what, Ping) and one.answer.problem is None]
        again = {
            one.what.seq: now + _wait(one.what.tries, one.answer)
            for one in told
            if isinstance(one.what, Ping) and one.answer.problem is not None
        }
        if done or again:
            with self._store.begin() as tx:
                tx.outgoing.remove(done)
                tx.outgoing.postpone(again)
        self._unwritten = []
        for one in told:
            self._conclude(one, now)
        self._asked = True  # The next of the same job may go now.

    def _conclude(self, told: _Told, now: datetime) -> None:
        job, answer = told.what.job, told.answer
        self._busy.discard(job)
        if answer.limit is not None:
            self._limits[job] = answer.limit
        if answer.problem is None:
            self._targets.took(job, now)
            return
        self._targets.failed(job, answer.problem, now, waits=isinstance(told.what, Ping))
        if isinstance(told.what, _Start) and told.what.tries == 0:
            later = self._clock.monotonic() + FIRST_WAIT.total_seconds()
            self._starts.append(replace(told.what, not_before=later, tries=1))

    def _acquit(self) -> None:
        """What failed here may have been sent by another node, or given up: then nothing fails any more."""
        failing = self._targets.failing()
        if failing:
            with self._store.read() as tx:
                self._targets.acquit(failing - tx.outgoing.waiting(failing))

    # ------------------------------------------------------------ sending

    def _begin_starts(self) -> int:
        begun = 0
        for _ in range(len(self._starts)):
            start = self._starts.popleft()
            now = self._clock.monotonic()
            if now - start.at > STALE or start.run in self._over or start.job not in self.jobs:
                continue
            if start.tries == 0 and self._targets.fails(start.job):
                continue  # What lies in the outbox finds out whether it hears us again.
            if start.job in self._busy or len(self._busy) >= THREADS or now < start.not_before:
                self._starts.append(start)
                continue
            self._begin(start, START, b"")
            begun += 1
        return begun

    def _begin_ends(self, now: datetime) -> int:
        room = THREADS - len(self._busy)
        if room <= 0:
            return 0
        with self._store.read() as tx:
            due = [one for one in tx.outgoing.due(self._node(), now, 2 * THREADS) if one.job not in self._busy][:room]
        if not due:
            return 0
        generation, jobs = self._in_force.current.generation, self.jobs
        orphaned = [one.seq for one in due if one.job not in jobs]
        with self._store.begin() as tx:
            if orphaned and tx.generations.hold() > generation:
                orphaned = []  # Their jobs may have got a URL that this node has not loaded yet.
            tx.outgoing.remove(orphaned)
            mine = [one for one in due if one.job in jobs and tx.outgoing.take(one, now + HELD)]
        for ping in mine:
            self._begin(replace(ping, tries=ping.tries + 1), ping.signal, self._body(ping))
        if orphaned or len(due) == room:
            self._asked = True
        return len(mine)

    def _body(self, ping: Ping) -> bytes:
        with self._readable.queries() as queries:
            run, output = queries.run(ping.run), queries.output(ping.run, ping.attempt)
        return body_of(ping, run, output, min(MOST_BODY, self._limits.get(ping.job, MOST_BODY)))

    def _begin(self, what: Ping | _Start, signal: str, body: bytes) -> None:
        """In a thread of its own, which touches no database."""
        job = self._in_force.job(what.job)
        place = job.watch.ping_url if job is not None else None
        if place is None:
            return
        self._busy.add(what.job)

        def tell() -> None:
            self._answers.put(_Told(what, self._tell(place, signal, what.run, body)))
            self._wake()

        threading.Thread(target=tell, name="ping", daemon=True).start()

    def _tell(self, place: str | Secret, signal: str, run: str, body: bytes) -> Answer:
        try:
            url = place if isinstance(place, str) else self._resolve(place)
            return self._send(address(url, signal, run), body)
        except SchedulerError as error:
            return Answer(problem=str(error))
        except Exception as error:
            # What a library says of a URL may quote it.
            return Answer(problem=f"it could not be sent ({type(error).__name__}); is the URL right?")

    def _give_up(self, now: datetime) -> None:
        with self._store.begin() as tx:
            gone = tx.outgoing.prune(now - KEEP, MOST)
        for job, count in gone.items():
            log.warning("pings_given_up", target=job, count=count)


def _wait(tries: int, answer: Answer) -> timedelta:
    doubled: int = 1 << min(max(tries - 1, 0), 10)
    wait = min(LONGEST_WAIT, FIRST_WAIT * doubled)
    return max(wait, min(answer.not_sooner or timedelta(0), LONGEST_WAIT))
