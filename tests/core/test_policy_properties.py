"""The planner's judgement against the rules applied instant by instant."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from scheduler.core.job import CatchUp, Job
from scheduler.core.model import Cause, Skip, Status
from scheduler.core.policy import plan
from scheduler.core.requests import Due, Unfinished

from .builders import TICK, owed, unfinished
from .judge import instants_of, judge
from .situations import situations
from .strategies import CORE


@settings(CORE, max_examples=200)
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
            named = {"overlap": right.blockers, "missed": right.makers_up}.get(word)
            assert (entry.blocked_by in named) if named else entry.blocked_by is None
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


@settings(CORE, max_examples=60)
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


@settings(CORE, max_examples=60)
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


@settings(CORE, max_examples=60)
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


@settings(CORE, max_examples=60)
@given(situations(), st.integers(3, 9), st.data())
def test_however_often_it_is_late_a_job_has_a_bounded_line(
    situation: tuple[Job, Due, datetime], rounds: int, data: st.DataObject
) -> None:
    """Nothing begins meanwhile: every evaluation finds what the ones before it let run."""
    tested, due, now = situation
    tested = replace(tested, catch_up_window=timedelta(days=7), blackouts=())
    waiting = list(due.unfinished)
    most = {CatchUp.NONE: 0, CatchUp.LATEST: 1, CatchUp.ALL: tested.catch_up_max}[tested.catch_up]
    most = max(most, _not_begun(waiting))
    since = due.state.next_due_at
    covered: list[datetime] = []
    for number in range(rounds):
        found = plan(tested, owed(since, waiting), now)
        caught_up = [one.instant for one in found.entries if not isinstance(one, Skip) and one.cause == "catch_up"]
        waiting = [one for one in waiting if one.run not in found.give_up]
        waiting += [unfinished(f"{number}.{n}", Status.PENDING, Cause.CATCH_UP) for n in range(len(caught_up))]
        covered += caught_up
        assert _not_begun(waiting) <= most
        since = found.next_due_at
        if since is None:
            break
        now = since + data.draw(st.sampled_from([timedelta(minutes=1), timedelta(minutes=7), timedelta(hours=5)]))
    assert len(covered) == len(set(covered))


def _not_begun(runs: list[Unfinished]) -> int:
    states = [(one.status, one.attempt, one.cause in ("schedule", "catch_up")) for one in runs]
    return states.count((Status.PENDING, 0, True))
