"""The planner's judgement against the rules applied instant by instant."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from scheduler.core.model import CatchUp, Cause, Job, Overlap, Pause, Skip, Status
from scheduler.core.policy import plan
from scheduler.core.ports import Due, Unfinished

from .builders import TICK, fixed, job, owed, pause, recurring, unfinished
from .judge import instants_of, judge
from .strategies import CORE, HOURS, MINUTES, near_a_change

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
def situations(draw: st.DrawFn) -> tuple[Job, Due, datetime]:
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
    marks = st.builds(
        lambda mark, shift: mark + shift,
        st.sampled_from(instants),
        st.sampled_from([timedelta(), timedelta(), -TICK, TICK, 7 * MINUTE, -30 * MINUTE]),
    )
    now = draw(st.sampled_from(instants[-3:])) + draw(st.sampled_from(LATENESS))
    ends = st.one_of(
        st.tuples(marks, marks).map(sorted),
        st.builds(lambda mark, length: [mark, mark + length], marks, st.sampled_from(LENGTHS)),
    )
    pauses = draw(st.lists(st.builds(_pause, ends, st.booleans()), max_size=2))
    blackouts = draw(
        st.lists(
            st.one_of(
                ends.map(lambda pair: fixed(*pair)),
                st.builds(recurring, st.sampled_from(BEGINS), st.sampled_from(LENGTHS), st.just(zone)),
            ),
            max_size=2,
        )
    )
    tested = replace(
        tested,
        blackouts=tuple(blackouts),
        overlap=draw(st.sampled_from(Overlap)),
        catch_up=draw(st.sampled_from(CatchUp)),
        catch_up_window=draw(st.sampled_from([timedelta(), MINUTE, 45 * MINUTE, timedelta(days=7)])),
        catch_up_max=draw(st.sampled_from([1, 2, 7, 100])),
    )
    since = draw(st.sampled_from([start, *instants[: max(len(instants) - 2, 1)][:3]]))
    return tested, owed(since, draw(runs()), pauses), now


def _pause(ends: list[datetime], open_end: bool) -> Pause:
    return pause(ends[0], None if open_end else ends[1])


@settings(CORE, max_examples=400)
@given(situations())
def test_every_instant_gets_the_entry_that_the_rules_say(situation: tuple[Job, Due, datetime]) -> None:
    tested, due, now = situation
    right = judge(tested, due, now)
    found = plan(tested, due, now)

    given_words: dict[datetime, str] = {}
    reached = datetime.min.replace(tzinfo=now.tzinfo)
    for entry in found.entries:
        if isinstance(entry, Skip):
            inside = [instant for instant in right.instants if entry.first <= instant <= entry.last]
            assert (inside[0], inside[-1], len(inside)) == (entry.first, entry.last, entry.count)
            word = str(entry.reason)
            assert (entry.blocked_by in right.blockers) if word == "overlap" else entry.blocked_by is None
        else:
            inside, word = [entry.instant], str(entry.cause)
        assert inside[0] > reached, "entries ascend and do not overlap"
        reached = inside[-1]
        given_words.update(dict.fromkeys(inside, word))

    assert set(given_words) == set(right.instants), "every instant has one entry"
    wrong = {
        instant: (word, right.instants[instant])
        for instant, word in given_words.items()
        if word not in right.instants[instant]
    }
    assert not wrong
    assert set(found.cancel) == right.cancel
    assert set(found.give_up) == right.give_up


@CORE
@given(situations())
def test_the_next_instant_is_the_first_without_an_entry(situation: tuple[Job, Due, datetime]) -> None:
    tested, due, now = situation
    found = plan(tested, due, now)
    since = due.state.next_due_at
    assert since is not None
    assert tested.schedule is not None

    if since > now:
        assert found.next_due_at == since
        return
    assert found.next_due_at == tested.schedule.after(now)
    assert found.next_due_at is not None
    assert found.next_due_at > now
    coming = instants_of(tested, now + TICK, min(found.next_due_at, now + timedelta(hours=3)))
    assert coming == ([found.next_due_at] if found.next_due_at <= now + timedelta(hours=3) else [])


@CORE
@given(situations(), st.data())
def test_it_does_not_matter_how_often_the_planner_looks_at_excused_time(
    situation: tuple[Job, Due, datetime], data: st.DataObject
) -> None:
    """Instants in pauses and blackouts get the same word whether judged at once or bit by bit."""
    tested, due, now = situation
    since = due.state.next_due_at
    assert since is not None
    assume(since <= now)
    at_once = _excused(tested, due, now)
    halfway = since + (now - since) * data.draw(st.integers(0, 16)) / 16

    first = plan(tested, due, halfway)
    bit_by_bit = _excused(tested, due, halfway)
    if first.next_due_at is not None:
        bit_by_bit |= _excused(tested, owed(first.next_due_at, due.unfinished, due.pauses), now)

    assert bit_by_bit == at_once


def _excused(tested: Job, due: Due, now: datetime) -> set[tuple[datetime, str]]:
    assert tested.schedule is not None
    return {
        (instant, str(entry.reason))
        for entry in plan(tested, due, now).entries
        if isinstance(entry, Skip) and str(entry.reason) in ("paused", "blackout")
        for instant in tested.schedule.between(entry.first, entry.last)
    }


@CORE
@given(situations(), st.timedeltas(TICK, timedelta(hours=30)))
def test_after_a_clock_that_went_back_no_instant_comes_again(
    situation: tuple[Job, Due, datetime], back: timedelta
) -> None:
    tested, due, now = situation
    first = plan(tested, due, now)
    again = plan(tested, owed(first.next_due_at, due.unfinished, due.pauses), now - back)

    assert again.entries == ()
    assert again.next_due_at == first.next_due_at
    assert (again.cancel, again.give_up) == ((), ())
