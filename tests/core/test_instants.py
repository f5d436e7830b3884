"""Instants as people type them, and distances as they read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.core.errors import InvalidInput
from scheduler.core.instants import parse_instant, relative

from .strategies import CORE, outcome

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-03-10T01:30", "2026-03-10T05:30:00Z"),
        ("2026-03-10 01:30", "2026-03-10T05:30:00Z"),
        ("2026-03-10 01:30:15 Europe/Berlin", "2026-03-10T00:30:15Z"),
        ("2026-03-10T01:30:15.25+02:00", "2026-03-09T23:30:15.250000Z"),
        ("2026-03-10t01:30z", "2026-03-10T01:30:00Z"),
        ("2026-03-10 01:30 Z", "2026-03-10T01:30:00Z"),
        ("2026-03-10T01:30-0500", "2026-03-10T06:30:00Z"),
        ("2026-03-10", "2026-03-10T04:00:00Z"),
        ("now", "2026-03-10T12:00:00Z"),
        ("-2h", "2026-03-10T10:00:00Z"),
        ("+1d", "2026-03-11T12:00:00Z"),
        ("in 30m", "2026-03-10T12:30:00Z"),
        ("1h30m ago", "2026-03-10T10:30:00Z"),
        ("yesterday", "2026-03-09T04:00:00Z"),
        ("today 14:00", "2026-03-10T18:00:00Z"),
        ("tomorrow 02:30 UTC", "2026-03-11T02:30:00Z"),
        # a fold: the first pass, though pendulum takes the second
        ("2026-11-01T01:30", "2026-11-01T05:30:00Z"),
        ("2026-11-01T01:30-05:00", "2026-11-01T06:30:00Z"),
        # gaps: the first instant after
        ("2026-03-08T02:30", "2026-03-08T07:00:00Z"),
        ("2011-12-30 12:00 Pacific/Apia", "2011-12-30T10:00:00Z"),
        ("2018-11-04 America/Sao_Paulo", "2018-11-04T03:00:00Z"),
    ],
)
def test_reads(text, expected):
    assert parse_instant(text, now=NOW, zone="America/New_York") == datetime.fromisoformat(expected)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "junk",
        "-5",
        "12:00",
        "today 7",
        "2026-02-30",
        "2026-11-01T25:00",
        "2026-11-01T24:00",
        "2026-11-01 01:30 CST",
        "٢٠٢٦-11-01",
        "0001-01-01",
        "9999-12-31T23:59-05:00",
        "P1D",
        "2026",
        "2026-W05",
        "20261101",
    ],
)
def test_refuses_with_examples(text):
    with pytest.raises(InvalidInput) as refusal:
        parse_instant(text, now=NOW)

    assert refusal.value.hint


@pytest.mark.parametrize("text", ["next week", "in two hours", "half past Mars"])
def test_no_zone_is_looked_for_behind_what_is_no_instant(text):
    with pytest.raises(InvalidInput, match="is not an instant"):
        parse_instant(text, now=NOW)


@CORE
@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text):
    read = outcome(parse_instant, text, now=NOW)

    assert read.hint if isinstance(read, InvalidInput) else read.tzinfo is UTC


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "now"),
        (0.4, "now"),
        (59, "in 59s"),
        (240, "in 4m"),
        (-3 * 86_400, "3d ago"),
        (5_400, "in 1h30m"),
        (40_000, "in 11h"),
        (100_000, "in 1d3h"),
        (-7_200, "2h ago"),
    ],
)
def test_distances_in_words(seconds, words):
    assert relative(NOW + timedelta(seconds=seconds), now=NOW) == words
