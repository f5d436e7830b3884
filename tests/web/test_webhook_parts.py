"""Buckets and live secrets, by themselves."""

from __future__ import annotations

import os
from pathlib import Path

from scheduler.core.secret import Secret
from scheduler.core.signature import LiveSecret
from scheduler.web.bucket import Bucket
from scheduler.web.live_secrets import LOOK, LiveSecrets


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_bucket_gives_its_burst_and_then_its_rate() -> None:
    clock = Clock()
    bucket = Bucket(2.0, 3, clock)
    assert [bucket.take() for _ in range(4)] == [0, 0, 0, 0.5]
    assert bucket.wait() == 0.5
    clock.now += 0.25
    assert bucket.take() == 0.25
    clock.now += 0.25
    assert (bucket.wait(), bucket.take(), bucket.wait()) == (0, 0, 0.5)


def test_a_bucket_never_holds_more_than_its_burst() -> None:
    clock = Clock()
    bucket = Bucket(2.0, 2, clock)
    clock.now += 3600
    assert [bucket.take() for _ in range(3)] == [0, 0, 0.5]


def test_secrets_are_in_their_order_and_those_that_cannot_be_read_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("first\n")
    given = [Secret(file=str(tmp_path / "one")), Secret(env="UNSET"), Secret(env="TWO", prefix="p-")]
    live = LiveSecrets(given, {"TWO": "second"})
    assert live.now() == (LiveSecret(str(tmp_path / "one"), "first"), LiveSecret("TWO", "p-second"))
    (problem,) = live.problems
    assert "UNSET" in problem
    assert "second" not in repr(live.now())


def test_a_file_is_looked_at_once_a_second_or_when_asked_to(tmp_path: Path) -> None:
    clock = Clock()
    file = tmp_path / "secret"
    file.write_text("one")
    live = LiveSecrets([Secret(file=str(file))], {}, clock)
    _exchange(file, "two")
    assert [one.value for one in live.now()] == ["one"]
    clock.now += LOOK
    assert [one.value for one in live.now()] == ["two"]
    _exchange(file, "three")
    assert live.changed()
    assert [one.value for one in live.now()] == ["three"]
    assert not live.changed()


def test_a_file_behind_a_link_that_is_turned(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text(name)
    link = tmp_path / "secret"
    link.symlink_to("one")
    live = LiveSecrets([Secret(file=str(link))], {})
    (tmp_path / "next").symlink_to("two")
    (tmp_path / "next").rename(link)
    assert live.changed()
    assert [one.value for one in live.now()] == ["two"]


def test_a_file_that_goes_and_comes_back(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    live = LiveSecrets([Secret(file=str(file))], {})
    assert (live.now(), len(live.problems)) == ((), 1)
    file.write_text("there")
    assert live.changed()
    assert ([one.value for one in live.now()], live.problems) == (["there"], ())
    file.unlink()
    assert live.changed()
    assert (live.now(), len(live.problems)) == ((), 1)


def _exchange(file: Path, text: str) -> None:
    fresh = file.with_name("fresh")
    fresh.write_text(text)
    os.replace(fresh, file)
