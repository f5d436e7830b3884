"""People are told: at once, once, in order, in few messages, whatever a channel does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from scheduler.core.channel import Answer, Channel, Message
from scheduler.core.commands import IfBusy
from scheduler.core.errors import DatabaseAway
from scheduler.core.news import Place
from scheduler.core.notification import Fate, Sent
from scheduler.core.notification_queries import NotificationFilter
from scheduler.core.notifying import GIVE_UP
from scheduler.core.outcome import Succeeded
from scheduler.core.tiding import Kind, Tiding
from scheduler.engine.announce import announce, announced
from scheduler.engine.notifier import HELD, Notifier
from scheduler.store.store import SqlStore
from tests.engine.rig import Rig, failed, jobs
from tests.engine.test_standing_aside import older
from tests.until import until

OK, NO, AWAY = Answer(True, "ok"), Answer(False, "no"), Answer(False, "away", silent=True)
CHANNELS = {"ops": {"url": "json://ops"}, "mail": {"url": "json://mail"}}
HOURLY = {"schedule": "0 * * * *", "grace": "15m", "notify": ["ops"]}


class Courier:
    """Answers as it is told, `ok` if nothing is said; `hold` keeps it from answering."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, Message]] = []
        self.answers: dict[str, list[Answer]] = {}
        self.always: dict[str, Answer] = {}
        self.hold: dict[str, threading.Event] = {}
        self.begun = threading.Semaphore(0)
        self.then: Callable[[], object] = lambda: None

    def deliver(self, channel: Channel, messages: Sequence[Message]) -> list[Answer]:
        self.begun.release()
        if channel.name in self.hold:
            assert self.hold[channel.name].wait(30)
        made = []
        for message in messages:
            queued = self.answers.get(channel.name)
            answer = queued.pop(0) if queued else self.always.get(channel.name, OK)
            self.sent.append((channel.name, message))
            made.append(answer)
            if answer.silent:
                break
        self.then()
        return made

    def titles(self, channel: str = "ops") -> list[str]:
        return [message.title for name, message in self.sent if name == channel]


class Desk:
    """A rig and its notifier, whose threads are waited for."""

    def __init__(self, rig: Rig, courier: Courier | None = None) -> None:
        self.rig = rig
        self.courier = courier or Courier()
        self.pokes = 0
        self.notifier = Notifier(
            rig.store, rig.store, rig.in_force, self.courier, rig.bus, lambda: rig.node, Place(), self._poke
        )

    def _poke(self) -> None:
        self.pokes += 1

    def tick(self, *, wait: bool = True, **by: float) -> int:
        if by:
            self.rig.turn(**by)
        begun = self.notifier.tick(self.rig.store.now())
        if wait:
            self.wait()
        return begun

    def wait(self) -> None:
        for future in list(self.notifier._busy.values()):
            future.result(30)

    def tell(self, *numbers: int, job: str = "a", kind: Kind = Kind.MISSED) -> int:
        now = self.rig.store.now()
        tidings = [Tiding(kind, job, now, f"key:{number}") for number in numbers]
        with self.rig.store.begin() as tx:
            return announce(tx, tidings, self.rig.in_force.current.configuration, now)

    def entries(self, channel: str = "") -> list[Sent]:
        """Oldest first."""
        with self.rig.store.queries() as queries:
            return list(reversed(queries.notifications(NotificationFilter(channel), 10_000)))

    def fates(self, channel: str = "") -> list[str]:
        return [one.fate.value for one in self.entries(channel)]


def desk(store: SqlStore, given: Any = None, **more: Any) -> Desk:
    return Desk(Rig(store, jobs(given or {"a": HOURLY}, notify=CHANNELS), **more))


def test_a_miss_a_failure_and_the_recovery_are_told_once_each_and_in_order(store: SqlStore) -> None:
    one = desk(store)
    rig = one.rig
    rig.tick(hours=1)
    rig.finish(failed())
    one.tick()
    rig.tick(minutes=20)
    one.tick()
    for _ in range(3):
        rig.tick(minutes=1)
        one.tick()
    rig.desk.run_now("a", author="me", if_busy=IfBusy.QUEUE)
    rig.tick()
    rig.finish()
    one.tick()
    titles = one.courier.titles()
    assert [title.split(": ")[1].split(" after")[0] for title in titles] == ["FAILED", "MISSED", "well again"]
    assert one.fates() == ["sent"] * 3
    names = [notice.name for notice in rig.notices if notice.name.startswith("notification.")]
    assert names == ["notification.announced", "notification.sent"] * 3


