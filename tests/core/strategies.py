"""What hypothesis draws from: cron texts that make trouble, zones, and instants near changes of the clock."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from scheduler.core.errors import InvalidInput
from scheduler.core.offsets import instant_of, start_of_year, transitions
from scheduler.core.zone import zone_names, zone_of

# A busy machine makes the generation of data slow, which is no finding.
settings.register_profile(
    "core",
    derandomize=True,
    deadline=None,
    max_examples=150,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
CORE = settings.get_profile("core")

ZONES = sorted(zone_names())
MINUTES = ["0", "30", "*", "*/15", "*/20", "15,45", "0-59/10", "5/15", "59", "1", "*,30", "50-10/5", "45-45"]
HOURS = ["*", "*/2", "0", "1", "2", "3", "1,2", "0-3", "22-2", "23", "2-22/4", "0/3", "*,5", "12", "4-4"]
DAYS = ["*", "*", "*", "*", "1", "L", "*/2", "1-31/2", "28-3", "13,L", "?", "*,10", "31", "8-14"]
MONTHS = ["*", "*", "*", "*", "3,10-11", "NOV-FEB/3", "jan-jun", "*/2", "4-4", "9/2"]
WEEKDAYS = [
    "*",
    "*",
    "*",
    "*",
    "0",
    "7",
    "FRI-MON",
    "sun",
    "5#2",
    "0L",
    "*/2",
    "1-5/2",
    "5-7",
    "?",
    "sat,1#1",
]

five_fields = st.builds(
    lambda *fields: " ".join(fields), *map(st.sampled_from, (MINUTES, HOURS, DAYS, MONTHS, WEEKDAYS))
)
seconds = st.sampled_from(["0", "*", "*/7", "15,45", "58-2", "30"])
six_fields = st.builds(lambda second, rest: f"{second} {rest}", seconds, five_fields)
day_matches = st.sampled_from(["cron", "cron", "or", "and"])


@st.composite
def near_a_change(draw: st.DrawFn, first_year: int = 2017, last_year: int = 2031) -> tuple[str, datetime]:
    """(zone, a whole minute within 26 hours of a change of its offset; any minute if it has none then)."""
    zone = draw(st.sampled_from(ZONES))
    changes = transitions(zone_of(zone), start_of_year(first_year), start_of_year(last_year))
    if changes:
        at = draw(st.sampled_from([change.at for change in changes]))
    else:
        at = draw(st.integers(start_of_year(first_year), start_of_year(last_year)))
    hours = draw(st.sampled_from([3, 26]))
    return zone, instant_of(at // 60 * 60) + timedelta(minutes=draw(st.integers(-hours * 60, hours * 60)))


whole_seconds = st.integers(0, 4_102_444_800).map(lambda second: datetime.fromtimestamp(second, UTC))


def outcome(call: Callable[..., object], *arguments: object, **more: object) -> object:
    """What `call` returns, or the InvalidInput that it raises; any other exception fails the test, and so does
    a message that a terminal or a database may not take."""
    try:
        return call(*arguments, **more)
    except InvalidInput as error:
        refusal = error
    assert str(refusal).isprintable()
    assert len(str(refusal)) < 400
    return refusal
