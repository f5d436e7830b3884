"""What hypothesis draws for the planner and the deadline: jobs with pauses, blackouts and runs, around changes of the
clock, with edges that meet instants exactly."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from hypothesis import assume
from hypothesis import strategies as st

from scheduler.core.job import Blackout, CatchUp, Job, Overlap
from scheduler.core.model import Cause, Pause, Status
from scheduler.core.requests import Due, Unfinished

from .builders import TICK, fixed, job, owed, pause, recurring, unfinished
from .judge import instants_of
from .strategies import HOURS, MINUTES, near_a_change

MINUTE = timedelta(minutes=1)
LATENESS = [timedelta(), TICK, timedelta(seconds=1.8), MINUTE - TICK, MINUTE, MINUTE + TICK, 2 * MINUTE]
BEGINS = ["*/20 * * * *", "0 * * * *", "30 1-3 * * *", "0 2 * * *", "*/5 * * * *", "15,45 * * * *", "1 * * * *"]
LENGTHS = [TICK, MINUTE, 5 * MINUTE, 20 * MINUTE, 30 * MINUTE, 90 * MINUTE, 6 * 60 * MINUTE]

five = st.builds(
    lambda minute, hour, rest: f"{minute} {hour} {rest}",
    st.sampled_from(MINUTES),
    st.one_of(st.just("*"), st.sampled_from(HOURS)),
    st.sampled_from(["* * *", "* * *", "* * *", "* * *", "* * 0", "*/2 * MON-FRI"]),
)
six = st.sampled_from(["*/7 * * * * *", "0 * * * * *", "15,45 */2 * * * *", "* * 2 * * *"])
run_states = st.tuples(
    st.sampled_from([(Status.PENDING, 0), (Status.PENDING, 0), (Status.PENDING, 2), (Status.RUNNING, 1)]),
    st.sampled_from([Cause.SCHEDULE, Cause.SCHEDULE, Cause.CATCH_UP, Cause.EVENT, Cause.MANUAL, Cause.BACKFILL]),
    st.sampled_from([None, "holder"]),
)


@st.composite
def runs(draw: st.DrawFn) -> list[Unfinished]:
    states = [draw(run_states) for _ in range(draw(st.sampled_from([0, 1, 1, 2, 4])))]
    return [
        unfinished(str(number), status, cause, tried, holder)
        for number, ((status, tried), cause, holder) in enumerate(states)
    ]


@st.composite
def places(draw: st.DrawFn) -> tuple[Job, datetime, datetime, list[datetime]]:
    """A job, a stretch of minutes or hours, and the instants of the job in it, at least one."""
    zone, start = draw(near_a_change())
    texts, longest = draw(
        st.one_of(
            st.tuples(st.lists(five, min_size=1, max_size=3), st.just(500 * MINUTE)),
            st.tuples(st.lists(six, min_size=1, max_size=2), st.just(20 * MINUTE)),
        )
    )
    end = start + draw(st.sampled_from([0.02, 0.1, 0.4, 1])) * longest
    tested = job(texts, zone)
    instants = instants_of(tested, start, end)
    assume(instants)
    return tested, start, end, instants


def stretches(instants: list[datetime]) -> st.SearchStrategy[list[datetime]]:
    """(begin, end), at or near instants."""
    marks = st.builds(
        lambda mark, shift: mark + shift,
        st.sampled_from(instants),
        st.sampled_from([timedelta(), timedelta(), -TICK, TICK, 7 * MINUTE, -30 * MINUTE]),
    )
    return st.one_of(
        st.tuples(marks, marks).map(sorted),
        st.builds(lambda mark, length: [mark, mark + length], marks, st.sampled_from(LENGTHS)),
    )


def pauses_near(instants: list[datetime]) -> st.SearchStrategy[list[Pause]]:
    one = st.builds(
        lambda ends, endless: pause(ends[0], None if endless else ends[1]), stretches(instants), st.booleans()
    )
    return st.lists(one, max_size=2)


def blackouts_near(instants: list[datetime], zone: str) -> st.SearchStrategy[list[Blackout]]:
    one = st.one_of(
        stretches(instants).map(lambda ends: fixed(*ends)),
        st.builds(recurring, st.sampled_from(BEGINS), st.sampled_from(LENGTHS), st.just(zone)),
    )
    return st.lists(one, max_size=2)


@st.composite
def situations(draw: st.DrawFn) -> tuple[Job, Due, datetime]:
    """A job, what the planner finds, and now."""
    tested, start, _, instants = draw(places())
    assert tested.schedule is not None
    now = draw(st.sampled_from(instants[-3:])) + draw(st.sampled_from(LATENESS))
    tested = replace(
        tested,
        blackouts=tuple(draw(blackouts_near(instants, tested.schedule.zone))),
        overlap=draw(st.sampled_from(Overlap)),
        catch_up=draw(st.sampled_from(CatchUp)),
        catch_up_window=draw(st.sampled_from([timedelta(), MINUTE, 45 * MINUTE, timedelta(days=7)])),
        catch_up_max=draw(st.sampled_from([1, 2, 7, 100])),
    )
    since = draw(st.sampled_from([start, *instants[: max(len(instants) - 2, 1)][:3]]))
    return tested, owed(since, draw(runs()), draw(pauses_near(instants))), now
