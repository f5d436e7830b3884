from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from scheduler.cli.times import (
    absolute,
    ago,
    both,
    column,
    local_zone,
    narrow_column,
    span,
    took,
    typed_past,
    zone_or_utc,
)

NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("instant", "zone", "text"),
    [
        ("2026-03-04T12:00:00Z", "UTC", "Wed 12:00 UTC"),
        ("2026-03-04T12:00:05Z", "UTC", "Wed 12:00:05 UTC"),
        ("2026-03-10T12:00:00Z", "UTC", "Tue 12:00 UTC"),
        ("2026-03-10T12:01:00Z", "UTC", "Tue 2026-03-10 12:01 UTC"),
        ("2026-02-26T12:00:00Z", "UTC", "Thu 12:00 UTC"),
        ("2026-02-26T11:59:00Z", "UTC", "Thu 2026-02-26 11:59 UTC"),
        ("2026-03-04T20:30:00Z", "Asia/Tokyo", "Thu 05:30 Asia/Tokyo"),
        ("2026-03-04T12:00:00Z", "Nowhere/Land", "Wed 12:00 UTC"),
        ("2026-03-04T12:00:00Z", None, "Wed 12:00 UTC"),
    ],
)
def test_absolute(instant: str, zone: str | None, text: str) -> None:
    assert absolute(datetime.fromisoformat(instant), zone, NOW) == text


def test_instants_below_each_other_have_one_format() -> None:
    near, far, odd = "2026-03-04T12:00:00Z", "2026-03-14T12:00:00Z", "2026-03-04T12:00:00.250000Z"
    assert column([near, None], "Asia/Tokyo", NOW) == ["Wed 21:00", "-"]
    assert column([near, far], "UTC", NOW) == ["Wed 2026-03-04 12:00", "Sat 2026-03-14 12:00"]
    assert column([near, odd], "UTC", NOW) == ["Wed 12:00:00", "Wed 12:00:00"]


def test_where_there_is_little_room_each_instant_says_what_it_needs() -> None:
    near, far, odd = "2026-03-04T12:00:00Z", "2026-03-14T12:00:30Z", "2026-03-04T12:00:00.250000Z"
    assert narrow_column([near, far, None], "Asia/Tokyo", NOW) == ["Wed 21:00", "2026-03-14 21:00", "-"]
    assert narrow_column([near, odd], "UTC", NOW) == ["Wed 12:00:00", "Wed 12:00:00"]


def test_a_span_of_one_day_names_it_once() -> None:
    assert span("2026-03-04T11:00:00Z", "2026-03-04T11:30:00Z", "UTC", NOW) == "Wed 11:00 to 11:30"
    assert span("2026-03-04T23:59:00Z", "2026-03-05T00:01:00Z", "UTC", NOW) == "Wed 23:59 to Thu 00:01"


def test_both_and_ago() -> None:
    assert both("2026-03-04T11:00:00Z", "Europe/Paris", NOW) == "Wed 12:00 Europe/Paris (1h ago)"
    assert both(None, "Europe/Paris", NOW) == "-"
    assert ago(None, NOW) == "-"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"),
        (0.0, "0.0s"),
        (0.02, "20ms"),
        (0.5, "0.5s"),
        (59.6, "1m"),
        (192.0, "3m12s"),
        (7500.0, "2h5m"),
        (90061.0, "1d1h1m"),
    ],
)
def test_took(seconds: float | None, text: str) -> None:
    assert took(seconds) == text


@pytest.mark.parametrize(
    ("text", "back"),
    [
        ("24h", timedelta(hours=24)),
        ("90s", timedelta(seconds=90)),
        ("-2h", timedelta(hours=2)),
        ("2h ago", timedelta(hours=2)),
    ],
)
def test_a_bare_duration_is_so_long_ago(text: str, back: timedelta) -> None:
    assert typed_past(text, NOW, "UTC") == NOW - back


def test_an_instant_is_an_instant() -> None:
    assert typed_past("2026-03-01", NOW, "Europe/Paris") == datetime(2026, 2, 28, 23, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("tz", "zone"),
    [
        ("Europe/Paris", "Europe/Paris"),
        (":Asia/Tokyo", "Asia/Tokyo"),
        ("CET-1CEST", "UTC"),
        ("Etc/UTC", "UTC"),
        ("nonsense", "UTC"),
    ],
)
def test_local_zone(tz: str, zone: str) -> None:
    assert local_zone({"TZ": tz}) == zone


def test_unknown_zones_are_utc() -> None:
    assert zone_or_utc("Nowhere/Land")[1] == "UTC"
