from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from scheduler.core.hindrances import NOT_PLANNED, RESTORED
from scheduler.core.model import Node, Skip, SkipReason
from scheduler.core.stamp import to_text
from scheduler.web.absence import Absence, absence
from scheduler.web.present import skip_json
from tests.faces import Faces
from tests.web.client import Client


def at(hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 3, 2, hour, minute, tzinfo=UTC)


def node(start: datetime, seen: datetime | None) -> Node:
    return Node(str(start), "host", 1, "0", start, None, 64, beat_at=seen)


NODES = [node(at(8), at(9)), node(at(8, 30), at(9, 30)), node(at(11), at(12)), node(at(13), None)]


@pytest.mark.parametrize(
    ("instant", "found"),
    [
        (at(7), Absence(None, at(8))),
        (at(8, 15), None),
        (at(9, 30), None),
        (at(10), Absence(at(9, 30), at(11))),
        (at(12, 30), Absence(at(12), at(13))),
        (at(14), None),
    ],
)
def test_nobody_was_there_between_the_last_beat_and_the_next_start(instant: datetime, found: Absence | None) -> None:
    assert absence(NODES, instant) == found


def test_missed_instants_say_that_there_was_no_daemon(acting: Client, faces: Faces) -> None:
    rig = faces.rig
    rig.tick(minutes=1)
    rig.finish()
    seen = rig.clock.now()
    with rig.store.begin() as tx:
        tx.nodes.mark(rig.node, "stopped", seen)
    rig.turn(minutes=30)
    rig.succeed()
    start = rig.clock.now()
    rig.tick(seconds=1)
    expected = {"from": to_text(seen), "from_exact": True, "until": to_text(start), "leaving_from": None}
    (skip,) = (one for one in acting.get("/v1/runs?job=minutely").json()["entries"] if one["type"] == "skip")
    assert (skip["reason"], skip["no_daemon"]) == ("missed", expected)
    assert skip["detail"] == "catch_up: latest, and a newer one was due"
    assert acting.get("/v1/jobs/minutely").json()["job"]["last_skip"]["no_daemon"] == expected


@pytest.mark.parametrize(
    "detail", [RESTORED, f"catch_up: none; {NOT_PLANNED} 08:00:00 to 08:05:00 UTC: the disk is full"]
)
def test_what_is_explained_needs_no_guess(detail: str) -> None:
    missed = Skip("a", SkipReason.MISSED, at(10), at(10), 1, detail="catch_up: none")
    assert skip_json(missed, NODES)["no_daemon"] is not None
    assert skip_json(replace(missed, detail=detail), NODES)["no_daemon"] is None


LEFT = replace(node(at(8), at(9)), state="stopped", leaving_at=at(8, 30))
NEXT = node(at(10), at(12))


@pytest.mark.parametrize(
    ("nodes", "instant", "found"),
    [
        ((LEFT, NEXT), at(8, 29), None),
        ((LEFT, NEXT), at(8, 45), Absence(at(9), at(10), exact=True, leaving=at(8, 30))),
        ((LEFT, NEXT), at(9, 30), Absence(at(9), at(10), exact=True, leaving=at(8, 30))),
        ((replace(LEFT, state="dead"), NEXT), at(9, 30), Absence(at(9), at(10), exact=False, leaving=at(8, 30))),
        ((replace(LEFT, leaving_at=at(9)), NEXT), at(9, 30), Absence(at(9), at(10), exact=True)),
        ((replace(LEFT, leaving_at=at(9), state="dead"), NEXT), at(9, 30), Absence(at(9), at(10), leaving=at(9))),
        ((LEFT, node(at(8), at(8, 50)), NEXT), at(8, 45), None),
        ((LEFT,), at(8, 45), None),
    ],
)
def test_a_daemon_that_leaves_is_there_but_plans_nothing(
    nodes: tuple[Node, ...], instant: datetime, found: Absence | None
) -> None:
    assert absence(nodes, instant) == found


def test_what_was_missed_under_a_daemon_says_nothing_of_it(acting: Client, faces: Faces) -> None:
    rig = faces.rig
    rig.tick(minutes=1)
    rig.finish()
    rig.turn(minutes=30)
    with rig.store.begin() as tx:
        tx.nodes.renew(rig.node, rig.clock.now() + timedelta(seconds=1), generation=1)
    rig.tick(seconds=1)
    (skip,) = (one for one in acting.get("/v1/runs?job=minutely").json()["entries"] if one["type"] == "skip")
    assert (skip["reason"], skip["no_daemon"]) == ("missed", None)
