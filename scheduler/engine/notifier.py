"""Tells people what was announced: each channel in a thread of its own, by one node at a time.

What waits is a row. A node takes a channel by compare-and-set, sends, and writes what became of it; a node that dies
between the two leaves a channel that another takes over, which repeats at most what was under way: one message per
channel, or the up to three that are sent singly.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

import structlog

from scheduler.core.channel import Answer, Channel, Courier, Message
from scheduler.core.errors import Unavailable
from scheduler.core.execution import Bus
from scheduler.core.look import Look
from scheduler.core.news import Place, trial
from scheduler.core.notification import Fate, Result, Standing, Waiting
from scheduler.core.notifying import LONGEST_SAID, Parcel, budget, next_message, parcels, results, stands
from scheduler.core.ports import Store
from scheduler.core.queries import Readable
from scheduler.core.value_object import value_object
from scheduler.engine.dispatch import messages
from scheduler.engine.in_force import InForce, Loaded

log = structlog.get_logger("engine")

AT_ONCE = 4
"""Channels that this node sends to at the same time: a process each."""
HELD = timedelta(minutes=2)
"""How long a channel is a node's at most: longer than it can take to send."""
TOGETHER = 5_000
"""Notifications in one digest at most."""
SILENT = timedelta(minutes=1)
"""A channel that does not answer is left alone for so long at most, also by what is announced anew."""
KEPT = timedelta(days=90)
PRUNE_EVERY = timedelta(hours=1)
PRUNED = 500
NOTHING_SAID = Answer(False, "nothing was said")
_GONE = "no channel of this name is configured any more"


@value_object
class _Done:
    """What was sent and is not written yet."""

    channel: str
    node: str
    standing: Standing
    results: Sequence[Result] = ()


