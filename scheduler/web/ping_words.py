"""What a ping says, out of its path and query: `/ping/{key}/{job}[/start|/fail|/log|/<exit code>][?rid=…]`."""

from __future__ import annotations

import math
import uuid
from collections.abc import Mapping
from datetime import timedelta
from urllib.parse import parse_qsl, unquote_to_bytes

from scheduler.core.errors import InvalidInput
from scheduler.core.sign import Word
from scheduler.core.value_object import value_object

PREFIX = "/ping/"
HEADER = "-"
"""In the place of the key: it is in the header Authorization, or the caller came in by the Unix socket."""
MOST_SECONDS = 366 * 86_400.0

_WORDS = {"": Word.SUCCESS, "start": Word.START, "fail": Word.FAIL, "log": Word.LOG}


@value_object
class Address:
    """The parts of a path, decoded. `rest`: what stands behind the job, None if that is more than one part."""

    key: str
    job: str
    rest: str | None


@value_object
class Said:
    """As in core.sign.Sign."""

    word: Word
    exit_code: int | None
    rid: str | None
    ago: timedelta
    took: timedelta | None


def address_of(path: str) -> Address | None:
    """None: it names no key and job."""
    parts = [unquote_to_bytes(part).decode("utf-8", "replace") for part in path[len(PREFIX) :].split("/")]
    if len(parts) < 2 or not all(parts[:2]):
        return None
    rest = parts[2:]
    return Address(parts[0], parts[1], rest[0] if rest[:1] and len(rest) == 1 else (None if rest else ""))


def said(rest: str | None, query: bytes) -> Said:
    """Raises InvalidInput, saying what a ping may say. Parameters that are none of ours are passed over: senders that
    were made for other services have some."""
    word, code = _word(rest)
    given = dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True))
    took = _seconds(given, "took")
    if took is not None and word in (Word.START, Word.LOG):
        raise InvalidInput("`took` goes with the end of a run")
    return Said(word, code, _rid(given), _seconds(given, "ago") or timedelta(), took)


def _word(rest: str | None) -> tuple[Word, int | None]:
    word = None if rest is None else _WORDS.get(rest)
    if word is not None:
        return word, None
    if rest is not None and rest.isascii() and rest.isdigit() and len(rest) <= 3 and int(rest) <= 255:
        return (Word.FAIL if int(rest) else Word.SUCCESS), int(rest)
    raise InvalidInput("behind the job comes nothing, start, fail, log or an exit code from 0 to 255")


def _rid(given: Mapping[str, str]) -> str | None:
    text = given.get("rid")
    if text is None:
        return None
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise InvalidInput("`rid` is no UUID") from None


def _seconds(given: Mapping[str, str], name: str) -> timedelta | None:
    text = given.get(name)
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= MOST_SECONDS:
        raise InvalidInput(f"`{name}` is a number of seconds, at most a year of them")
    return timedelta(seconds=seconds)
