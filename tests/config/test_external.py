"""Jobs that run elsewhere: what may be said of them, and what means nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from scheduler.config.check import check
from scheduler.config.elsewhere import NOT_OURS
from scheduler.config.sources import Stored
from scheduler.core.job import EXTERNAL
from tests.config.texts import load, one, problems

EXPECTED = "external: true, schedule: 0 2 * * *, timezone: Europe/Paris"
VALUES = {
    "on_event": "{source: s}",
    "after": "b",
    "overlap": "queue",
    "catch_up": "all",
    "catch_up_window": "1d",
    "retries": "[1m]",
    "on_lost": "fail",
    "leftovers": "end",
    "kill_after": "5s",
    "env": "{A: b}",
    "secrets": "{A: {env: B}}",
    "limits": "{nice: 5}",
    "log_limit": "1MiB",
}


def test_it_is_expected_and_has_nothing_that_only_what_runs_here_has() -> None:
    job = one(f"{EXPECTED}, grace: 2h, timeout: 3h, keep: 10, severity: critical")
    assert job.external
    assert (job.action.kind, job.lock, job.timeout) == (EXTERNAL, None, timedelta(hours=3))
    assert job.schedule is not None
    assert job.watch.grace == timedelta(hours=2)
    assert job.definition[EXTERNAL] is True
    assert not NOT_OURS.keys() & job.definition.keys()
    assert one(EXPECTED).timeout == timedelta(hours=24)
    assert not one("command: x").external


@pytest.mark.parametrize("key", NOT_OURS)
def test_what_means_nothing_on_it_is_refused_with_the_reason(key: str) -> None:
    value = VALUES.get(key, "3" if key in ("priority", "catch_up_max") else "x")
    text = f"jobs:\n  b: {{command: x}}\n  a:\n    {EXPECTED.replace(', ', f'{chr(10)}    ')}\n    {key}: {value}\n"
    found = [one for one in problems(text) if "external" in one.reason]
    assert [(one.line, one.path, one.hint) for one in found] == [(7, ("jobs", "a", key), "remove it")]
    assert NOT_OURS[key] in found[0].reason


def test_what_defaults_say_for_others_is_passed_over() -> None:
    written = "{timezone: UTC, retries: 3, queue: q, lock: l, env: {A: b}, catch_up: all}"
    found = load(f"defaults: {written}\nqueues: {{q: {{concurrency: 1}}}}\njobs: {{a: {{{EXPECTED}}}}}").jobs["a"]
    assert found.lock is None
    assert not NOT_OURS.keys() & found.definition.keys()


def test_it_does_one_thing_alone() -> None:
    (found,) = problems(f"jobs: {{a: {{{EXPECTED}, command: x}}}}")
    assert "a job has one action, but here are external and command" in found.reason


@pytest.mark.parametrize("value", ["false", "'yes'", "1", "{}", "[]"])
def test_it_is_true_or_absent(value: str) -> None:
    (found,) = problems(f"jobs: {{a: {{external: {value}}}}}")
    assert (found.reason.endswith("is not true"), found.hint) == (True, "write external: true, or remove the key")


def test_without_a_schedule_nobody_hears_its_silence() -> None:
    accepted = "{external: true, acknowledge: unexpected}"
    text = f"jobs:\n  a: {{external: true}}\n  b: {{{EXPECTED.replace('Europe/Paris', 'UTC')}}}\n  c: {accepted}\n"
    found = check(Stored({"jobs.yaml": text}, "jobs.yaml"), datetime(2026, 3, 2, tzinfo=UTC), environ={})
    assert not found.errors
    assert [(one.job, one.code) for one in found.warnings] == [("a", "unexpected")]
