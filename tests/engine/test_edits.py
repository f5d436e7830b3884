"""No edit makes a miss of what was none, and none hides what is missed after it."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

import pytest

from scheduler.core.durations import parse_duration
from scheduler.store.store import SqlStore
from tests.engine.rig import Rig, at, failed, jobs
from tests.engine.senders import SIGNED
from tests.engine.test_vigil import away, flips, kept, watch

BLACK = {"from": "2026-03-02 08:03", "to": "2026-03-02 08:12"}
WATCHED = {"schedule": "*/5 * * * *", "grace": "2m", "alert_after": 9, "timezone": "UTC", "blackouts": [BLACK]}
KEY = {"env": "STRIPE_KEY"}
KINDS: dict[str, dict[str, object]] = {
    "command": {"command": ["true"]},
    "external": {"external": True},
    "scan": {"compensate": {"source": "shop", "compensator": "stripe_events", "with": {"api_key": KEY}}},
}
EDITS: dict[str, tuple[dict[str, object], datetime]] = {
    "no blackout": ({"blackouts": []}, at(8, 17)),
    "it ends earlier": ({"blackouts": [{**BLACK, "to": "2026-03-02 08:08"}]}, at(8, 17)),
    "it begins later": ({"blackouts": [{**BLACK, "from": "2026-03-02 08:08"}]}, at(8, 17)),
    "it is tomorrow": ({"blackouts": [{"from": "2026-03-03 08:03", "to": "2026-03-03 08:12"}]}, at(8, 17)),
    "it lasts longer": ({"blackouts": [{**BLACK, "to": "2026-03-02 08:17"}]}, at(8, 22)),
    "it recurs elsewhen": ({"blackouts": [{"schedule": "3 20 * * *", "for": "9m"}]}, at(8, 17)),
    "it has a reason": ({"blackouts": [{**BLACK, "reason": "moving"}]}, at(8, 17)),
    "nor the grace that was": ({"blackouts": [], "grace": "1m"}, at(8, 16)),
    "a shorter grace": ({"grace": "1m"}, at(8, 16)),
    "a longer grace": ({"grace": "3m"}, at(8, 18)),
    "another schedule": ({"schedule": "2/5 * * * *"}, at(8, 19)),
    "a denser schedule": ({"schedule": "*/2 * * * *", "blackouts": []}, at(8, 16)),
    "another zone": ({"timezone": "Asia/Kathmandu", "schedule": "7/30 * * * *"}, at(8, 24)),
    "that of the blackout only": ({"timezone": "Asia/Tokyo"}, at(8, 17)),
    "a ping": ({"heartbeat": {"ping_url": "http://127.0.0.1:9/"}, "blackouts": []}, at(8, 17)),
    "what does not matter": ({"description": "x", "tags": ["a"], "keep": "3d"}, at(8, 17)),
}


def watched(**keys: object) -> str:
    """A job of each kind."""
    text = json.loads(jobs(sources={"shop": SIGNED}))
    text["jobs"] = {kind: {**WATCHED, **does, **keys} for kind, does in KINDS.items()}
    return json.dumps(text)


def after_blackout(store: SqlStore, **keys: object) -> Rig:
    """Jobs whose instants at 8:05 and 8:10 lay in a blackout, a minute after its end."""
    rig = Rig(store, watched(**keys))
    rig.worker._executors = dict.fromkeys(("command", "compensate"), rig.executor)
    watch(rig, at(8, 13))
    return rig


def missed_each(rig: Rig) -> list[datetime]:
    """When the jobs of each kind were missed, which must be all that they were."""
    found = {kind: flips(rig, kind) for kind in KINDS}
    assert len({tuple(each) for each in found.values()}) == 1, found
    assert [new for new, *_ in found["scan"]] == ["missed"] * len(found["scan"])
    return [when for _, when, _ in found["scan"]]


@pytest.mark.parametrize(("change", "late"), EDITS.values(), ids=EDITS)
def test_no_edit_makes_a_miss(sqlite: SqlStore, change: dict[str, object], late: datetime) -> None:
    """And none hides one that comes later."""
    rig = after_blackout(sqlite)
    rig.reload(watched(**change))
    watch(rig, late)
    rig.finish(failed())
    assert missed_each(rig) == []
    watch(rig, late + timedelta(seconds=30))
    assert missed_each(rig) == [late]


@pytest.mark.parametrize("change", [{"grace": "5m"}, {"grace": "5m", "heartbeat": True}])
def test_what_is_owed_is_forgiven_where_it_would_be_late_by_the_edit(
    sqlite: SqlStore, change: dict[str, object]
) -> None:
    before = {"schedule": "0 * * * *", "grace": "2h", "heartbeat": change.get("heartbeat") is None, "alert_after": 9}
    rig = Rig(sqlite, jobs({"a": before}))
    watch(rig, at(9, 1))
    rig.finish(failed())
    watch(rig, at(9, 30))
    rig.reload(jobs({"a": {**before, **change}}))
    watch(rig, at(9, 50))
    assert flips(rig) == []
    watch(rig, at(10, 10))
    assert kept(rig) == ("missed", at(10, 5))


@pytest.mark.parametrize("change", [{"blackouts": []}, {"grace": "5m"}, {"grace": "3m", "blackouts": []}], ids=str)
def test_what_is_owed_is_owed_after_an_edit_too(sqlite: SqlStore, change: dict[str, object]) -> None:
    """An instant after the blackout failed, and is not late yet; those in it were excused, and stay so."""
    rig = after_blackout(sqlite, grace="6m")
    watch(rig, at(8, 16))
    rig.finish(failed())
    rig.reload(watched(**{"grace": "6m", **change}))
    late = at(8, 15) + parse_duration(str(change.get("grace", "6m")))
    watch(rig, late)
    assert missed_each(rig) == []
    watch(rig, late + timedelta(seconds=30))
    assert missed_each(rig) == [late]


def test_a_blackout_that_is_gone_changes_nothing_of_a_miss(sqlite: SqlStore) -> None:
    rig = after_blackout(sqlite)
    watch(rig, at(8, 18))
    rig.reload(watched(blackouts=[]))
    watch(rig, at(8, 20))
    assert missed_each(rig) == [at(8, 17)]
    assert rig.state("command").deadline_at == at(8, 17)


def test_an_edit_while_nobody_watched_makes_no_miss(sqlite: SqlStore) -> None:
    """The daemon was away when the deadline passed, and comes back with a file in which the blackout is gone."""
    rig = after_blackout(sqlite)
    rig.text = watched(blackouts=[])
    rig = away(rig, minutes=5)
    watch(rig, at(8, 19))
    assert flips(rig, "command") == [], "what it is owed is under way"
    rig.finish()
    watch(rig, at(8, 21))
    assert flips(rig, "command") == []


def test_a_run_that_was_young_enough_to_excuse_others_stays_so(sqlite: SqlStore) -> None:
    entry = {"schedule": "*/10 * * * *", "grace": "25m", "alert_after": 9}
    rig = Rig(sqlite, jobs({"a": entry}))
    watch(rig, at(8, 11))
    rig.finish()
    watch(rig, at(8, 41))
    rig.finish()
    assert rig.state("a").deadline_at == at(9, 15), "8:20 is done, 8:30 and 8:40 are excused"
    rig.reload(jobs({"a": {**entry, "grace": "8m"}}))
    assert rig.state("a").deadline_at == at(8, 58)
    watch(rig, at(8, 58))
    rig.finish(failed())
    assert flips(rig) == []
    watch(rig, at(8, 59))
    assert flips(rig) == [("missed", at(8, 58), "deadline")]


def test_whoever_waits_again_does_not_wait_for_what_is_over(sqlite: SqlStore) -> None:
    rig = after_blackout(sqlite, heartbeat=False)
    rig.reload(watched(blackouts=[]))
    watch(rig, at(8, 17))
    rig.finish(failed())
    assert missed_each(rig) == []
    watch(rig, at(8, 18))
    assert missed_each(rig) == [at(8, 17)]
