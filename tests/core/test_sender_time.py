"""Instants as senders write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.core.sender_time import sender_instant

AT = datetime(2026, 3, 2, 8, tzinfo=UTC)
MS = timedelta(milliseconds=1)


@pytest.mark.parametrize(
    ("value", "instant"),
    [
        ("2026-03-01T00:00:00.123456789Z", datetime(2026, 3, 1, 0, 0, 0, 123456, UTC)),
        ("2026-03-01 00:00:00", datetime(2026, 3, 1, tzinfo=UTC)),
        ("2026-06-30T23:59:60Z", datetime(2026, 7, 1, tzinfo=UTC)),
        ("2026-03-01T24:00:00Z", datetime(2026, 3, 2, tzinfo=UTC)),
        ("2026-03-01", datetime(2026, 3, 1, tzinfo=UTC)),
        ("2026-03-02T08:00Z", AT),
        ("2026-03-02 08:00:00 UTC", AT),
        ("2026-03-02t08:00:00z", AT),
        ("2026-03-02T16:00:00+08:00", AT),
        ("2026-03-02T16:00:00+0800", AT),
        ("2026-03-02T16:00:00+08", AT),
        ("2026-03-02T00:30:00-07:30", AT),
        ("2026-03-02T08:00:00,5Z", AT + 500 * MS),
        ("Mon, 02 Mar 2026 08:00:00 GMT", AT),
        ("Mon, 2 Mar 2026 08:00:00 +0000", AT),
        ("Mon, 02 Mar 2026 08:00:00 -0000", AT),
        (1772438400, AT),
        (1772438400.5, AT + 500 * MS),
        (1772438400123, AT + 123 * MS),
        (1772438400123456, AT + timedelta(microseconds=123456)),
        (1772438400123456789, AT + timedelta(microseconds=123456)),
        ("1772438400", AT),
        ("1772438400.000100", AT + timedelta(microseconds=100)),
        ("1772438400123", AT + 123 * MS),
        (0, datetime(1970, 1, 1, tzinfo=UTC)),
    ],
)
def test_instant(value: Any, instant: datetime) -> None:
    assert sender_instant(value) == instant


@pytest.mark.parametrize(
    "value",
    [
        None, True, "", "soon", "-1", -1, "1e9", "NaN", float("nan"), float("inf"), [], {}, 10**20, "1" * 30,
        "2026-02-30T00:00:00Z", "2026-13-01", "2026-03-01T25:00:00Z", "2026-03-01T24:00:01Z", "2026-03-01T00:60:00Z",
        "2026-03-01T00:00:61Z", "2026-03-01T00:00:00+24:00", "0001-01-01", "9999-12-31T23:59:60Z", "1899-12-31",
        "2026-03-01T00:00:00 Europe/Berlin", "٢٠٢٦-٠٣-٠١", "Mon, 99 Mar 2026 08:00:00 GMT", "2026-03-01" + " " * 100,
    ],
    ids=lambda one: ascii(one)[:24],
)  # fmt: skip
def test_what_names_no_instant(value: Any) -> None:
    assert sender_instant(value) is None


instants = st.datetimes(datetime(1970, 1, 1), datetime(5000, 1, 1), timezones=st.just(UTC))


@given(instants, st.integers(-23 * 60, 23 * 60))
def test_every_instant_is_read_as_it_was_written(instant: datetime, minutes: int) -> None:
    there = instant.astimezone(timezone(timedelta(minutes=minutes)))
    assert sender_instant(there.isoformat()) == instant
    seconds = int((instant - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1))
    assert sender_instant(seconds) == instant.replace(microsecond=0)


@given(
    st.text(max_size=40)
    | st.integers()
    | st.floats()
    | st.from_regex(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(Z|[+-]\d{4})")
)
def test_anything_is_an_instant_or_none(value: Any) -> None:
    found = sender_instant(value)
    assert found is None or found.tzinfo is UTC
