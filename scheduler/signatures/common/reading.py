"""Reading what strangers wrote into headers: strict, bounded, and never raising anything but Unreadable."""

from __future__ import annotations

import base64
import binascii
import re
from datetime import UTC, datetime, timedelta

from scheduler.core.signature import Headers, Refusal, Rejected

LONGEST = 16_384
"""Characters of a header that are looked at; providers send a few hundred."""
MOST = 32
"""Codes in one request; a rotation sends two or three."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIME = re.compile(r"[0-9]{1,15}", re.ASCII)
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}", re.ASCII)


class Unreadable(Exception):
    """A request that cannot be judged: it carries its verdict."""

    def __init__(self, reason: Refusal, why: str) -> None:
        super().__init__(why)
        self.rejected = Rejected(reason, why)


def values(headers: Headers, name: str) -> tuple[str, ...]:
    """The values of a signature's header. Each may hold a code; one is enough."""
    found = headers.all(name)
    if not found:
        raise Unreadable(Refusal.SIGNATURE_MISSING, f"there is no header {name}")
    if sum(map(len, found)) > LONGEST:
        raise Unreadable(Refusal.SIGNATURE_MALFORMED, f"the header {name} has more than {LONGEST} characters")
    if not any(found):
        raise Unreadable(Refusal.SIGNATURE_MALFORMED, f"the header {name} is empty")
    return found


def single(headers: Headers, name: str, *, missing: Refusal, malformed: Refusal) -> str:
    """The value of a header that is itself signed: there must be one, and only one."""
    found = headers.all(name)
    if not found:
        raise Unreadable(missing, f"there is no header {name}")
    if any(one != found[0] for one in found):
        raise Unreadable(Refusal.HEADER_REPEATED, f"the header {name} came {len(found)} times, with different values")
    if not found[0]:
        raise Unreadable(malformed, f"the header {name} is empty")
    if len(found[0]) > LONGEST:
        raise Unreadable(malformed, f"the header {name} has more than {LONGEST} characters")
    return found[0]


def instant(text: str, unit: str = "s") -> datetime:
    """The instant that a signed time names: digits only, in seconds or (`ms`) milliseconds since 1970."""
    if not _TIME.fullmatch(text):
        raise Unreadable(Refusal.TIMESTAMP_MALFORMED, "the signed time is not a number of 1 to 15 digits")
    try:
        return _EPOCH + (timedelta(milliseconds=int(text)) if unit == "ms" else timedelta(seconds=int(text)))
    except OverflowError:
        why = "the signed time lies behind the year 9999: is it in milliseconds?"
        raise Unreadable(Refusal.TIMESTAMP_MALFORMED, why) from None


def written(now: datetime, unit: str = "s") -> str:
    """The reverse of `instant`; parts of a unit are cut off."""
    return str((now - _EPOCH) // (timedelta(milliseconds=1) if unit == "ms" else timedelta(seconds=1)))


def decoded(text: str, encoding: str) -> bytes | None:
    """The bytes of a code in `hex` or `base64`, None if it is not one. Base64 must be in its one canonical form."""
    if encoding == "hex":
        try:
            code = bytes.fromhex(text)
        except ValueError:
            return None
        return code if code and 2 * len(code) == len(text) else None  # Else there were blanks in it.
    if not _BASE64.fullmatch(text):
        return None
    try:
        found = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return found if base64.b64encode(found).decode("ascii") == text else None


def encoded(code: bytes, encoding: str) -> str:
    return code.hex() if encoding == "hex" else base64.b64encode(code).decode("ascii")


def codes(items: list[str], encoding: str, size: int, place: str) -> tuple[bytes, ...]:
    """The codes of the right form and length among the items. At least one must be, and there must not be too many."""
    if len(items) > MOST:
        raise Unreadable(Refusal.SIGNATURE_MALFORMED, f"{place} holds more than {MOST} signatures")
    found = [code for one in items if (code := decoded(one, encoding)) is not None and len(code) == size]
    if not found:
        why = f"{place} holds no signature of {size} bytes in {encoding}"
        raise Unreadable(Refusal.SIGNATURE_MALFORMED, why)
    return tuple(found)
