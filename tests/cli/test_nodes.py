"""`schedctl nodes`: who runs, what is wrong with whom, and what to do about it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from scheduler.cli.node_words import remarks, worth_showing
from scheduler.core.hints import Word
from scheduler.core.model import Node
from tests.cli.screen import Screen
from tests.engine.doubles import START

LEASE = timedelta(minutes=3)


def node(**changes: Any) -> dict[str, Any]:
    one = {
        "id": "a" * 28 + "00000001",
        "short_id": "00000001",
        "host": "web1",
        "pid": 42,
        "version": "0.2.0",
        "state": "live",
        "started_at": (START - timedelta(days=2)).isoformat(),
        "beat_at": (START - timedelta(seconds=3)).isoformat(),
        "lease_s": 180.0,
        "slots": 64,
        "running": 0,
        "queues": None,
        "generation": 7,
        "clock_offset_s": 0.0,
        "leaving_at": None,
        "hints": "listening",
        "aside": None,
    }
    return one | changes


def said(one: dict[str, Any], *others: dict[str, Any]) -> list[str]:
    return [f"{text} → {remedy}" for text, remedy in remarks(one, [one, *others], START)]


def test_of_a_node_that_is_well_nothing_is_said() -> None:
    assert said(node(), node(id="b")) == []


def test_one_that_has_not_beaten_says_when_others_take_over() -> None:
    silent = node(beat_at=(START - timedelta(seconds=60)).isoformat(), running=4)
    (line,) = said(silent, node(id="b"))
    assert line.startswith(
        "has not beaten for 1m; in 2m its lease of 3m ends, and others take over its 4 runs → on web1"
    )
    gone = node(beat_at=(START - timedelta(minutes=5)).isoformat())
    assert "longer than its lease of 3m; nobody has declared it dead yet" in said(gone)[0]
    assert said(node(beat_at=(START - timedelta(seconds=20)).isoformat())) == []


def test_one_that_leaves_says_for_how_much_it_waits() -> None:
    leaving = node(state="stopping", leaving_at=(START - timedelta(minutes=2)).isoformat(), running=3)
    assert said(leaving) == ["is leaving since 2m and waits for 3 runs → schedctl runs --status RUNNING"]


def test_one_that_is_behind_says_why() -> None:
    behind = node(generation=6, aside="jobs.yaml:3: unknown key", version="0.1.0")
    first, second = said(behind, node(id="b"))
    assert first.startswith("stands aside, it plans and starts nothing: jobs.yaml:3: unknown key → upgrade it")
    assert second == "runs 0.1.0, others 0.2.0 → upgrade it next"
    assert said(node(generation=6), node(id="b")) == ["works with generation 6, others with 7 → schedctl status"]
    assert said(node(version="0.10.0"), node(id="b", version="0.9.1")) == []


def test_a_clock_that_is_off_says_which_way() -> None:
    assert said(node(clock_offset_s=3.2)) == ["its clock is 3.2s behind the database's → on web1: timedatectl"]
    assert "ahead of the database's" in said(node(clock_offset_s=-40.0))[0]


def test_the_dead_are_shown_while_they_may_be_missed() -> None:
    dead = node(id="d", state="dead", host="web2", beat_at=(START - timedelta(hours=3)).isoformat())
    heir = node(id="h", host="web2", started_at=(START - timedelta(hours=2)).isoformat())
    neighbour = node(id="h", host="web2")
    assert worth_showing([dead, node()], START) == [dead, node()]
    assert worth_showing([dead, heir], START) == [heir]
    assert worth_showing([dead, neighbour], START) == [dead, neighbour]
    assert worth_showing([dead | {"running": 1}, heir], START) == [dead | {"running": 1}, heir]
    assert worth_showing([dead | {"beat_at": (START - timedelta(days=2)).isoformat()}, node()], START) == [node()]
    assert worth_showing([node(state="stopped")], START) == []
    assert said(dead, node()) == [
        "died: its last beat was 3h ago; others took over what it ran → look at its log on web2, and start it again"
    ]


@pytest.fixture
def three(screen: Screen) -> Screen:
    """One that is well, one that polls and leaves, one that is behind."""
    with screen.rig.store.begin() as tx:
        for number, host in ((2, "web2.example.com"), (3, "web3.example.com")):
            started = START - timedelta(days=number)
            tx.nodes.register(Node(f"n{number}" * 4, host, 4000 + number, "0.1.0", started, LEASE, 64), START)
        polls = Word("polling: a pooler is between this node and the server", None)
        tx.nodes.renew("n2" * 4, START, generation=1, word=polls)
        tx.nodes.mark("n2" * 4, "stopping", START)
        tx.nodes.renew("n3" * 4, START, generation=0, clock_offset=2.5, word=Word("listening", "no such key"))
    return screen


def test_the_screen(three: Screen) -> None:
    lines = three("nodes")
    assert lines[0].split() == [
        *("NODE", "HOST", "PID", "STATE", "BEAT", "RUNS", "GEN", "CLOCK", "HEARS", "STARTED", "VERSION", "LEASE"),
        "QUEUES",
    ]
    rows = {line.split()[0]: line for line in lines[1:4]}
    assert "polls" in rows["n2n2n2n2"]
    assert "stopping" in rows["n2n2n2n2"]
    assert "listens" in rows["n3n3n3n3"]
    assert "-2.5s" in rows["n3n3n3n3"]
    text = "\n".join(lines)
    assert "! n2n2n2n2 on web2.example.com  is leaving" in text
    assert "! n3n3n3n3 on web3.example.com  stands aside, it plans and starts nothing: no such key" in text
    assert "n2n2n2n2 looks once a second for what others did: a pooler is between" in three.err


def test_the_same_for_machines(three: Screen) -> None:
    found = {one["short_id"]: one for one in three.json("nodes")}
    assert found["n2n2n2n2"]["hints"] == "polling: a pooler is between this node and the server"
    assert found["n3n3n3n3"]["aside"] == "no such key"


def test_a_running_run_says_on_which_node(screen: Screen) -> None:
    screen.rig.desk.run_now("ticket", author="ana")
    screen.rig.tick()
    assert any(f"running on node {screen.rig.node[-8:]}" in line for line in screen("describe", "ticket"))
