"""Definitions, fingerprints and hashes: what identifies a job and a configuration."""

from __future__ import annotations

import json

import pytest

from scheduler.config.diff import describe, diff
from scheduler.config.load import load_texts
from scheduler.config.written import size_text
from scheduler.core.job import Configuration, Job
from tests.config.texts import load, one

CRON = "schedule: 0 8 * * 1, timezone: Asia/Shanghai, command: x"
JOBS = [
    CRON,
    "command: [a, b], retries: [1m, 2m], keep: 5, lock: l",
    "http: {url: http://x, headers: {A: {env: T, prefix: p}}, expect_status: [200]}, retries: {max: 3, backoff: 3}",
    "call: {function: 'm:f', with: {a: 1}}, retries: 2",
    "call: 'm:f', enabled: false, tags: [x], limits: {memory: 3MB, nice: -1}",
    "command: y, schedule: ['@daily', '0 8 * * *'], timezone: UTC, day_match: or, heartbeat: false",
    f"{CRON}, heartbeat: {{ping_url: https://hc.example/ping/x}}",
    f"{CRON}, heartbeat: {{ping_url: {{env: HC_URL, prefix: 'https://hc.example/'}}}}",
    f"{CRON}, blackouts: [{{from: 2026-12-24, to: 2026-12-27T12:00, reason: r}}, {{schedule: 0 0 * * 6, for: 2d}}]",
    "command: x, env: {A: 1, B: ''}, secrets: {S: {file: /f}}, workdir: /w, user: u, stdin: \"a\\nb\"",
    "command: x, timeout: 1h30m, grace: 0s, kill_after: 500ms, log_limit: 2000B, priority: 3, description: 'ä: #'",
]


@pytest.mark.parametrize("keys", JOBS)
def test_a_definition_is_a_job_that_could_be_written(keys: str) -> None:
    job = one(keys)
    written = {key: value for key, value in job.definition.items() if key != "payload_retries"}
    if "payload_retries" in job.definition:
        del written["retries"]
    again = load(json.dumps({"jobs": {"a": written}})).jobs["a"]
    assert again == job


@pytest.mark.parametrize("keys", JOBS)
def test_a_definition_is_plain_json(keys: str) -> None:
    definition = one(keys).definition
    assert json.loads(json.dumps(definition)) == definition


@pytest.mark.parametrize(
    ("one_way", "other_way"),
    [
        (CRON, "command: x, timezone: Asia/Shanghai, schedule: [0 8 * * 1]"),
        (f"{CRON}, timeout: 90m", f"{CRON}, timeout: 1h30m"),
        (f"{CRON}, overlap: skip, enabled: true", CRON),
        (f"{CRON}, env: {{A: 1, B: 2}}", f"{CRON}, env: {{B: 2, A: '1'}}"),
        (f"{CRON}, log_limit: 1024KiB", CRON),
    ],
)
def test_what_means_the_same_has_one_fingerprint(one_way: str, other_way: str) -> None:
    assert one(one_way).fingerprint == one(other_way).fingerprint


@pytest.mark.parametrize(
    "more",
    [
        "grace: 2h",
        "timeout: 2h",
        "env: {A: 1}",
        "queue: scans",
        "retries: 1",
        "retries: 0",
        "enabled: false",
        "description: d",
        "day_match: or",
        "tags: [t]",
        "stdin: ''",
        "secrets: {A: {env: B}}",
    ],
)
def test_what_means_something_else_has_another(more: str) -> None:
    assert one(f"{CRON}, {more}").fingerprint != one(CRON).fingerprint


def test_the_fingerprint_depends_on_nothing_else_in_the_file() -> None:
    alone = one(CRON)
    text = "# a comment\nversion: 1\nqueues: {q: {}}\ndefaults: {grace: 1h}\njobs:\n  b: {call: 'm:f'}\n"
    text += f"  a: {{{CRON}}}\n"
    assert load(text).jobs["a"].fingerprint == alone.fingerprint


def test_no_secret_is_ever_in_it() -> None:
    text = "jobs: {a: {command: x, secrets: {P: {env: TOKEN}}}}"
    configuration = load(text, TOKEN="hunter2")
    assert "hunter2" not in repr(configuration)


def test_the_hash_covers_texts_and_values() -> None:
    text = "jobs: {a: {command: x, workdir: '${D}'}}"
    assert load(text, D="/a").hash == load(text, D="/a", OTHER="x").hash
    assert load(text, D="/a").hash != load(text, D="/b").hash
    assert load(text, D="/a").hash != load(text + " ", D="/a").hash
    assert load_texts({"a.yaml": "jobs: {}"}, "a.yaml").hash != load_texts({"b.yaml": "jobs: {}"}, "b.yaml").hash


def changes(old: str, new: str) -> list[str]:
    found = diff(load(f"jobs: {{a: {{{old}}}}}"), load(f"jobs: {{a: {{{new}}}}}")).changed
    return [str(change) for change in found.get("a", ())]


def test_diff_names_keys_with_old_and_new_values() -> None:
    assert changes(CRON, CRON.replace("0 8", "0 9")) == ['schedule: ["0 8 * * 1"] → ["0 9 * * 1"]']
    assert changes("command: x, env: {A: 1, B: 2}", "command: x, env: {A: 1, B: 3, C: 4}") == [
        "env.B: 2 → 3",
        "env.C: (none) → 4",
    ]
    assert changes("command: x", "call: 'm:f'") == ["call: (none) → m:f", "command: x → (none)"]
    assert changes("command: x, timeout: 60m", "timeout: 1h, command: x") == []


def configuration(**jobs: str) -> Configuration:
    return load("jobs:\n" + "".join(f"  {name}: {{{keys}}}\n" for name, keys in jobs.items()) if jobs else "jobs: {}")


def test_diff_of_jobs() -> None:
    old = configuration(a=CRON, b="command: y", c="command: z")
    new = configuration(c="command: z", d="command: y", e="command: w", a=f"{CRON}, grace: 2h")
    found = diff(old, new)
    assert (found.added, found.removed, dict(found.renamed)) == (("d", "e"), ("b",), {"b": "d"})
    assert list(found.changed) == ["a"]
    assert bool(found)
    assert not diff(old, old)


def test_diff_of_queues() -> None:
    old = load("queues: {q: {concurrency: 1}, r: }\njobs: {}")
    new = load("queues: {q: {concurrency: 2, rate: 60/m}}\njobs: {}")
    found = diff(old, new)
    assert [str(change) for change in found.queues["q"]] == ["concurrency: 1 → 2", "rate: (none) → 1/s"]
    assert "r" in found.queues


def test_describe_is_in_words() -> None:
    old, new = configuration(a=CRON, b="command: y"), configuration(c="command: y", a=f"{CRON}, grace: 2h")
    assert describe(None, old) == {"a": ("added: 0 8 * * 1 Asia/Shanghai",), "b": ("added",)}
    words = describe(old, new)
    assert words["a"] == ("grace: 1h → 2h",)
    assert words["c"] == ("added",)
    assert "c is its equal" in words["b"][0]


@pytest.mark.parametrize(("size", "text"), [(0, "0B"), (1, "1B"), (1000, "1000B"), (1024, "1KiB"), (3 << 20, "3MiB")])
def test_sizes_in_text(size: int, text: str) -> None:
    assert size_text(size) == text


def test_a_job_of_one_configuration_equals_that_of_another() -> None:
    first: Job = one(CRON)
    assert first == one(CRON)
    assert hash(first.fingerprint) == hash(one(CRON).fingerprint)
