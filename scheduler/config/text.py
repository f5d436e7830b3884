"""Bytes of a file → text that YAML can read: encodings of Windows editors, size, characters nobody can see."""

from __future__ import annotations

import codecs
import re

from scheduler.config.problem import ConfigError, Problem

MAX_BYTES = 4 << 20

# What YAML calls printable, minus the byte order mark inside a text.
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


def decode(raw: bytes, name: str) -> str:
    """The text of a file in UTF-8, or in UTF-16 with a byte order mark. ConfigError if it is neither, or too large."""
    if len(raw) > MAX_BYTES:
        raise ConfigError([Problem(name, 0, 0, (), *_too_large())])
    encoding, start = "utf-8", 0
    for mark, marked in _MARKS:
        if raw.startswith(mark):
            encoding, start = marked, len(mark)
    try:
        return raw[start:].decode(encoding)
    except UnicodeDecodeError as error:
        line = 1 + raw[start : start + error.start].count("\n".encode(encoding))
        raise ConfigError(
            [Problem(name, line, 1, (), f"not {encoding.upper()} text ({error.reason})", "save the file as UTF-8")]
        ) from None


def check_text(text: str, name: str) -> str:
    """The text without a byte order mark. ConfigError if it is too large or holds characters that YAML refuses."""
    if len(text) > MAX_BYTES:
        raise ConfigError([Problem(name, 0, 0, (), *_too_large())])
    text = text.removeprefix("\ufeff")
    found = _UNPRINTABLE.search(text)
    if found is not None:
        line, column = place_of(text, found.start())
        raise ConfigError(
            [
                Problem(
                    name,
                    line,
                    column,
                    (),
                    f"character U+{ord(found[0]):04X} is not allowed in YAML",
                    'remove it, or write it as "\\x00" in double quotes where it is meant',
                )
            ]
        )
    return text


def lines_of(text: str) -> list[str]:
    """The lines as YAML counts them, without their breaks."""
    return _BREAK.split(text)


def place_of(text: str, offset: int) -> tuple[int, int]:
    """Line and column, from 1, of a character."""
    before = lines_of(text[:offset])
    return len(before), len(before[-1]) + 1


def _too_large() -> tuple[str, str]:
    return f"larger than {MAX_BYTES >> 20} MiB", "spread the jobs over several files with `include`"
