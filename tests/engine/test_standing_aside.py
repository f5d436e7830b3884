"""A node that cannot load what is in force: it neither plans nor starts anything, says so, and joins when it can."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from scheduler.core.errors import InvalidInput, Unavailable
from scheduler.core.job import Configuration
from scheduler.core.model import Status
from scheduler.core.outcome import Succeeded
from scheduler.engine import reload
from scheduler.engine.recovery import recover
from scheduler.store.store import SqlStore
from tests.engine.rig import Rig, _from_texts, failed, jobs

MINUTELY = {"schedule": "* * * * *"}
OLD = jobs({"a": MINUTELY})
NEW = jobs({"a": {**MINUTELY, "priority": 3}, "b": {**MINUTELY, "keep": "300d"}})


def cannot(files: Mapping[str, str]) -> Configuration:
    raise InvalidInput("unknown key `steps`")


def older(store: SqlStore, first: Rig, text: str = OLD, load: Callable[..., Any] = cannot) -> Rig:
    """A node of an older release that starts beside another one."""
    rig = Rig(store, text, first.clock, start=False)
    rig.reloader._load_texts = load
    rig.reloader.start(rig.load(), author="start", node=rig.node)
    rig.register()
    return rig


def both(store: SqlStore) -> tuple[Rig, Rig]:
    """The newer one works with NEW; OLD has been in force before."""
    one = Rig(store, OLD)
    one.reload(NEW)
    return one, older(store, one)


def test_it_starts_and_stands_aside(store: SqlStore, logs: list[dict[str, object]]) -> None:
    one, two = both(store)
    assert two.in_force.behind == "generation 2 cannot be loaded here: unknown key `steps`"
    assert two.in_force.behind_since == two.clock.now()
    assert two.reloader.not_taken == "other nodes live, and the file removes b"
    assert [entry["log_level"] for entry in logs if entry["event"] == "generation_not_loaded"] == ["error"]
    two.turn(minutes=3)
    two.tick()
    assert two.runs() == []
    assert two.worker.claim() is None
    one.tick()
    assert len(one.executor.live) == 2
    assert two.executor.started == []


def test_it_says_so_once_and_joins_as_soon_as_it_can(store: SqlStore, logs: list[dict[str, object]]) -> None:
    one, two = both(store)
    for _ in range(3):
        two.tick(seconds=1)
    assert [entry["event"] for entry in logs].count("generation_not_loaded") == 1
    two.reloader._load_texts = _from_texts
    two.tick(minutes=1)
    assert (two.in_force.behind, two.in_force.behind_since) == (None, None)
    two.tick()
    assert len(two.executor.live) == 2
    assert one.executor.live == {}


def test_a_large_file_is_not_tried_all_the_time(sqlite: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    _, two = both(sqlite)
    seconds = [time.monotonic() + 100.0]
    monkeypatch.setattr(reload, "time", SimpleNamespace(monotonic=lambda: seconds[0]))
    tried: list[float] = []

    def slowly(files: Mapping[str, str]) -> Configuration:
        tried.append(seconds[0])
        seconds[0] += 2.0
        raise InvalidInput("unknown key `steps`")

    two.reloader._load_texts = slowly
    for _ in range(30):
        two.keeper.tick(two.store.now())
        seconds[0] += 1.0
    assert [after - before for before, after in pairwise(tried)] == [22.0]


def test_its_own_file_can_be_put_in_force_by_hand(store: SqlStore) -> None:
    _, two = both(store)
    assert two.reload(OLD).removed == ("b",)
    assert (two.in_force.behind, two.reloader.not_taken) == (None, None)
    two.tick(minutes=1)
    assert len(two.executor.live) == 1


def test_it_gives_no_run_a_lock_or_a_queue_that_it_only_guesses(store: SqlStore) -> None:
    one, two = both(store)
    run, _ = one.desk.run_now("b", author="me")
    one.tick()
    one.finish()
    for ask in (lambda: two.desk.run_now("a", author="me"), lambda: two.desk.retry(run.id, author="me")):
        with pytest.raises(Unavailable, match="stands aside: generation 2 cannot be loaded here"):
            ask()
    assert len(one.runs()) == 1


def test_it_leaves_to_others_what_only_they_can_judge(store: SqlStore) -> None:
    """Runs of dead nodes, and how long history is kept."""
    one, two = both(store)
    one.tick(minutes=1)
    one.finish()
    one.desk.run_now("b", author="me")
    one.tick()
    with two.store.begin() as tx:
        beat = next(node.beat for node in tx.nodes.all() if node.id == one.node)
        assert tx.nodes.declare_dead(one.node, beat, two.store.now())
    two.tick(seconds=1)
    assert two.statuses("b") == ["COMPLETED", "RUNNING"]
    two.turn(days=200)
    assert two.retention.tick(two.store.now()) == 0
    assert len(two.runs("b")) == 2


def test_one_that_fell_behind_does_not_judge_by_what_was_in_force_before(store: SqlStore) -> None:
    one = Rig(store, OLD)
    two = older(store, one, OLD, _from_texts)
    two.reloader._load_texts = cannot
    one.reload(jobs({"a": {**MINUTELY, "on_lost": "fail"}}))
    one.tick(minutes=1)
    with two.store.begin() as tx:
        beat = next(node.beat for node in tx.nodes.all() if node.id == one.node)
        assert tx.nodes.declare_dead(one.node, beat, two.store.now())
    two.tick(seconds=1)
    two.tick(seconds=1)
    assert two.statuses("a") == ["RUNNING"]
    assert two.in_force.current.generation == 1


@pytest.mark.parametrize(("outcome", "status"), [(Succeeded(exit_code=0), "COMPLETED"), (failed(), "RUNNING")])
def test_what_it_knows_of_its_predecessor_is_not_thrown_away(store: SqlStore, outcome: Any, status: str) -> None:
    """Success needs no judgement; what follows a failure, others know."""
    one = Rig(store, OLD)
    one.reload(jobs({"a": MINUTELY, "next": {"after": "a", "queue": "special"}}, queues={"special": {}}))
    run, _ = one.desk.run_now("a", author="me")
    one.tick()
    two = older(store, one)
    now, boottime = two.store.now(), two.clock.boottime()
    recover(two.store, two.in_force, two.bus, two.attempts, [one.node], {(run.id, 1): outcome}, now, boottime)
    assert two.run(run.id).status == status
    follow_ups = [(one.key, one.queue, one.payload) for one in map(two.run, [one.id for one in two.runs("next")])]
    expected = {"schema": 1, "run": run.id, "job": "a", "status": "COMPLETED", "result": None}
    assert follow_ups == ([(f"after:{run.id}", "special", expected)] if status == "COMPLETED" else [])


# ------------------------------------------------------------ who follows a run that ends


def follower(**keys: Any) -> str:
    return jobs({"a": MINUTELY, "next": {"after": "a", **keys}}, queues={"special": {}})


def running_beside(store: SqlStore, text: str = OLD) -> tuple[Rig, Rig]:
    """Two nodes, the second of which runs `a`."""
    one = Rig(store, text)
    two = older(store, one, text, _from_texts)
    two.tick(minutes=1)
    assert len(two.executor.live) == 1
    return one, two


def test_a_node_that_is_a_second_behind_misses_no_new_follower(store: SqlStore) -> None:
    one, two = running_beside(store)
    one.reload(follower(queue="special", priority=7))
    two.finish()
    (run,) = two.runs("a")
    assert run.status is Status.COMPLETED
    (followed,) = two.runs("next")
    assert (followed.key, followed.queue, followed.priority) == (f"after:{run.id}", "special", 7)
    assert two.in_force.current.generation == 2


def test_a_node_that_is_a_second_behind_serves_no_follower_that_is_gone(store: SqlStore) -> None:
    one, two = running_beside(store, follower())
    one.reload(OLD)
    two.finish()
    assert two.runs("next") == []


@pytest.mark.parametrize(
    ("keys", "lock"),
    [({}, None), ({"overlap": "queue"}, "job:next"), ({"overlap": "queue", "lock": "shared"}, "lock:shared")],
)
def test_a_node_that_cannot_load_what_is_in_force_reads_who_follows_from_the_jobs(
    store: SqlStore, keys: dict[str, str], lock: str | None
) -> None:
    one, two = running_beside(store)
    two.reloader._load_texts = cannot
    one.reload(follower(queue="special", priority=7, **keys))
    two.finish()
    assert two.statuses("a") == ["COMPLETED"]
    (run,) = two.runs("next")
    (direct, _) = one.desk.run_now("next", author="me", payload=1, has_payload=True)
    assert (run.queue, run.priority, run.lock) == (direct.queue, direct.priority, direct.lock) == ("special", 7, lock)
    one.tick()
    two.finish()
    assert len(two.runs("next")) == 2


def test_followers_that_are_disabled_or_wait_for_another_end_get_nothing(store: SqlStore) -> None:
    one, two = running_beside(store)
    two.reloader._load_texts = cannot
    others = {"off": {"after": "a", "enabled": False}, "bad": {"after": {"job": "a", "on": "failed"}}}
    one.reload(jobs({"a": MINUTELY, **others, "b": {"after": "off"}}))
    two.finish()
    assert [run.job for run in two.runs()] == ["a"]


def test_a_run_is_asked_for_by_the_newest_configuration(store: SqlStore) -> None:
    one, two = running_beside(store)
    one.reload(follower(queue="special"))
    run, _ = two.desk.run_now("next", author="me")
    assert run.queue == "special"