def test_a_job_without_channels_costs_no_statement(sqlite: SqlStore) -> None:
    one = desk(sqlite, {"a": {"schedule": "0 * * * *"}})
    configuration = one.rig.in_force.current.configuration
    tidings = [Tiding(Kind.MISSED, "a", one.rig.store.now(), "k")]
    assert announce(None, tidings, configuration, one.rig.store.now()) == 0  # type: ignore[arg-type]
    announced(one.rig.bus, 0)
    assert not [notice for notice in one.rig.notices if notice.name == "notification.announced"]


def test_a_notifier_with_nothing_to_tell_writes_nothing(sqlite: SqlStore) -> None:
    one = desk(sqlite)
    one.tick()
    written = one.rig.store.writes
    for _ in range(100):
        one.tick(seconds=1)
    assert one.rig.store.writes == written


def test_a_completion_is_told_to_those_who_asked_with_its_result(store: SqlStore) -> None:
    one = desk(store, {"a": {**HOURLY, "notify": {"ops": ["completed"], "mail": ["missed"]}}, "b": HOURLY})
    one.rig.tick(hours=1)
    one.rig.finish(Succeeded({"failed": 30, "total": 500, "what": "pages"}))
    one.tick()
    assert one.courier.titles() == ["✓ a: completed, 30 of 500 pages failed"]
    assert one.fates("mail") == []


def test_a_dead_letter_is_told_once_per_run(store: SqlStore) -> None:
    one = desk(store, {"a": {"notify": {"ops": "dead_letter"}, "retries": 0}})
    for number in range(2):
        one.rig.desk.run_now("a", author="me", payload=number, has_payload=True)
        one.rig.tick()
        one.rig.finish(failed())
        one.tick()
        one.tick()
    assert one.courier.titles() == ["✗ a: DEAD LETTER"] * 2


def test_a_thousand_misses_are_a_few_messages_and_none_is_lost(store: SqlStore) -> None:
    one = desk(store)
    for number in range(1_000):
        one.tell(number)
        if number % 100 == 0:
            one.tick(seconds=0.1)
    for _ in range(10):
        one.tick(seconds=1)
    assert one.fates() == ["sent"] * 1_000
    assert len(one.courier.sent) <= 12
    assert sum(message.names["count"] for _, message in one.courier.sent) == 1_000


def test_no_channel_gets_more_than_twenty_messages_a_minute(sqlite: SqlStore) -> None:
    one = desk(sqlite)
    for number in range(60):
        one.tell(number)
        one.tick(seconds=1)
    assert len(one.courier.sent) <= 20
    one.tick(seconds=6)
    assert set(one.fates()) == {"sent"}


