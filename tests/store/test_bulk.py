"""Many rows in one statement: what they have in common arrives in each of them."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest
from sqlalchemy import select

from scheduler.core.model import Json, Output
from scheduler.store import tables as t
from scheduler.store.bulk import insert_all, update_each
from scheduler.store.store import SqlStore
from tests.store.world import MINUTE, T0, add, claim, get, new_run, set_up, settle, settlement

MANY = 25


@pytest.mark.parametrize("many", [1, MANY])
@pytest.mark.parametrize(
    "alike",
    [
        {},
        {"payload": {"a": [1, None]}, "note": "é\n", "author": "me", "not_before": T0 + MINUTE, "priority": -3},
        {"payload": None, "has_payload": True, "scheduled_for": T0, "lock": "one", "rank": 2**40, "trace": "00-1"},
    ],
    ids=["nothing", "some", "more"],
)
def test_runs_that_are_alike_are_stored_as_they_are(store: SqlStore, many: int, alike: dict[str, object]) -> None:
    set_up(store, ["job"])
    wanted = [new_run("job", **alike) for _ in range(many)]
    add(store, *wanted)
    for one in wanted:
        run = get(store, one.id)
        told = {field.name for field in fields(one)} & {field.name for field in fields(run)} - {"payload"}
        assert {name: getattr(run, name) for name in told} == {name: getattr(one, name) for name in told} | {
            "has_payload": one.has_payload or one.payload is not None
        }
    with store.queries() as queries:
        details = [queries.run(one.id) for one in wanted]
    assert [one.run.payload for one in details if one is not None] == [one.payload for one in wanted]


@pytest.mark.parametrize("kinds", [[1, True, 1.0], [{"a": 0}, {"a": False}, {"a": 0.0}]])
def test_what_python_takes_for_equal_is_not_the_same_as_json(store: SqlStore, kinds: list[Json]) -> None:
    set_up(store, ["job"])
    carried = [kinds[number % 3] for number in range(MANY)]
    add(store, *(new_run("job", payload=payload) for payload in carried))
    runs = claim(store, limit=MANY)
    assert json.dumps([run.payload for run in runs]) == json.dumps(carried)
    settle(store, *(settlement(run, result=result) for run, result in zip(runs, carried, strict=True)))
    assert json.dumps([get(store, run.id).result for run in runs]) == json.dumps(carried)


@pytest.mark.parametrize("printed", [b"the same", b"\x00\xff\\x00 the same"])
def test_outputs_that_are_alike_are_stored_as_they_are(store: SqlStore, printed: bytes) -> None:
    set_up(store, ["job"])
    add(store, *(new_run("job") for _ in range(MANY)))
    runs = claim(store, limit=MANY)
    outputs = [Output(run.id, 1, printed, b"", 0, True) for run in runs]
    for _ in range(2):  # The second time they take the place of the first.
        with store.begin() as tx:
            tx.runs.put_output(outputs, runs)
    with store.queries() as queries:
        assert [queries.output(run.id) for run in runs] == outputs


@pytest.mark.parametrize("many", [1, 3, 4, 70])
def test_what_was_changed_is_counted(store: SqlStore, many: int) -> None:
    """However many rows go into a statement: the new ones among those that were there, and those that were found."""
    rows = [{"key": f"lock {number}", "fence": 0, "run": None} for number in range(many)]
    with store.begin() as tx:
        session = tx.runs.session  # type: ignore[attr-defined]
        assert insert_all(session, t.locks, rows[1:], new_only=True) == many - 1
        assert insert_all(session, t.locks, rows, new_only=True) == 1
        changed = [{"key": row["key"], "fence": number} for number, row in enumerate(rows)]
        assert update_each(session, t.locks, ("key",), [*changed, {"key": "another", "fence": 1}]) == many
        found = session.rows(select(t.locks.c.key, t.locks.c.fence).order_by(t.locks.c.fence)).all()
    assert [tuple(row) for row in found] == [(row["key"], row["fence"]) for row in changed]
