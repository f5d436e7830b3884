"""The same instants whatever the process: its time zone, its zone database, its hash seed, its wall clock."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import sys
from datetime import UTC, datetime
from hashlib import sha256

def answers():
    from scheduler.core.explain import explain, note, warnings
    from scheduler.core.instants import parse_instant, relative
    from scheduler.core.schedule import Schedule
    start, end = datetime(2026, 10, 1, tzinfo=UTC), datetime(2027, 4, 30, tzinfo=UTC)
    for zone in ("UTC", "America/New_York", "Europe/London", "Australia/Lord_Howe", "America/Havana"):
        tested = Schedule(("30 1,2 * * *", "H 3 */2 * MON", "*/20 */5 * * *", "7 H H * * *"), zone, hash_name="x")
        for moment in tested.between(start, end):
            yield f"{moment.isoformat()} {note(tested, moment)}"
        yield f"{tested.after(start)} {tested.before(start)} {tested.count(start, end)} {explain(tested)}"
        yield str(warnings(tested, start))
        for text in ("2026-11-01 01:30", "yesterday", "-2h"):
            moment = parse_instant(text, now=start, zone=zone)
            yield moment.isoformat() + relative(moment, now=start)

if "freeze" in sys.argv:
    from freezegun import freeze_time
    with freeze_time("1999-11-30 12:00:00"):
        digest = sha256("\\n".join(answers()).encode())
else:
    digest = sha256("\\n".join(answers()).encode())
print(digest.hexdigest())
"""


def run(*arguments: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def usual() -> str:
    return run(TZ="UTC", PYTHONHASHSEED="1")


@pytest.mark.parametrize(
    "environment",
    [
        {"TZ": "Europe/London", "PYTHONHASHSEED": "2"},
        {"TZ": "Nowhere/Bad", "PYTHONTZPATH": "/nonexistent", "PYTHONHASHSEED": "3"},
    ],
)
def test_the_environment_does_not_matter(usual, environment):
    assert run(**environment) == usual


def test_the_wall_clock_does_not_matter(usual):
    assert run("freeze", TZ="America/New_York") == usual
