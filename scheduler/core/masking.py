"""Secrets do not leave this process in what jobs print or report: each becomes `***`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

from scheduler.core.model import Json

MASK = "***"
SHORTEST = 4
"""Characters; masking shorter values would tear ordinary text apart."""
_SHORTEST_LINE = 8

Span = tuple[int, int]


class Masks:
    """The values to hide, in the forms in which programs usually print them: as they are, in JSON, in a URL, and the
    lines of those that have several."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        forms: set[bytes] = set()
        for value in _with_lines(values):
            if len(value.strip()) < SHORTEST:
                continue
            escaped = json.dumps(value, ensure_ascii=False)[1:-1]
            for form in (value, value.strip(), escaped, json.dumps(value)[1:-1]):
                forms.add(_encode(form))
            forms.add(quote(_encode(value), safe="").encode())
            forms.add(quote_plus(_encode(value)).encode())
        self._forms = tuple(sorted(forms))
        self.longest = max(map(len, self._forms), default=0)

    def spans(self, data: bytes) -> list[Span]:
        """Where secrets stand, ascending, overlapping ones merged."""
        found: list[Span] = []
        for form in self._forms:
            at = data.find(form)
            while at >= 0:
                found.append((at, at + len(form)))
                at = data.find(form, at + 1)
        found.sort()
        merged: list[Span] = []
        for start, end in found:
            if merged and start < merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((start, end))
        return merged

    def hide(self, data: bytes) -> bytes:
        return replaced(data, self.spans(data))

    def begun(self, data: bytes) -> int:
        """How many bytes at the end of `data` may be the beginning of a secret of which the rest is to come."""
        longest = 0
        for form in self._forms:
            tail = data[-(len(form) - 1) :]
            at = tail.find(form[:1])
            while at >= 0:
                if form.startswith(tail[at:]):
                    longest = max(longest, len(tail) - at)
                    break
                at = tail.find(form[:1], at + 1)
        return longest

    def text(self, text: str) -> str:
        if not self._forms:
            return text
        return self.hide(_encode(text)).decode("utf-8", "replace")

    def value(self, value: Json) -> Json:
        """The same for all texts inside a JSON value, keys included."""
        if not self._forms:
            return value
        match value:
            case str():
                return self.text(value)
            case list():
                return [self.value(item) for item in value]
            case dict():
                return {self.text(key): self.value(item) for key, item in value.items()}
        return value


def replaced(data: bytes, spans: Iterable[Span]) -> bytes:
    """`data` with the mask in place of each of the ascending `spans`."""
    parts: list[bytes] = []
    end = 0
    for start, stop in spans:
        parts += (data[end:start], MASK.encode())
        end = stop
    parts.append(data[end:])
    return b"".join(parts)


def _with_lines(values: Iterable[str]) -> Iterator[str]:
    for value in values:
        yield value
        lines = value.strip().splitlines()
        if len(lines) > 1:
            yield from (line for line in lines if len(line.strip()) >= _SHORTEST_LINE)


def _encode(text: str) -> bytes:
    # Bytes of the environment that are no UTF-8 travel as surrogates and are printed as those bytes.
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
