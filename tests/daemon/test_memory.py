"""What was only needed to read the jobs file does not stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler import memory
from scheduler.config.load import load_file
from scheduler.core.job import Configuration
from scheduler.engine.in_force import InForce, Loaded
from scheduler.files import JobsFile

SAMPLE = Path(__file__).parents[2] / "jobs.yaml"
EVERYTHING = """
defaults: {timezone: Asia/Shanghai, retries: [1m, 5m]}
queues: {llm: {concurrency: 4, rate: 120/m}}
jobs:
  report:
    schedule: ["0 8 * * 1", "H H * * *"]
    command: [python3, seo.py]
    blackouts: [{from: 2026-01-01T00:00, to: 2026-01-02T00:00, reason: holiday}, {schedule: "0 0 * * *", for: 1h}]
    env: {A: b}
    secrets: {TOKEN: {env: TOKEN}, KEY: {file: /run/key}}
    limits: {memory: 1GiB, nice: 5}
    retries: {max: 3, delay: 10s, backoff: 3}
    tags: [weekly]
  asked: {http: {url: "https://example.com/a", headers: {Authorization: {env: AUTH, prefix: "Bearer "}}}, queue: llm}
  called: {call: "m:f", lock: shared, overlap: queue}
  follows: {after: report, command: echo done}
"""


def test_the_jobs_of_a_large_file_are_laid_out_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "jobs.yaml"
    file.write_text(EVERYTHING)
    jobs = dict(load_file(file, environ={}).jobs) | dict(load_file(SAMPLE, environ={}).jobs)
    assert memory.compacted(jobs) is jobs, "few are left where they are"
    monkeypatch.setattr(memory, "FEW", 3)
    compact = memory.compacted(jobs)
    assert compact == jobs
    assert list(compact) == list(jobs)
    assert all(compact[name] is not job for name, job in jobs.items())


def test_what_jobs_have_in_common_lies_there_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "jobs.yaml"
    job = '{schedule: "5 4 * * *", command: ["true"], tags: [nightly]}'
    file.write_text("defaults: {timezone: UTC}\njobs:\n" + "".join(f"  j{n}: {job}\n" for n in range(8)))
    jobs = load_file(file, environ={}).jobs
    monkeypatch.setattr(memory, "FEW", 4)
    compact = memory.compacted(jobs)
    assert compact == jobs
    for part in ("schedule", "watch", "action", "definition_text"):
        assert len({id(getattr(job, part)) for job in jobs.values()}) == 8, "it would prove nothing"
        assert len({id(getattr(job, part)) for job in compact.values()}) <= 8 // 4 + 1


def test_memory_is_tidied_once_when_nothing_has_been_loaded_for_a_while() -> None:
    """Reload after reload must not stop everything each time."""
    now, tidied = [0.0], []
    lull = memory.Lull(lambda: tidied.append(now[0]), lambda: False, lambda: now[0])
    lull.round()
    for now[0] in (1.0, 3.0, 7.0):
        lull.ask()
        lull.round()
    for now[0] in (11.9, 12.0, 13.0, 30.0):
        lull.round()
    assert tidied == [7.0 + memory.QUIET]
    lull.ask()
    now[0] = 36.0
    lull.round()
    assert tidied == [12.0, 36.0]


def test_memory_is_tidied_when_nothing_is_at_work_but_not_never() -> None:
    now, busy, tidied = [0.0], [True], []
    lull = memory.Lull(lambda: tidied.append(now[0]), lambda: busy[0], lambda: now[0])
    lull.ask()
    for now[0] in (6.0, 20.0):
        lull.round()
    assert tidied == []
    busy[0] = False
    lull.round()
    assert tidied == [20.0]
    busy[0] = True
    for now[0] in range(100, 1100, 100):
        lull.ask()
        lull.round()
    assert tidied == [20.0, 100 + memory.LATEST], "asked for again and again it must not wait for ever"


def test_what_was_loaded_meanwhile_stays() -> None:
    in_force = InForce()
    first, copy, newer = (Loaded.of(number, Configuration("", {}, {}, {})) for number in (1, 1, 2))
    in_force.set(first)
    in_force.renew(first, copy)
    assert in_force.current is copy
    in_force.set(newer)
    in_force.renew(copy, first)
    assert in_force.current is newer


def test_warnings_are_there_for_whoever_asks_late(tmp_path: Path) -> None:
    path = tmp_path / "jobs.yaml"
    path.write_text('defaults: {timezone: UTC}\njobs: {a: {schedule: "0 0 13 * 5", command: "sleep 9 &"}}\n')
    file = JobsFile(path)
    configuration = file.load()
    at_once = file.warnings(configuration)
    assert at_once
    other = JobsFile(path)
    again = other.load()
    other.let_go()
    assert other.warnings(again) == at_once
    assert (other.warnings(again, {"a"}), other.warnings(again, {"b"})) == (at_once, ())
    path.write_text("jobs: {")
    third = JobsFile(path)
    assert third.warnings(configuration) == (), "they would be those of another file"
