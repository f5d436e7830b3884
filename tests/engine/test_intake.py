"""Runs that many ask for at once: one commit, one answer each."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from scheduler.core.commands import Accepted, IfBusy, RunRequest
from scheduler.core.errors import NotFound, Refused, SchedulerError, Unavailable
from scheduler.core.model import Cause, Status, WaitsFor
from scheduler.engine.accept import key_of
from scheduler.engine.intake import Intake
from scheduler.store.store import SqlStore
from tests.engine.rig import Rig, jobs
from tests.until import until

TEXT = jobs(
    {
        "free": {"overlap": "allow"},
        "one": {"overlap": "queue"},
        "slow": {"overlap": "allow", "queue": "narrow"},
        "rated": {"overlap": "allow", "queue": "rated"},
    },
    queues={"narrow": {"concurrency": 2}, "rated": {"rate": "60/m", "burst": 2}},
)


@pytest.fixture
def rig(store: SqlStore) -> Rig:
    return Rig(store, TEXT)


def asked(job: str = "free", payload: Any = 1, **how: Any) -> RunRequest:
    how.setdefault("cause", Cause.API)
    return RunRequest(job, "me", payload=payload, has_payload=payload is not None, **how)


def accepted(rig: Rig, *requests: RunRequest) -> list[Accepted]:
    answers = rig.desk.ask(requests)
    assert all(isinstance(one, Accepted) for one in answers), answers
    return [one for one in answers if isinstance(one, Accepted)]


def test_a_group_is_one_transaction_and_keeps_its_order(rig: Rig) -> None:
    before = rig.store.writes
    answers = accepted(rig, *(asked(payload=number) for number in range(50)))
    assert rig.store.writes == before + 1
    assert [run.id for run in rig.runs("free")] == [one.run for one in answers]
    assert [rig.run(one.run).payload for one in answers] == list(range(50))
    assert len(rig.named("run.planned")) == 50


def test_a_key_names_one_run_also_within_a_group(rig: Rig) -> None:
    first = asked(key="a")
    answers = accepted(rig, first, asked(key="b"), first, first)
    assert [one.new for one in answers] == [True, True, False, False]
    assert answers[0].run == answers[2].run == answers[3].run != answers[1].run
    (again,) = accepted(rig, first)
    assert (again.run, again.new) == (answers[0].run, False)
    assert len(rig.runs("free")) == 2
    (other,) = accepted(rig, asked("slow", key="a"))
    assert other.new, "a key belongs to its job"


def test_a_job_whose_runs_may_overlap_is_never_busy(rig: Rig) -> None:
    rig.tick()
    for cause in (Cause.MANUAL, Cause.API):
        accepted(rig, asked("free", None, cause=cause), asked("free", None, cause=cause))
    rig.tick()
    assert rig.statuses("free") == ["RUNNING"] * 4
    accepted(rig, asked("free", None, if_busy=IfBusy.REPLACE))
    assert [run.cancel is not None for run in rig.runs("free")] == [True] * 4 + [False]
    assert isinstance(rig.desk.ask([asked("one", None), asked("one", None)])[1], Refused)


def test_a_key_is_looked_at_before_what_is_unfinished(rig: Rig) -> None:
    """Asked for twice at once, by a person whose first request seemed lost: one run, and no refusal."""
    one = asked("one", None, key="a")
    answers = accepted(rig, one, one, asked("one", None, key="b", if_busy=IfBusy.QUEUE), one)
    assert [answer.new for answer in answers] == [True, False, True, False]
    assert len({answer.run for answer in answers}) == 2
    refused = rig.desk.ask([asked("one", None, key="c")])[0]
    assert isinstance(refused, Refused)
    (again,) = accepted(rig, one)
    assert again.run == answers[0].run


@pytest.mark.parametrize("payload", [2, 1.0, True, "1", None, [1], {"a": 1}])
def test_a_key_with_another_payload_is_refused(rig: Rig, payload: Any) -> None:
    accepted(rig, asked(key="a", payload=1))
    for group in ([asked(key="a", payload=payload)], [asked(key="a"), asked(key="a", payload=payload)]):
        answer = rig.desk.ask(group)[-1]
        assert isinstance(answer, Refused)
        assert "another payload" in answer.reason
    (good, bad) = rig.desk.ask([asked(key="z", payload=1), asked(key="z", payload=payload)])
    assert isinstance(good, Accepted)
    assert isinstance(bad, Refused)


def test_the_order_of_keys_in_a_payload_means_nothing(rig: Rig) -> None:
    (first,) = accepted(rig, asked(key="a", payload={"a": 1, "b": 2}))
    (second,) = accepted(rig, asked(key="a", payload={"b": 2, "a": 1}))
    assert first.run == second.run


def test_job_and_payload_can_be_the_key(rig: Rig) -> None:
    answers = accepted(
        rig,
        asked(payload={"a": 1, "b": 2}, fingerprint=True),
        asked(payload={"b": 2, "a": 1}, fingerprint=True),
        asked(payload={"a": 1, "b": 3}, fingerprint=True),
        asked("slow", payload={"a": 1, "b": 2}, fingerprint=True),
    )
    assert [one.new for one in answers] == [True, False, True, True]
    assert key_of(asked(payload=1, fingerprint=True)) != key_of(asked(payload=True, fingerprint=True))
    assert key_of(asked(payload=None, fingerprint=True)) != key_of(asked(payload="null", fingerprint=True))
    assert key_of(asked(key="k", fingerprint=True)) == "api:k"


def test_one_that_is_refused_does_not_concern_the_others(rig: Rig) -> None:
    answers = rig.desk.ask([asked(), asked("nope"), asked("one", None), asked("one", None), asked()])
    kinds = [type(one) for one in answers]
    assert kinds == [Accepted, NotFound, Accepted, Refused, Accepted]
    assert "has an unfinished run" in str(answers[3])
    assert len(rig.runs()) == 3


def test_a_group_replaces_its_own(rig: Rig) -> None:
    replace = asked("one", None, if_busy=IfBusy.REPLACE)
    accepted(rig, asked("one", None, if_busy=IfBusy.QUEUE), replace, replace)
    assert rig.statuses("one") == ["CANCELED", "CANCELED", "PENDING"]


def test_places_and_what_is_waited_for(rig: Rig) -> None:
    rig.desk.pause(["slow"], until=None, reason="", author="me")
    free = accepted(rig, asked(), asked(), asked("one"), asked("one"), asked("slow"))
    assert [one.ahead for one in free] == [0, 1, 2, None, None]
    assert [one.waits_for for one in free] == [None, None, None, WaitsFor.LOCK, WaitsFor.PAUSE]
    (later,) = accepted(rig, asked())
    assert later.ahead == 3


def test_how_long_it_will_take_is_guessed_from_what_it_took(rig: Rig) -> None:
    assert [one.wait for one in accepted(rig, asked("slow"), asked("slow"), asked("slow"))] == [0.0, 0.0, None]
    rig.tick()
    rig.seconds(10)
    rig.finish()
    rig.clock.turn(minutes=1)
    rig.tick()
    answers = accepted(rig, asked("slow"), asked("slow"), asked("slow"))
    # one of the first three runs is still running, so one place is free; each takes ten seconds, two at a time
    assert [one.ahead for one in answers] == [0, 1, 2]
    assert [one.wait for one in answers] == [0.0, 5.0, 10.0]


def test_a_rate_makes_wait(rig: Rig) -> None:
    answers = accepted(rig, *(asked("rated") for _ in range(4)))
    assert [one.wait for one in answers] == [0.0, 0.0, 1.0, 2.0]


def test_what_can_run_is_claimed_in_the_same_commit(store: SqlStore) -> None:
    rig = Rig(store, TEXT)
    rig.intake._claim = rig.worker.claim
    before = rig.store.writes
    (answer,) = accepted(rig, asked())
    assert rig.store.writes == before + 1
    assert (answer.begun, answer.wait) == (True, 0.0)
    assert rig.statuses("free") == ["RUNNING"]
    assert rig.executor.of("free") == [answer.run]
    names = [notice.name for notice in rig.notices if notice.name.startswith("run.")]
    assert names == ["run.planned", "run.claimed", "run.started"]


def test_a_node_that_is_declared_dead_takes_requests_and_claims_nothing(store: SqlStore) -> None:
    rig = Rig(store, TEXT)
    rig.intake._claim = rig.worker.claim
    with rig.store.begin() as tx:
        tx.nodes.declare_dead(rig.node, 0, rig.store.now())
    (answer,) = accepted(rig, asked())
    assert not answer.begun
    assert rig.statuses("free") == ["PENDING"]


def test_a_claim_is_given_back_when_the_commit_fails(store: SqlStore) -> None:
    rig = Rig(store, TEXT)
    rig.intake._claim = rig.worker.claim
    rig.store.broken_commits = 1
    (answer,) = rig.desk.ask([asked()])
    assert isinstance(answer, Unavailable)
    assert rig.runs() == []
    (answer,) = accepted(rig, asked())
    assert answer.begun, "its slots are free again"


def test_one_bad_member_does_not_take_the_others_with_it(rig: Rig) -> None:
    """A payload that the database cannot take: the group is taken apart."""
    poison = asked(payload={"a": {1, 2}})  # no JSON at all
    answers = rig.desk.ask([asked(), poison, asked()])
    assert [isinstance(one, Accepted) for one in answers] == [True, False, True]
    assert isinstance(answers[1], SchedulerError)
    assert len(rig.runs()) == 2


def test_without_the_database_everybody_is_told(rig: Rig) -> None:
    rig.store.away = True
    answers = rig.desk.ask([asked(), asked("nope")])
    assert all(isinstance(one, Unavailable) for one in answers)


def test_requests_of_a_key_on_two_nodes_make_one_run(store: SqlStore) -> None:
    """Whoever is second in the database gets the first one's run."""
    rig = Rig(store, TEXT)
    other = Rig(store, TEXT)
    made: list[list[Any]] = []
    gate = threading.Barrier(8)

    def ask(node: Rig) -> None:
        gate.wait(20)
        made.append(node.desk.ask([asked(key=f"k{number}") for number in range(20)]))

    threads = [threading.Thread(target=ask, args=(node,)) for node in (rig, other) * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(made) == 8
    assert len(rig.runs("free")) == 20
    for number in range(20):
        answers = [one[number] for one in made]
        assert len({one.run for one in answers}) == 1
        assert Counter(one.new for one in answers) == {True: 1, False: 7}


# ------------------------------------------------------------ the thread


@pytest.fixture
def running(rig: Rig) -> Iterator[Intake]:
    rig.intake.start()
    yield rig.intake
    rig.intake.stop()


def test_what_comes_while_a_commit_is_under_way_shares_the_next(rig: Rig, running: Intake) -> None:
    served: list[list[tuple[Any, Any]]] = []
    with rig.store.held() as entered:
        for number in range(30):
            running.submit([asked(payload=number)], number, served.append)
            if number == 0:
                assert entered.wait(20)
        before = rig.store.writes
    until(lambda: sum(map(len, served)) == 30)
    assert [len(one) for one in served] == [1, 29]
    assert rig.store.writes == before + 2
    assert [ticket for one in served for ticket, _ in one] == list(range(30))
    runs = {run.id: rig.run(run.id).payload for run in rig.runs("free")}
    assert all(runs[answers[0].run] == ticket for one in served for ticket, answers in one)


def test_stopping_serves_what_was_asked(rig: Rig) -> None:
    rig.intake.start()
    served: list[Any] = []
    for number in range(100):
        rig.intake.submit([asked(payload=number)], number, served.extend)
    rig.intake.stop()
    assert [ticket for ticket, _ in served] == list(range(100))
    assert len(accepted(rig, asked())) == 1, "after that it serves at once"


def test_somebody_who_cannot_be_answered_harms_nobody(rig: Rig, running: Intake) -> None:
    def gone(served: Any) -> None:
        raise RuntimeError("gone")

    running.submit([asked()], 1, gone)
    assert isinstance(rig.desk.ask([asked()])[0], Accepted)
    assert [run.status for run in rig.runs("free")] == [Status.PENDING] * 2