def test_a_failing_channel_is_tried_again_and_then_given_up_visibly(store: SqlStore) -> None:
    one = desk(store)
    one.courier.always["ops"] = NO
    one.tell(1)
    for _ in range((GIVE_UP + timedelta(hours=2)) // timedelta(seconds=200)):
        one.tick(seconds=200)
    (sent,) = one.entries()
    assert (sent.fate, sent.error) == (Fate.FAILED, "no")
    assert sent.attempts == len(one.courier.sent)
    assert 25 <= sent.attempts <= 40
    assert [notice.fields["reason"] for notice in one.rig.notices if notice.name == "notification.failed"] == ["no"]
    assert one.tick(hours=2) == 0


def test_a_failing_channel_keeps_neither_others_nor_runs_waiting(store: SqlStore) -> None:
    given = {"a": {**HOURLY, "notify": ["ops", "mail"]}}
    one = desk(store, given)
    one.courier.hold["ops"] = threading.Event()
    one.tell(1)
    assert one.tick(wait=False) == 2
    assert one.courier.begun.acquire(timeout=30)
    assert one.courier.begun.acquire(timeout=30)
    until(lambda: one.fates("mail") == ["sent"] and "mail" not in one.notifier._busy)
    one.rig.tick(hours=1)
    assert one.rig.finish() == 1
    one.tell(2)
    assert one.tick(seconds=1, wait=False) == 1  # mail, not the one that hangs
    one.courier.hold["ops"].set()
    one.wait()
    one.tick(seconds=1)
    assert set(one.fates()) == {"sent"}


def test_a_silent_channel_is_not_asked_for_each_that_waits(store: SqlStore) -> None:
    one = desk(store)
    one.courier.always["ops"] = AWAY
    one.tell(1, 2, 3)
    one.tick()
    assert len(one.courier.sent) == 1
    assert [sent.attempts for sent in one.entries()] == [1, 0, 0]
    one.tell(4)
    assert one.tick(seconds=5) == 0
    one.courier.always.clear()
    one.tick(seconds=6)
    assert one.fates() == ["sent"] * 4
    assert one.courier.sent[-1][1].names["count"] == 4


def test_what_is_announced_later_never_overtakes(store: SqlStore) -> None:
    one = desk(store)
    one.courier.answers["ops"] = [NO]
    one.tell(1)
    one.tick()
    one.tell(2, kind=Kind.RECOVERED)
    one.tick(seconds=1)
    assert [title.split(": ")[1] for title in one.courier.titles()] == ["MISSED", "MISSED", "well again"]


def test_a_recovery_of_the_database_repeats_nothing(store: SqlStore) -> None:
    """It is away when what was sent is to be written down."""
    one = desk(store)
    one.tell(1)
    one.courier.then = lambda: setattr(one.rig.store, "away", True)
    one.tick()
    one.rig.store.away = False
    one.courier.then = lambda: None
    assert one.fates() == ["waiting"]
    one.tick(seconds=1)
    one.tick(seconds=1)
    assert one.fates() == ["sent"]
    assert len(one.courier.sent) == 1


def test_a_daemon_that_dies_between_sending_and_noting_repeats_one_message_at_most(store: SqlStore) -> None:
    one = desk(store)
    one.tell(*range(100))
    one.notifier._write = lambda done: None  # type: ignore[method-assign]
    one.tick()
    assert one.tick(seconds=5) == 0
    with one.rig.store.begin() as tx:
        tx.nodes.mark(one.rig.node, "stopped", one.rig.store.now())
    one.rig.succeed()
    successor = Desk(one.rig, one.courier)
    successor.tick(seconds=1)
    successor.tick(seconds=1)
    assert successor.fates() == ["sent"] * 100
    assert len(one.courier.sent) == 2


def test_of_several_nodes_one_sends(store: SqlStore) -> None:
    one = desk(store)
    other = Desk(Rig(store, one.rig.text, one.rig.clock, start=False), one.courier)
    other.rig.in_force.set(one.rig.in_force.current)
    other.rig.register()
    one.courier.hold["ops"] = threading.Event()
    one.tell(1)
    assert one.tick(wait=False) == 1
    assert one.courier.begun.acquire(timeout=30)
    assert other.tick() == 0
    one.rig.turn(seconds=HELD.total_seconds() / 2)
    assert other.tick() == 0
    one.courier.hold["ops"].set()
    one.wait()
    other.tick()
    one.tick()
    assert len(one.courier.sent) == 1
    assert one.fates() == ["sent"]


def test_what_waits_for_a_channel_that_was_removed_is_given_up(store: SqlStore) -> None:
    one = desk(store, {"a": HOURLY})
    one.courier.always["ops"] = NO
    one.tell(1)
    one.tick()
    one.rig.reload(jobs({"a": {"schedule": "0 * * * *"}}))
    one.tick(seconds=1)
    (sent,) = one.entries()
    assert (sent.fate, sent.error) == (Fate.FAILED, "no channel of this name is configured any more")


def rests(one: Desk) -> bool:
    rig = one.rig
    return one.notifier.rests(rig.store.look(rig.node, rig.in_force.current.generation))


def test_a_node_that_stands_aside_gives_nothing_up(store: SqlStore) -> None:
    """It has loaded nothing, and there are channels all the same."""
    one = desk(store)
    one.courier.always["ops"] = NO
    one.tell(1)
    one.tick()
    aside = Desk(older(store, one.rig, jobs({"b": {}})), one.courier)
    assert aside.rig.in_force.current.configuration.channels == {}
    for _ in range(2):
        aside.tick(seconds=1)
        assert (aside.fates(), rests(aside)) == (["waiting"], True)
    one.courier.always.clear()
    one.tick(minutes=1)
    assert one.fates() == ["sent"]
    one.tell(2)
    one.rig.reload(jobs({"a": {"schedule": "0 * * * *"}}))
    aside.tick(seconds=1)
    assert one.fates() == ["sent", "waiting"], "who knows that it is gone says so"
    one.tick(seconds=1)
    assert one.fates() == ["sent", "failed"]


def test_a_node_that_has_not_loaded_the_newest_file_gives_nothing_up(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {"schedule": "0 * * * *"}}))
    before = rig.in_force.current
    rig.reload(jobs({"a": HOURLY}, notify=CHANNELS))
    newest = rig.in_force.current
    one = Desk(rig)
    one.tell(1)
    rig.in_force.set(before)
    one.tick()
    assert (one.fates(), rests(one)) == (["waiting"], True)
    rig.in_force.set(newest)
    assert not rests(one)
    one.tick()
    assert one.fates() == ["sent"]
    one.tick()
    assert rests(one)


