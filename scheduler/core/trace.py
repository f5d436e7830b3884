"""W3C trace context (https://www.w3.org/TR/trace-context/): one trace per run, one span per attempt."""

from __future__ import annotations

import hashlib
import re

_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?")
_LENGTH = 55


def given(header: str | None) -> str | None:
    """What a request's `traceparent` says, as it is kept with the run: `00-<trace>-<span>-<flags>`. None if there is
    none, or if it is malformed: then the run begins a trace of its own, as the specification wants it."""
    text = (header or "").strip()
    if not _TRACEPARENT.fullmatch(text) or (text.startswith("00") and len(text) != _LENGTH):
        return None
    return "00" + text[2:_LENGTH]


def trace_of(run: str, trace: str | None) -> str:
    """The trace that a run belongs to, 32 digits: that of whoever asked for it, else its own id. `trace` as `given`."""
    return run.replace("-", "") if trace is None else trace[3:35]


def span_of(run: str, attempt: int) -> str:
    """The span of an attempt, 16 digits; anybody can work it out."""
    return hashlib.sha256(f"{run}/{attempt}".encode()).hexdigest()[:16]


def parent_of(trace: str | None) -> str | None:
    """The span that asked for the run."""
    return None if trace is None else trace[36:52]


def traceparent(run: str, attempt: int, trace: str | None = None) -> str:
    """What an attempt hands on to whatever it calls."""
    flags = "01" if trace is None else trace[53:55]
    return f"00-{trace_of(run, trace)}-{span_of(run, attempt)}-{flags}"
