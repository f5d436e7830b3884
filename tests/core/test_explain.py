"""Schedules in words: what is said, what is warned of, and what a note tells of one occurrence."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from scheduler.core.explain import explain, note, warnings
from scheduler.core.schedule import Schedule

from .strategies import CORE, day_matches, five_fields, near_a_change, outcome, six_fields

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("0 8 * * 1", "At 08:00 on Monday."),
        ("* * * * *", "Every minute."),
        ("*/15 * * * *", "Every 15 minutes."),
        ("*/90 * * * *", "At minute 0 of every hour."),
        ("0 9-17 * * mon-fri", "At minute 0 of hours 09-17 on Monday to Friday."),
        ("0 0 L * *", "At 00:00 on the last day of the month."),
        ("0 0 29 2 *", "At 00:00 on day 29 of the month in February."),
        ("0 0 * * 5#2", "At 00:00 on the second Friday of the month."),
        ("0 0 * * 5L", "At 00:00 on the last Friday of the month."),
        ("0 0 13 * 5", "At 00:00 on day 13 of the month, and on Friday (either is enough)."),
        ("0 0 */2 * 1", "(both must match)."),
        ("30 0 8 * * *", "At 08:00:30 every day."),
        ("*/10 * * * * *", "Every 10 seconds."),
        ("* 0 8 * * *", "Every second of minute 0 of hour 08 every day."),
        ("@yearly", "At 00:00 on day 1 of the month in January."),
    ],
)
def test_says_when(expression, words):
    assert words in explain(Schedule((expression,), "UTC"))


def test_says_what_a_change_of_the_clock_does():
    fixed, wildcard = (explain(Schedule((text,), "Europe/Berlin")) for text in ("30 2 * * *", "*/30 * * * *"))

    assert "skipped runs once" in fixed
    assert "every real occurrence" in wildcard
    assert "clock changes" not in explain(Schedule(("30 2 * * *",), "Asia/Shanghai"))
    both = explain(Schedule(("30 2 * * *", "*/30 * * * *"), "Europe/Berlin"))
    assert "skipped runs once" in both
    assert "every real occurrence" in both
    assert "\nAlso every 30 minutes." in both


@pytest.mark.parametrize(
    ("expression", "zone", "words"),
    [
        ("0 0 13 * 5", "UTC", "either is enough"),
        ("0 0 */2 * 1", "UTC", "because `*/2` begins with `*`"),
        ("*/90 * * * *", "UTC", "it matches at minute 0 only"),
        ("*/7 * * * *", "UTC", "after 56 comes 0 again, 4 later and not 7"),
        ("0 */5 * * *", "UTC", "after 20 comes 0 again, 4 later and not 5"),
        ("0 0 */3 * *", "UTC", "starts again on the 1st"),
        ("0 0 * * */2", "UTC", "after 6 comes 0 again, 1 later and not 2"),
        ("0 0 29 2 *", "UTC", "leap years"),
        ("0 0 31 * *", "UTC", "passed over (February, April, June, September and November)"),
        ("0 0 30 * *", "UTC", "passed over (February)"),
        ("00 14 * * * *", "UTC", 'write "00 14 * * *"'),
        ("* 2 * * *", "UTC", "60 a day"),
        ("* 0 8 * * *", "UTC", "once a minute"),
        ("0 8 * * *", "GMT", "Europe/London"),
        ("0 8 * * *", "Etc/GMT-8", "UTC+8"),
        ("30 2 * * *", "America/New_York", "2026-03-08 02:00 the clock moves to 03:00: 02:30 runs at 03:00"),
        ("30 1 * * *", "America/New_York", "2026-11-01 02:00 the clock moves to 01:00: 01:30 comes twice"),
        ("*/20 2 * * *", "America/New_York", "02:00, 02:20 and 02:40 are left out"),
        ("*/20 1 * * *", "America/New_York", "01:00, 01:20 and 01:40 run twice"),
    ],
)
def test_warns(expression, zone, words):
    found = warnings(Schedule((expression,), zone), NOW)

    assert any(words in sentence for sentence in found), found


@pytest.mark.parametrize(
    ("expression", "zone"),
    [
        ("0 8 * * 1", "Asia/Shanghai"),
        ("*/15 * * * *", "Europe/Berlin"),
        ("0 0 * * */7", "UTC"),
        ("0 0 L * *", "UTC"),
        ("0 0 31 1,3 *", "UTC"),
        ("0 12 * * *", "America/New_York"),
        ("*/10 * * * * *", "America/New_York"),
        ("0 0 1-31 * 0-6", "UTC"),
    ],
)
def test_does_not_warn_of_what_surprises_nobody(expression, zone):
    assert warnings(Schedule((expression,), zone), NOW) == []


def test_an_author_who_chose_day_match_is_not_warned_about_it():
    assert warnings(Schedule(("0 0 13 * 5",), "UTC", "and"), NOW) == []


def test_warns_of_a_schedule_that_never_runs_and_of_doubles():
    never = Schedule(("*/5 2 8-14 3 0",), "America/New_York", "and")
    twice = Schedule(("0 8 * * mon", "0  8 * * MON"), "UTC")

    assert any("no occurrence is left" in sentence for sentence in warnings(never, NOW))
    assert warnings(twice, NOW) == ["`0 8 * * MON` is written more than once"]


@pytest.mark.parametrize(
    ("expression", "zone", "instant", "words"),
    [
        ("30 2 * * *", "America/New_York", "2026-03-08T07:00Z", "clocks go forward: 02:30 does not exist"),
        ("15,45 2 * * *", "America/New_York", "2026-03-08T07:00Z", "02:15 and 02:45 do not exist"),
        ("30 1 * * *", "America/New_York", "2026-11-01T05:30Z", "01:30 happens twice; the first, the only"),
        ("*/30 * * * *", "America/New_York", "2026-11-01T05:30Z", "01:30 happens twice; the first"),
        ("*/30 * * * *", "America/New_York", "2026-11-01T06:30Z", "01:30 happens twice; the second"),
        ("0 0 * * *", "America/Sao_Paulo", "2018-11-04T03:00Z", "00:00 does not exist"),
        ("45 1 * * *", "Australia/Lord_Howe", "2026-04-04T14:45Z", "01:45 happens twice; the first"),
        ("30 30 1 * * *", "America/New_York", "2026-11-01T05:30:30Z", "01:30:30 happens twice; the first"),
    ],
)
def test_notes(expression, zone, instant, words):
    tested, moment = Schedule((expression,), zone), datetime.fromisoformat(instant)

    assert list(tested.between(moment, moment)) == [moment]
    assert words in (note(tested, moment) or "")


@pytest.mark.parametrize(
    ("expression", "zone", "instant"),
    [
        ("30 2 * * *", "America/New_York", "2026-03-09T06:30Z"),
        ("*/30 * * * *", "America/New_York", "2026-03-08T07:00Z"),
        ("*/30 * * * *", "America/New_York", "2026-11-01T07:00Z"),
        ("*/30 * * * *", "America/New_York", "2026-11-01T04:30Z"),
        ("0 12 * * *", "Pacific/Apia", "2011-12-30T22:00Z"),
        ("30 2 * * *", "UTC", "2026-03-08T02:30Z"),
    ],
)
def test_ordinary_occurrences_have_no_note(expression, zone, instant):
    assert note(Schedule((expression,), zone), datetime.fromisoformat(instant)) is None


@CORE
@given(st.lists(st.one_of(five_fields, six_fields), min_size=1, max_size=3), near_a_change(), day_matches)
def test_every_schedule_can_be_explained(texts, place, day_match):
    zone, start = place
    tested = outcome(Schedule, tuple(texts), zone, day_match)
    assume(isinstance(tested, Schedule))

    assert explain(tested).endswith(".")
    assert all(warnings(tested, start))
    for moment in tested.newest(start, start.replace(year=start.year + 1, day=1), 3):
        assert note(tested, moment) != ""
