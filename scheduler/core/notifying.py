"""Decides, purely, when and in how many messages people are told: pace, digests, further attempts, giving up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from scheduler.core.channel import Answer
from scheduler.core.notification import Fate, Pace, Result, Standing, Waiting
from scheduler.core.value_object import value_object

AT_ONCE = 10
"""Messages that a channel may be sent one right after the other."""
EVERY = timedelta(seconds=6)
"""And one more after each of these: at most 20 in any minute, which is what chat robots take (WeCom, DingTalk)."""
SINGLY = 3
"""Up to so many that wait are told one by one; more are told together."""
FIRST_WAIT, FACTOR, LONGEST_WAIT = timedelta(seconds=10), 3, timedelta(hours=1)
GIVE_UP = timedelta(hours=24)
"""What could not be sent for so long is FAILED."""
LONGEST_SAID = 300


@value_object
class Parcel:
    """What goes in one message: one notification, or the digest of several."""

    entries: tuple[Waiting, ...]


def budget(pace: Pace, now: datetime) -> int:
    """How many messages may be sent now."""
    return int(_filled(pace, now))


def spent(pace: Pace, messages: int, now: datetime) -> Pace:
    """After so many were sent."""
    return Pace(_filled(pace, now) - messages, now)


def next_message(pace: Pace, now: datetime) -> datetime:
    """When the next message may be sent."""
    lacking = 1 - _filled(pace, now)
    return now if lacking <= 0 else now + lacking * EVERY


def parcels(waiting: Sequence[Waiting], messages: int) -> list[Parcel]:
    """What to send now, in this order, in at most so many messages: everything, or nothing if none may be sent."""
    if messages < 1 or not waiting:
        return []
    if len(waiting) <= min(SINGLY, messages):
        return [Parcel((one,)) for one in waiting]
    return [Parcel(tuple(waiting))]


def results(parcel: Parcel, answer: Answer, now: datetime) -> list[Result]:
    """What an answer means for each that was in the message."""
    together = len(parcel.entries)
    if answer.ok:
        return [Result(one.id, Fate.SENT, now, None, together) for one in parcel.entries]
    said = answer.said[:LONGEST_SAID]
    return [
        Result(one.id, Fate.FAILED, now, said, together)
        if now - one.created_at >= GIVE_UP
        else Result(one.id, Fate.WAITING, now + _wait(one.attempts, answer), said, together)
        for one in parcel.entries
    ]


def stands(standing: Standing, answers: Sequence[Answer], now: datetime) -> Standing:
    """How the channel stands after these answers: its pace, whether it fails, until when it wants to be left alone."""
    pace = spent(standing.pace, len(answers), now)
    if not answers:
        return standing
    last = answers[-1]
    alone = now + last.retry_after if last.retry_after is not None else None
    if last.ok:
        return Standing(pace, alone, None, None, now)
    since = standing.failing_since or now
    return replace(standing, pace=pace, not_before=alone, failing_since=since, error=last.said[:LONGEST_SAID])


def _wait(attempts: int, answer: Answer) -> timedelta:
    """After so many attempts before this one: 10 s, 30 s, 90 s … an hour; never less than the channel asks for."""
    wait: timedelta = min(FIRST_WAIT * FACTOR ** min(attempts, 10), LONGEST_WAIT)
    return max(wait, answer.retry_after or timedelta(0))


def _filled(pace: Pace, now: datetime) -> float:
    if pace.at is None:
        return AT_ONCE
    return min(AT_ONCE, pace.messages + max(timedelta(0), now - pace.at) / EVERY)