def test_a_job_that_was_removed_is_still_told_of(store: SqlStore) -> None:
    one = desk(store, {"a": HOURLY, "b": HOURLY})
    one.tell(1, job="b")
    one.rig.reload(jobs({"a": HOURLY}, notify=CHANNELS))
    one.tick(seconds=1)
    assert one.courier.titles() == ["✗ b: MISSED"]


def wordless(one: Desk, key: str = "bad") -> None:
    """Announces something that no text can be made of."""
    now = one.rig.store.now()
    bad = Tiding(Kind.RECOVERED, "a", now, key, None, {"was_since": "no instant"})
    with one.rig.store.begin() as tx:
        announce(tx, [bad], one.rig.in_force.current.configuration, now)


def test_what_cannot_be_put_into_words_has_failed_and_is_in_nobody_s_way(store: SqlStore, logs: list[Any]) -> None:
    one = desk(store)
    one.tell(1)
    wordless(one)
    one.tell(2)
    one.tick()
    assert one.fates() == ["sent", "failed", "sent"]
    why = """it cannot be put into words: ValueError("Invalid isoformat string: 'no instant'")"""
    assert (one.entries()[1].error, one.entries()[1].attempts) == (why, 1)
    assert [notice.fields["reason"] for notice in one.rig.notices if notice.name == "notification.failed"] == [why]
    assert [entry["event"] for entry in logs if entry["log_level"] == "error"] == ["notifying_failed"]
    one.tell(3)
    one.tick(seconds=1)
    assert one.fates()[-1] == "sent"


def test_one_of_many_that_cannot_be_put_into_words_does_not_keep_the_others(store: SqlStore) -> None:
    one = desk(store)
    one.tell(*range(5))
    wordless(one)
    one.tell(*range(10, 40))
    one.tick()
    assert one.fates() == ["sent"] * 5 + ["failed"] + ["sent"] * 4 + ["waiting"] * 26
    for _ in range(4):
        one.tick(seconds=6)
    assert one.fates() == ["sent"] * 5 + ["failed"] + ["sent"] * 30
    assert sum(message.names["count"] for _, message in one.courier.sent) == 35


def test_nothing_has_failed_because_the_database_was_away(sqlite: SqlStore) -> None:
    """When what there is to tell was to be read."""
    one = desk(sqlite)
    one.tell(1)
    words = one.notifier._words

    def away(*_: object, **__: object) -> list[Message]:
        raise DatabaseAway("database: it went away")

    setattr(one.notifier, "_words", away)  # noqa: B010 -- what it reads
    one.tick()
    setattr(one.notifier, "_words", words)  # noqa: B010
    assert one.fates() == ["waiting"]
    one.tick(seconds=61)
    assert one.fates() == ["sent"]


def test_a_courier_that_breaks_is_given_up_like_a_channel_that_does_not_answer(sqlite: SqlStore) -> None:
    one = desk(sqlite)
    one.tell(1)
    one.courier.then = lambda: [][0]
    one.tick()
    assert [(sent.attempts, sent.error) for sent in one.entries()] == [(1, "it could not be sent (IndexError)")]
    one.tick(seconds=GIVE_UP.total_seconds())
    assert one.fates() == ["failed"]


def test_a_test_is_sent_at_once_and_a_channel_that_works_again_gets_what_waits(store: SqlStore) -> None:
    one = desk(store)
    one.courier.answers["ops"] = [NO, OK]
    one.tell(1)
    one.tick()
    assert one.notifier.try_channel("ops") == OK
    assert "a test" in one.courier.titles()[-1]
    assert one.pokes == 2  # one when it had sent, one for what waits
    one.tick(seconds=1)
    assert one.fates() == ["sent"]


def test_a_database_that_is_away_is_the_loop_s_to_tell(sqlite: SqlStore) -> None:
    one = desk(sqlite)
    one.tick()
    one.tell(1)
    one.rig.store.away = True
    try:
        one.tick(seconds=1)
    except DatabaseAway:
        pass
    else:
        raise AssertionError("nobody heard of it")
    finally:
        one.rig.store.away = False
    one.tick(seconds=1)
    assert one.fates() == ["sent"]


def test_a_daemon_that_stops_waits_for_what_is_under_way(sqlite: SqlStore) -> None:
    one = desk(sqlite)
    one.courier.hold["ops"] = threading.Event()
    one.tell(1)
    one.tick(wait=False)
    assert one.courier.begun.acquire(timeout=30)
    threading.Timer(0.1, one.courier.hold["ops"].set).start()
    one.notifier.close(30)
    assert one.fates() == ["sent"]
