"""show: effective values and where each was written."""

from __future__ import annotations

import pytest

from scheduler.config.load import load
from scheduler.config.schema import schema
from scheduler.config.show import show
from scheduler.config.sources import Stored

TEXT = """\
x-base: &base
  grace: 5m
defaults:
  timezone: UTC
  env: {A: 1, B: 2}
jobs:
  a:
    <<: *base
    schedule: "@daily"
    command: x
    env:
      B: 3
  b: {command: y}
"""


def where(job: str) -> dict[str, tuple[object, str]]:
    loaded = load(Stored({"jobs.yaml": TEXT}, "jobs.yaml"))
    return {one.key: (one.value, one.where) for one in show(loaded, job)}


def test_each_value_names_its_line() -> None:
    found = where("a")
    assert found["schedule"] == (["@daily"], "jobs.yaml:9")
    assert found["command"] == ("x", "jobs.yaml:10")
    assert found["grace"] == ("5m", "jobs.yaml:2")
    assert found["timezone"] == ("UTC", "jobs.yaml:4")
    assert found["env.A"] == ("1", "jobs.yaml:5")
    assert found["env.B"] == ("3", "jobs.yaml:12")
    assert found["timeout"] == ("1d", "(default)")
    both = {"without_payload": 0, "with_payload": ["1m", "5m", "30m", "2h"]}
    assert found["retries"] == (both, "(default)")


def test_only_keys_that_the_file_can_have() -> None:
    """What `show` names can be looked up, and written."""
    known = set(schema()["properties"]["jobs"]["additionalProperties"]["properties"])
    assert {key.partition(".")[0] for key in where("a")} <= known
    assert {key.partition(".")[0] for key in where("b")} <= known


def test_all_jobs_in_the_order_of_the_file() -> None:
    loaded = load(Stored({"jobs.yaml": TEXT}, "jobs.yaml"))
    assert list(dict.fromkeys(one.job for one in show(loaded))) == ["a", "b"]


def test_an_unknown_job() -> None:
    with pytest.raises(KeyError):
        where("c")
