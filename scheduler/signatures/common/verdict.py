"""From codes and keys to a verdict: the one place where codes are compared, and where times are judged."""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from scheduler.core.durations import format_duration
from scheduler.core.signature import Accepted, LiveSecret, Refusal, Rejected, Verdict


def same(one: bytes, other: bytes) -> bool:
    """In a time that tells nothing about where they differ."""
    return hmac.compare_digest(one, other)


def any_same(code: bytes, candidates: Iterable[bytes]) -> bool:
    """Whether `code` is among the candidates; all of them are compared."""
    found = False
    for one in candidates:
        found |= hmac.compare_digest(code, one)
    return found


def usable(keys: Sequence[object], secrets: Sequence[LiveSecret], form: str) -> Rejected | None:
    """The verdict if there is nothing to check with."""
    if not secrets:
        return Rejected(Refusal.SECRET_MISSING, "the source has no secret that can be read now")
    if all(key is None for key in keys):
        names = ", ".join(one.name for one in secrets)
        return Rejected(Refusal.SECRET_UNUSABLE, f"no secret can be used ({names}): each must be {form}")
    return None


def mismatch(secrets: Sequence[LiveSecret]) -> Rejected:
    names = ", ".join(one.name for one in secrets)
    return Rejected(Refusal.SIGNATURE_MISMATCH, f"no secret ({names}) gives the signature that was sent")


def accepted(
    secrets: Sequence[LiveSecret], which: int, *, signed_at: datetime | None, tolerance: timedelta, now: datetime
) -> Verdict:
    """The verdict about a request that the secret `which` did sign: what is left to judge is its time."""
    name = secrets[which].name
    if signed_at is None:
        return Accepted(which, name)
    difference = now - signed_at
    if abs(difference) <= tolerance:
        return Accepted(which, name, signed_at, difference)
    reason = Refusal.TIMESTAMP_TOO_OLD if difference > timedelta() else Refusal.TIMESTAMP_TOO_NEW
    return Rejected(reason, _out_of_time(difference, tolerance, name), signed_at, difference)


def _out_of_time(difference: timedelta, tolerance: timedelta, name: str) -> str:
    # Rounded up: what is refused must not read as if it were within.
    seconds = timedelta(seconds=-(-abs(difference) // timedelta(seconds=1)))
    side = "ago" if difference > timedelta() else "in the future"
    return (
        f"signed with {name}, but {format_duration(seconds)} {side} by this machine's clock, and the tolerance is "
        f"{format_duration(tolerance)}: a replay, or one of the clocks is wrong"
    )
