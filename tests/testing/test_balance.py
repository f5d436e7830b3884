"""The balance of a demo: every event in one place, and nothing is good that is not."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from scheduler.testing.balance import Balance, Handled


def handled(path: Path, *lines: tuple[str, str]) -> Handled:
    path.write_text("".join(json.dumps({"event": {"id": one, "via": via}}) + "\n" for one, via in lines), "utf-8")
    return Handled.read(path)


def test_everything_once_is_good(tmp_path: Path) -> None:
    file = handled(tmp_path / "f", ("a", "webhook"), ("b", "scan"), ("c", "scan"))
    balance = Balance.of("abc", {"a": 2, "c": 1}, {"a", "c"}, file)
    assert balance.good
    assert (balance.happened, balance.never_sent, balance.requests, balance.received) == (3, 1, 3, 2)
    assert (balance.by_webhook, balance.by_scan, balance.overtaken, balance.once) == (1, 2, 1, 3)
    assert balance.lines()[-1] == "✓ 3 = 1 by webhook + 2 found by scan + 0 unaccounted"


def test_what_nobody_handled_is_named(tmp_path: Path) -> None:
    balance = Balance.of("abcd", {"a": 1}, {"a"}, handled(tmp_path / "f", ("a", "webhook")))
    assert not balance.good
    assert balance.unaccounted == ("b", "c", "d")
    assert any(line.split() == ["unaccounted", "3", "b,", "c", "…"] for line in balance.lines())
    assert balance.lines()[-1].startswith("✗ 4 = 1 by webhook + 0 found by scan + 3 unaccounted")


def test_what_was_handled_twice_is_named_by_whichever_way(tmp_path: Path) -> None:
    file = handled(tmp_path / "f", ("a", "webhook"), ("b", "webhook"), ("a", "scan"))
    balance = Balance.of("ab", {"a": 1, "b": 1}, {"a", "b"}, file)
    assert not balance.good
    assert (balance.once, balance.twice, balance.unaccounted) == (1, ("a",), ())


def test_what_never_happened_is_not_good(tmp_path: Path) -> None:
    balance = Balance.of("a", {"a": 1}, {"a"}, handled(tmp_path / "f", ("a", "webhook"), ("z", "scan")))
    assert not balance.good
    assert balance.unknown == ("z",)
    assert any("never happened" in line and "z" in line for line in balance.lines())


def test_a_line_that_is_being_written_does_not_count_yet(tmp_path: Path) -> None:
    path = tmp_path / "f"
    handled(path, ("a", "webhook"))
    with path.open("a") as file:
        file.write('{"event": {"id": "b"')
    assert set(Handled.read(path).ways) == {"a"}


def test_no_file_is_nothing_handled(tmp_path: Path) -> None:
    assert not Handled.read(tmp_path / "none").ways


EVENTS = st.sets(st.sampled_from("abcdefgh"))


@given(EVENTS, EVENTS, EVENTS, EVENTS)
def test_every_event_is_in_one_place(happened: set[str], sent: set[str], hooks: set[str], scans: set[str]) -> None:
    first = {**dict.fromkeys(scans, "scan"), **dict.fromkeys(hooks, "webhook")}
    times = {one: (one in hooks) + (one in scans) for one in first}
    ways = Handled(ways=Counter(times), first=first)
    balance = Balance.of(happened, dict.fromkeys(sent, 1), sent, ways)
    assert balance.happened == balance.by_webhook + balance.by_scan + len(balance.unaccounted)
    assert balance.good == (hooks | scans == happened and not hooks & scans)
    assert all(len(line) <= 80 for line in balance.lines())
