"""The core reads no clock, neither when imported nor when asked: its tests pass in 1999 as they do today."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
# Not those that write local times of the second pass of a fold: freezegun's datetime forgets which pass it is.
TESTED = [
    "test_policy.py",
    "test_policy_cases.py",
    "test_policy_overlap.py",
    "test_deadline.py",
    "test_lifecycle.py",
    "test_schedule_cases.py",
    "test_instants.py",
    "test_durations.py",
]
PROGRAM = """
import sys
from datetime import datetime, timezone
import pytest
from freezegun import freeze_time

def scheduler_is_loaded():
    return any(name.partition(".")[0] == "scheduler" for name in sys.modules)

assert not scheduler_is_loaded()
with freeze_time("1999-11-30 12:00:00"):
    result = pytest.main(sys.argv[1:])
    assert datetime.now(timezone.utc).year == 1999
assert scheduler_is_loaded()
sys.exit(result)
"""


def test_the_cores_tests_pass_in_1999() -> None:
    plain = ["-q", "--noconftest", "-p", "no:randomly", "-p", "no:cacheprovider", "-p", "no:xdist", "--timeout=100"]
    plain += ["-p", "no:schemathesis"]  # it takes long to import, and nothing here uses it
    slow = ["-k", "not never_leaves and not season and not without_an_excuse and not drift"]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *plain, *slow, *(str(HERE / name) for name in TESTED)],
        cwd=HERE.parent.parent,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) > 300
