"""Beats: how a node keeps its right to hold runs, and how it notices that another has lost it.

A node raises a counter in its row. Nobody compares wall clocks: another node declares it dead only after it has itself
seen the same beat for that node's whole lease on its own monotonic clock. The children of a node live only as long
as its trust: until 75 % (TERM) and 90 % (KILL) of the lease, counted from before the last successful renewal was sent.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import structlog

from scheduler.core.errors import Unavailable
from scheduler.core.execution import Bus, Clock, Switch
from scheduler.core.hints import Word
from scheduler.core.look import Look
from scheduler.core.ports import Store
from scheduler.core.value_object import value_object
from scheduler.engine.in_force import InForce

log = structlog.get_logger("engine")

TERM_SHARE = 0.75
KILL_SHARE = 0.90
LONGEST_INTERVAL = 10.0
"""Seconds between two beats, however long the lease is."""
ASK_EVERY = 0.5
"""Seconds between two questions to the supervisor, at least."""
LOOKS = 1.5
"""Seconds within which there is another look, at the usual pace."""
LATER = 0.01
"""Seconds after the end of a lease: whoever comes to the point may come too early by the resolution of a clock."""
LONGEST_SILENCE = 10.0
"""Seconds after which a supervisor that does not answer counts as dead."""


@value_object
class Seen:
    beat: int
    since: float


class Beats:
    """`lease` None: the state directory's lock is the lease (SQLite); children then live as long as the daemon.

    `on_dead` is called once when this node finds itself declared dead; `on_trust` when it is trusted that was not;
    `word` is what it tells with each beat; `again` asks for a tick after so long.
    A beat is raised only if the supervisor has answered since the one before."""

    def __init__(
        self,
        store: Store,
        in_force: InForce,
        bus: Bus,
        clock: Clock,
        switch: Callable[[], Switch],
        node: Callable[[], str],
        lease: timedelta | None,
        on_dead: Callable[[], None],
        word: Callable[[], Word] = Word,
        again: Callable[[timedelta], None] = lambda delay: None,
        on_trust: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._in_force = in_force
        self._bus = bus
        self._clock = clock
        self._switch = switch
        self._node = node
        self._lease = lease
        self._on_dead = on_dead
        self._word = word
        self._again = again
        self._on_trust = on_trust
        self._trusted_until = float("-inf")
        """CLOCK_BOOTTIME at which the present supervisor ends what it runs, unless it is told again."""
        longest = LONGEST_INTERVAL if lease is None else min(LONGEST_INTERVAL, lease.total_seconds() / 6)
        self._interval = longest
        self._silence = LONGEST_SILENCE if lease is None else min(LONGEST_SILENCE, lease.total_seconds() / 3)
        self._next = self._clock.monotonic()
        self._seen: dict[str, Seen] = {}
        self._looked_at = float("-inf")
        """When a look last showed what every other node's beat is."""
        self._expires = float("inf")
        """When the first lease of another node ends, unless it beats."""
        self._mourned: str | None = None
        self._asked: float | None = None
        self.offset = 0.0
        """Seconds that the database's clock is ahead of this machine's."""

    def rests(self, look: Look) -> bool:
        """It is not time for a beat, and no lease of another node has ended: else this node beats at once, and then
        looks after the others. Where one ends before the next look, a turn is asked for at that moment."""
        now = self._clock.monotonic()
        if self._lease is not None:
            others = [beat for beat in look.beats if beat.node != self._node() and beat.lease is not None]
            self._seen = {beat.node: self._noted(beat.node, beat.number, now) for beat in others}
            ends = [self._seen[beat.node].since + (beat.lease or 0.0) for beat in others]
            self._expires, self._looked_at = min(ends, default=float("inf")), now
            if 0 < self._expires - now < LOOKS:
                self._again(timedelta(seconds=self._expires - now + LATER))
        return now < min(self._next, self._expires)

    def tick(self, now: datetime) -> int:
        """Beats if it is time, and looks after the others; 1 if a beat was raised."""
        switch = self.listen()
        due = self._clock.monotonic() >= min(self._next, self._expires)
        if switch is None or not due or switch.silent_for() > self._interval:
            return 0
        raised = self._renew(switch, now)
        self._next = self._clock.monotonic() + self._interval
        if raised and self._lease is not None and self._must_watch():
            self._watch_others(now)
        return int(raised)

    def _must_watch(self) -> bool:
        """A lease has ended, or no look has shown the others for a while."""
        now = self._clock.monotonic()
        return now >= self._expires or now - self._looked_at > self._interval

    def listen(self) -> Switch | None:
        """The supervisor, if it answers; one that has been silent for too long is killed. Needs no database, and may be
        called as often as one likes: it is asked at most every half second."""
        switch = self._switch()
        now = self._clock.monotonic()
        if self._asked is not None and now - self._asked < ASK_EVERY:
            return switch
        self._asked = now
        silent = switch.silent_for()
        if silent > self._silence:
            log.error("supervisor_silent", seconds=round(silent, 1))
            switch.kill()
            return None
        try:
            switch.ping()
        except Unavailable:
            return None  # It has gone; who watches it puts another in its place.
        return switch

    def _renew(self, switch: Switch, now: datetime) -> bool:
        before = self._clock.boottime()
        self.offset = (now - self._clock.now()).total_seconds()
        with self._store.begin() as tx:
            alive = tx.nodes.renew(
                self._node(),
                now,
                generation=self._in_force.current.generation,
                clock_offset=self.offset,
                word=self._word(),
            )
        if not alive:
            if self._mourned != self._node():
                self._mourned = self._node()
                log.error("declared_dead", node=self._mourned)
                self._on_dead()
            return False
        self.extend_trust(switch, before)
        return True

    def hurry(self) -> None:
        """The next tick beats: a new supervisor waits for its trust, or there is something to tell."""
        self._next = self._clock.monotonic()

    @property
    def trusted(self) -> bool:
        """Whether the supervisor starts what it is asked to start. From any thread."""
        return self._clock.boottime() < self._trusted_until

    def distrust(self) -> None:
        """The supervisor is gone; whoever takes its place has to be told anew."""
        self._trusted_until = float("-inf")

    @property
    def alone(self) -> bool:
        """No other node was live when this one last looked."""
        return not self._seen

    def extend_trust(self, switch: Switch, before: float) -> None:
        """`before`: CLOCK_BOOTTIME from before the renewal (or registration) was sent."""
        if self._lease is None:
            switch.trust(None, None)
            until = float("inf")
        else:
            lease = self._lease.total_seconds()
            until = before + TERM_SHARE * lease
            switch.trust(until, before + KILL_SHARE * lease)
        renewed, self._trusted_until = self.trusted, until
        if not renewed:
            self._on_trust()

    def _noted(self, node: str, beat: int, now: float) -> Seen:
        """Since when that beat has been seen here."""
        seen = self._seen.get(node)
        return seen if seen is not None and seen.beat == beat else Seen(beat, now)

    def _watch_others(self, now: datetime) -> None:
        monotonic = self._clock.monotonic()
        with self._store.read() as tx:
            nodes = tx.nodes.all()
        # A beat that was raised while this read waited must not count as seen since before it.
        read_at = self._clock.monotonic()
        present: dict[str, Seen] = {}
        for node in nodes:
            if node.id == self._node() or node.state not in ("live", "stopping") or node.lease is None:
                continue
            present[node.id] = seen = self._noted(node.id, node.beat, read_at)
            if monotonic - seen.since >= node.lease.total_seconds():
                with self._store.begin() as tx:
                    dead = tx.nodes.declare_dead(node.id, seen.beat, now)
                if dead:
                    log.warning("node_dead", node=node.id, host=node.host)
                    self._bus.publish("node.dead", node=node.id, host=node.host, by=self._node())
        self._seen, self._expires = present, float("inf")
