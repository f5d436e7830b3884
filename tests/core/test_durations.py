"""Durations in both directions."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.core.durations import format_duration, parse_duration
from scheduler.core.errors import InvalidInput

from .strategies import CORE, outcome


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("15m", 900),
        ("1h30m", 5_400),
        ("2d", 172_800),
        ("1w", 604_800),
        ("0s", 0),
        ("1.5h", 5_400),
        ("250ms", 0.25),
        (" 5m ", 300),
        ("1d2h3m4s", 93_784),
    ],
)
def test_reads(text, seconds):
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text", ["", "90", "1.5", "-5m", "5 m", "m", "1h1h", "1m1h", "5M", "5min", "٥m", "1e3s", "1h30", "9" * 300 + "d"]
)
def test_refuses(text):
    with pytest.raises(InvalidInput) as refusal:
        parse_duration(text)

    assert refusal.value.hint


def test_a_bare_number_gets_the_hint_to_add_a_unit():
    with pytest.raises(InvalidInput, match="no unit") as refusal:
        parse_duration("90")

    assert refusal.value.hint == "write 90s or 90m"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (5_400, "1h30m"), (86_400, "1d"), (90, "1m30s"), (0.25, "250ms"), (-90, "-1m30s")],
)
def test_writes(seconds, text):
    assert format_duration(timedelta(seconds=seconds)) == text


@CORE
@given(st.integers(0, 36_500 * 86_400_000))
def test_what_is_written_is_read_back(milliseconds):
    duration = timedelta(milliseconds=milliseconds)

    assert parse_duration(format_duration(duration)) == duration


@CORE
@given(st.text(max_size=50))
def test_any_text_is_read_or_refused(text):
    read = outcome(parse_duration, text)

    assert read.hint if isinstance(read, InvalidInput) else read >= timedelta()
