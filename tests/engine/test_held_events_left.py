"""Events that are held while a reload takes away who would get them: refused, counted, and never without a trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from scheduler.core.errors import Refused
from scheduler.core.job import Configuration
from scheduler.core.model import FailReason, Generation, Status
from scheduler.core.requests import Leftover
from scheduler.engine import left_held
from scheduler.store.store import SqlStore
from tests.engine.rig import Rig, jobs
from tests.engine.senders import SIGNED, event, ids, kept, told

OTHER = {"other": {"on_event": "orders"}}
TICKET = {"ticket": {"on_event": "payments"}, **OTHER}
BOTH = ("payments", "orders")


def text(given: Mapping[str, Mapping[str, Any]], sources: tuple[str, ...] = BOTH, *, paused: bool = True) -> str:
    return jobs(given, sources={name: {**SIGNED, "paused": paused} for name in sources})


@pytest.fixture
def rig(store: SqlStore) -> Rig:
    """One with three held events of `payments`, whose job is `ticket`, and one of `orders`, whose job is `other`."""
    rig = Rig(store, text(TICKET))
    told(rig, *(event(f"e{number}") for number in range(3)), event("o1", "orders"))
    rig.tick()
    assert rig.runs() == []
    return rig


WITHOUT = {
    "the job": text(OTHER),
    "the job and its source": text(OTHER, ("orders",)),
    "the source": text({"ticket": {"on_event": "third"}, **OTHER}, ("orders", "third")),
    "what it asked for": text({"ticket": {}, **OTHER}),
    "these types": text({"ticket": {"on_event": {"source": "payments", "types": ["refund.*"]}}, **OTHER}),
    "the job, as the pause ends": text(OTHER, paused=False),
}


@pytest.mark.parametrize("without", WITHOUT.values(), ids=WITHOUT)
def test_a_reload_that_would_lose_held_events_is_refused(rig: Rig, without: str) -> None:
    assert rig.reload(without, dry_run=True).pending == {"ticket": Leftover(held_events=3)}
    with pytest.raises(Refused, match=r"ticket \(3 held events\)") as refused:
        rig.reload(without)
    assert refused.value.hint is not None
    assert "--drop-pending" in refused.value.hint
    rig.reload(text(TICKET, paused=False))
    rig.tick()
    assert ids(rig.runs("ticket")) == ["e0", "e1", "e2"]


@pytest.mark.parametrize("without", WITHOUT.values(), ids=WITHOUT)
def test_what_is_dropped_is_a_dead_letter_that_can_be_brought_back(
    rig: Rig, without: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(left_held, "TOGETHER", 2)
    rig.reload(without, drop_pending=True)
    dead = rig.runs("ticket")
    assert ids(dead) == ["e0", "e1", "e2"]
    assert {(run.status, run.reason) for run in dead} == {(Status.FAILED, FailReason.JOB_REMOVED)}
    with rig.store.queries() as queries:
        assert queries.gauges(rig.clock.now()).dead_letters == {"ticket": 3}
    rig.reload(text(TICKET, paused=False))
    rig.tick()
    rig.seconds(3)
    assert len(rig.runs("ticket")) == 3, "they are not made again"
    for run in dead:
        rig.desk.retry(run.id, author="me")
    rig.tick()
    assert [run.status for run in rig.runs("ticket")][3:] == [Status.RUNNING] * 3


def test_a_source_that_is_gone_holds_nothing_any_more(rig: Rig) -> None:
    """Retention never takes what is held."""
    rig.reload(text(OTHER, ("orders",)), drop_pending=True)
    found, other = kept(rig, "e1"), kept(rig, "o1", "orders")
    assert found is not None
    assert other is not None
    assert (found.held, other.held) == (False, True)


def test_a_job_that_is_only_disabled_gets_its_runs_when_it_is_not(rig: Rig) -> None:
    disabled: dict[str, dict[str, Any]] = {"ticket": {"on_event": "payments", "enabled": False}, **OTHER}
    rig.reload(text(disabled))
    rig.reload(text(disabled, paused=False))
    rig.tick()
    rig.seconds(3)
    assert rig.statuses("ticket") == ["PENDING"] * 3
    rig.reload(text(TICKET, paused=False))
    rig.tick()
    assert rig.statuses("ticket") == ["RUNNING"] * 3


def test_who_never_asked_for_them_holds_nothing_up(rig: Rig) -> None:
    late = {"late": {"on_event": "payments"}}
    rig.turn(seconds=10)
    rig.reload(text({**TICKET, **late}))
    rig.reload(text(TICKET))
    other_types = {"source": "payments", "types": ["payment.*"]}
    rig.reload(text({"ticket": {"on_event": other_types}, **OTHER}))
    rig.reload(text({"ticket": {"on_event": other_types, "timeout": "5m"}, **OTHER}))
    assert rig.runs() == []


def test_what_was_given_up_once_is_not_counted_again(rig: Rig) -> None:
    rig.reload(text({"ticket": {}, **OTHER}), drop_pending=True)
    rig.reload(text(TICKET))
    assert rig.reload(text(OTHER), dry_run=True).pending == {}


def test_a_daemon_that_starts_with_such_a_file_loses_none(rig: Rig) -> None:
    """It has nobody to ask."""
    rig.text = text(OTHER)
    rig.in_force.loaded = None
    rig.reloader.start(rig.load(), author="start", node=rig.node)
    assert rig.statuses("ticket") == ["FAILED"] * 3


UNREADABLE = {name: WITHOUT[name] for name in ("the job", "the job and its source", "what it asked for")}


@pytest.mark.parametrize("without", UNREADABLE.values(), ids=UNREADABLE)
def test_of_a_configuration_that_cannot_be_read_the_rows_know(
    rig: Rig, without: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after an upgrade, with a file that was changed meanwhile."""

    def unreadable(generation: Generation | None) -> Configuration | None:
        return None

    monkeypatch.setattr(rig.reloader, "_readable", unreadable)
    with pytest.raises(Refused, match=r"ticket \(3 held events\)"):
        rig.reload(without)
    rig.reload(without, drop_pending=True)
    assert ids(rig.runs("ticket")) == ["e0", "e1", "e2"]
    assert {(run.status, run.reason) for run in rig.runs("ticket")} == {(Status.FAILED, FailReason.JOB_REMOVED)}
    other, event = kept(rig, "o1", "orders"), kept(rig, "e1")
    assert other is not None
    assert event is not None
    assert other.held
    assert event.held is ("payments" in rig.in_force.current.configuration.sources)
