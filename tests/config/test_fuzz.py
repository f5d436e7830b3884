"""Whatever the bytes: a configuration or a ConfigError, never anything else."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.config.load import load_file, load_texts
from scheduler.config.problem import ConfigError
from scheduler.config.text import decode

SAMPLE = (Path(__file__).parents[2] / "jobs.yaml").read_bytes()
FEATURES = b"""\
include: ["jobs.d/*.yaml"]
x-base: &base {grace: 5m, env: {A: 1, B: 1.10, C: true}}
defaults: {timezone: Europe/Berlin, retries: [1m, 2m]}
queues: {llm: {concurrency: 4, rate: 120/m, burst: 2}}
jobs:
  a: {<<: *base, schedule: ["0 8 * * 1", "*/5 2 * * *"], command: [sh, -c, "x"], queue: llm}
  b: {after: {job: a, on: failed}, http: {url: "http://x/${HOST}", headers: {A: {env: T, prefix: "B "}}, body: "{}"}}
  c: {call: {function: m:f, with: {x: [1, 2.5, null]}}, lock: l, secrets: {S: {file: /s}}, limits: {memory: 1GiB}}
  d: {command: w, schedule: "@daily", blackouts: [{from: 2026-12-24, to: 2026-12-27, reason: r}]}
  e: {command: v, on_event: {source: pay, types: ["a.*"], where: "b == 'c'", order: subject, on_dead: hold}}
  f:
    compensate:
      {source: pay, compensator: http_list, settle: 1m, margin: 9h, with: {url: http://x, cursor: c, bearer: {env: T}}}
sources:
  pay:
    signature: {scheme: hmac, header: X, template: "{timestamp}.{body}", timestamp: "header:T", secrets: [{env: S}]}
    event: {id: id, type: type, occurred_at: at, subject: s}
    response: {status: 200, body: ok}
    fetch_current: {url: "http://x/{{ data.id }}", headers: {A: {env: T}}}
  git: {preset: github, secrets: {file: /s}, rate: 5/s, keep: 50d}
"""


def survives(raw: bytes) -> None:
    try:
        load_texts({"jobs.yaml": decode(raw, "jobs.yaml")}, "jobs.yaml", environ={"HOST": "h"})
    except ConfigError as error:
        problems = error.problems
    else:
        return
    assert problems
    assert all(one.line >= 0 and len(str(one)) < 5_000 for one in problems)


def test_the_texts_that_are_broken_here_are_good() -> None:
    load_texts({"jobs.yaml": SAMPLE.decode()}, "jobs.yaml")
    load_texts({"jobs.yaml": FEATURES.decode()}, "jobs.yaml", environ={"HOST": "h"})


@pytest.mark.parametrize("text", [SAMPLE, FEATURES], ids=["sample", "features"])
def test_every_truncation(text: bytes) -> None:
    for end in range(0, len(text), 3):
        survives(text[:end])


@pytest.mark.parametrize("seed", range(4))
def test_random_damage(seed: int) -> None:
    dice = random.Random(seed)
    signs = b"\n\n \t:-*&!%@`'\"#{}[],|>?<~\0\x80\xff0aZ$"
    for _ in range(400):
        raw = bytearray(dice.choice((SAMPLE[-1500:], FEATURES)))
        for _ in range(dice.randint(1, 6)):
            at = dice.randrange(len(raw))
            match dice.randrange(3):
                case 0:
                    raw[at] = dice.choice(signs)
                case 1:
                    raw[at:at] = bytes([dice.choice(signs)])
                case _:
                    del raw[at : at + dice.randint(1, 20)]
        survives(bytes(raw))


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes(raw: bytes) -> None:
    try:
        text = decode(raw, "jobs.yaml")
    except ConfigError:
        return
    survives(text.encode("utf-8", "surrogatepass"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
KEYS = sorted(
    {"schedule", "timezone", "command", "http", "call", "after", "retries", "blackouts", "env", "secrets"}
    | {"limits", "keep", "log_limit", "tags", "lock", "overlap", "timeout", "grace", "queue", "priority", "workdir"}
    | {"user", "stdin", "description", "enabled", "heartbeat", "severity", "day_match", "catch_up"}
    | {"on_event", "compensate", "preset", "signature", "url", "trust", "tolerance", "event", "max_body", "response"}
    | {"paused", "rate", "burst", "fetch_current"}
)
SHAPES = st.sampled_from(
    [
        {"source": "a", "compensator": "http_list", "with": {"url": 5, "headers": [], "bearer": {"env": None}}},
        {"scheme": "hmac", "header": None, "secrets": [{}], "algorithm": 1.5},
        {"id": "a.b", "type": "[", "occurred_at": "header:", "subject": {}},
        "stripe",
    ]
)


@settings(max_examples=300, deadline=None)
@given(
    st.dictionaries(st.sampled_from(KEYS), JSON | SHAPES, max_size=5),
    st.sampled_from(["jobs", "defaults", "queues", "sources"]),
)
def test_any_values(values: dict[str, object], section: str) -> None:
    import yaml

    top = {"jobs": {}, section: {"a": values} if section != "defaults" else values}
    survives(yaml.safe_dump(top).encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"jobs: {}\xff\n", "not UTF-8 text"),
        (b"\xff\xfej\x00o\x00", "where keys are expected"),
        (b"\xff\xfej\x00o", "not UTF-16"),
        (b" " * (5 << 20), "larger than 4 MiB"),
    ],
)
def test_files_that_are_no_text(tmp_path: Path, raw: bytes, said: str) -> None:
    path = tmp_path / "jobs.yaml"
    path.write_bytes(raw)
    with pytest.raises(ConfigError, match=said):
        load_file(path)


def test_a_folder_that_is_not_there_and_a_file_that_is_a_device() -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load_file("/nonexistent/jobs.yaml")
    with pytest.raises(ConfigError, match="the file is empty"):
        load_file("/dev/null")