class Notifier:
    """`tick` from one thread; it never waits for a channel. `courier` sends, `place` says who tells, `poke` asks for
    another tick."""

    def __init__(
        self,
        store: Store,
        readable: Readable,
        in_force: InForce,
        courier: Courier,
        bus: Bus,
        node: Callable[[], str],
        place: Place,
        poke: Callable[[], None],
    ) -> None:
        self._store = store
        self._readable = readable
        self._in_force = in_force
        self._courier = courier
        self._bus = bus
        self._node = node
        self._place = place
        self._poke = poke
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="notify")
        self._busy: dict[str, Future[None]] = {}
        self._lock = threading.Lock()
        self._unwritten: list[_Done] = []
        self._cleared = -1
        self._pruned_at: datetime | None = None

    def rests(self, look: Look) -> bool:
        """Nothing is to be sent yet, to be written down, or to be forgotten."""
        loaded, following = self._in_force.current, look.next_notification
        due = following is not None and following <= look.now and bool(loaded.configuration.channels)
        if due or self._unwritten or (self._may_clear(loaded) and look.generation <= loaded.generation):
            return False
        return self._pruned_at is not None and look.now - self._pruned_at < PRUNE_EVERY

    def tick(self, now: datetime) -> int:
        """Begins to send what is due; to how many channels. Raises Unavailable when the database is away; nothing is
        lost by it."""
        self._write_rest()
        loaded = self._in_force.current
        channels = loaded.configuration.channels
        if self._may_clear(loaded):
            self._clear(loaded, now)
        self._prune(now)
        if not channels:
            return 0
        with self._store.read() as tx:
            due = tx.notifications.due(now)
        return sum(self._begin(channels[name]) for name in due if name in channels)

    def try_channel(self, name: str) -> Answer:
        """Sends a test by the channel at once, in the caller's thread; if it is taken, what waits for it is due."""
        channel = self._in_force.current.configuration.channels[name]
        now = self._store.now()
        answer = next(iter(self._courier.deliver(channel, [trial(name, self._place, now)])), NOTHING_SAID)
        if answer.ok:
            with self._store.begin() as tx:
                waiting = tx.notifications.hasten(name, now)
            if waiting:
                self._poke()
        return answer

    def close(self, timeout: float) -> None:
        """Nothing more is begun; waits for what is under way, and writes what it came to if the database takes it."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            busy = list(self._busy.values())
        wait(busy, timeout)
        with suppress(Unavailable):
            self._write_rest()

    def _begin(self, channel: Channel) -> bool:
        """False: it is being sent to already, or as many others are as may be."""
        with self._lock:
            if channel.name in self._busy or len(self._busy) >= AT_ONCE:
                return False
            self._busy[channel.name] = self._threads.submit(self._work, channel)
        return True

    def _work(self, channel: Channel) -> None:
        try:
            self._send(channel)
        except Unavailable as error:
            log.warning("notifying_waits", channel=channel.name, reason=error.reason)
        except Exception:
            log.exception("notifying_failed", channel=channel.name)
        finally:
            with self._lock:
                self._busy.pop(channel.name, None)
        self._poke()

    def _send(self, channel: Channel) -> None:
        now, node = self._store.now(), self._node()
        with self._store.begin() as tx:
            standing = tx.notifications.take(channel.name, node, now, now + HELD)
            waiting = [] if standing is None else tx.notifications.waiting(channel.name, TOGETHER)
        if standing is None:
            return
        # If anything but the channel is in the way it is not tried again at once.
        done = _Done(channel.name, node, replace(standing, not_before=now + SILENT))
        try:
            after, came = self._deliver(channel, standing, waiting, now)
            done = replace(done, standing=after, results=came)
        finally:
            self._write(done)

    def _deliver(
        self, channel: Channel, standing: Standing, waiting: Sequence[Waiting], now: datetime
    ) -> tuple[Standing, list[Result]]:
        """How the channel stands afterwards, and what became of what was sent."""
        most = budget(standing.pace, now)
        if not waiting or most < 1:
            later = next_message(standing.pace, now) if waiting else standing.not_before
            return replace(standing, not_before=later), []
        worded, failed = self._put_into_words(channel, waiting, most, now)
        begun = time.monotonic()
        answers = self._ask(channel, [message for _, message in worded])
        now += timedelta(seconds=time.monotonic() - begun)  # The database may be away by now.
        came = [
            one for (parcel, _), answer in zip(worded, answers, strict=False) for one in results(parcel, answer, now)
        ]
        return _left_alone(stands(standing, answers, now), answers, came, now), [*failed, *came]

    def _put_into_words(
        self, channel: Channel, waiting: Sequence[Waiting], most: int, now: datetime
    ) -> tuple[list[tuple[Parcel, Message]], list[Result]]:
        """What to send now, in at most `most` messages, and what has failed because it cannot be put into words: it
        must not keep waiting what comes after it. Which one that is shows when they are told one by one."""
        chosen = parcels(waiting, most)
        try:
            return list(zip(chosen, self._words(chosen, now), strict=True)), []
        except Unavailable:
            raise
        except Exception:
            log.exception("notifying_failed", channel=channel.name)
        worded: list[tuple[Parcel, Message]] = []
        failed: list[Result] = []
        for one in waiting[:most]:
            alone = Parcel((one,))
            try:
                (message,) = self._words([alone], now)
                worded.append((alone, message))
            except Unavailable:
                raise
            except Exception as error:
                why = f"it cannot be put into words: {error!r}"  # Escaped: a database does not take every letter.
                failed.append(Result(one.id, Fate.FAILED, now, why[:LONGEST_SAID]))
        return worded, failed

    def _words(self, chosen: Sequence[Parcel], now: datetime) -> list[Message]:
        with self._readable.queries() as queries:
            return messages(chosen, queries, self._in_force.current.configuration, self._place, now)

    def _ask(self, channel: Channel, made: Sequence[Message]) -> Sequence[Answer]:
        """Whatever happens while it is sent is an answer: without one it would be tried for ever."""
        if not made:
            return []
        try:
            return self._courier.deliver(channel, made)
        except Exception as error:
            log.exception("notifying_failed", channel=channel.name)
            return [Answer(False, f"it could not be sent ({type(error).__name__})", silent=True)]

    def _write(self, done: _Done) -> None:
        """What cannot be written now is written later, before anything else is sent."""
        try:
            now = self._store.now()
            with self._store.begin() as tx:
                ours = tx.notifications.give_back(done.channel, done.node, done.standing, done.results, now)
        except Unavailable:
            with self._lock:
                self._unwritten.append(done)
            raise
        if ours:
            self._tell(done)

    def _write_rest(self) -> None:
        with self._lock:
            rest, self._unwritten = self._unwritten, []
        while rest:
            try:
                self._write(rest[0])
            except Unavailable:
                with self._lock:
                    self._unwritten += rest[1:]
                raise
            rest.pop(0)

    def _tell(self, done: _Done) -> None:
        for fate, name in ((Fate.SENT, "sent"), (Fate.WAITING, "delayed"), (Fate.FAILED, "failed")):
            found = [one for one in done.results if one.fate is fate]
            if found:
                self._bus.publish(f"notification.{name}", channel=done.channel, count=len(found), reason=found[0].error)

    def _may_clear(self, loaded: Loaded) -> bool:
        """A node that stands aside does not know which channels there are."""
        return self._cleared != loaded.generation and self._in_force.behind is None

    def _clear(self, loaded: Loaded, now: datetime) -> None:
        """Gives up what waits for channels that nobody has any more, once what is in force is loaded."""
        with self._store.begin() as tx:
            if tx.generations.hold() > loaded.generation:
                return
            gone = tx.notifications.abandon(loaded.configuration.channels, _GONE, now)
        self._cleared = loaded.generation
        for name in gone:
            self._bus.publish("notification.failed", channel=name, count=1, reason=_GONE)

    def _prune(self, now: datetime) -> None:
        if self._pruned_at is not None and now - self._pruned_at < PRUNE_EVERY:
            return
        with self._store.begin() as tx:
            pruned = tx.notifications.prune(now - KEPT, PRUNED)
        if pruned < PRUNED:
            self._pruned_at = now


def _left_alone(standing: Standing, answers: Sequence[Answer], came: Sequence[Result], now: datetime) -> Standing:
    """Of what was not tried because the channel fell silent nothing is written: it must not try at once."""
    if not answers or not answers[-1].silent:
        return standing
    until = min((one.next_at for one in came if one.fate is Fate.WAITING), default=now + SILENT)
    return replace(standing, not_before=max(standing.not_before or now, min(until, now + SILENT)))
