"""`notify`: channels, who is told what by them, and nothing of their secrets anywhere."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from scheduler.config.check import check
from scheduler.config.diff import describe
from scheduler.config.load import load, load_texts
from scheduler.config.problem import ConfigError
from scheduler.config.schema import schema
from scheduler.config.show import show
from scheduler.config.sources import Stored
from scheduler.core.job import Configuration
from scheduler.core.secret import Secret

NOW = datetime(2026, 3, 1, tzinfo=UTC)
TOKEN = "T1JJ3T3L2A1BRTD4JD"
USUAL = ("missed", "failing", "recovered")


def text(notify: Any, job: Any = None, defaults: Any = None) -> str:
    own = {} if job is None else {"notify": job}
    common = {} if defaults is None else {"notify": defaults}
    jobs = {"a": {"command": "true", **own}, "b": {"command": "true"}}
    return json.dumps({"defaults": common, "notify": notify, "jobs": jobs})


def configuration(notify: Any, job: Any = None, defaults: Any = None) -> Configuration:
    return load_texts({"jobs.yaml": text(notify, job, defaults)}, "jobs.yaml", environ={"HOST": "h.example.com"})


def problems(notify: Any, job: Any = None, defaults: Any = None) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        configuration(notify, job, defaults)
    return [str(one) for one in caught.value.problems]


OPS = {"ops": {"url": {"env": "OPS_URL"}}, "mail": {"url": {"file": "/run/mail"}}}


@pytest.mark.parametrize(
    ("written", "means", "shortest"),
    [
        (["ops"], {"ops": USUAL}, ["ops"]),
        ("ops", {"ops": USUAL}, ["ops"]),
        (["ops", "mail"], {"ops": USUAL, "mail": USUAL}, ["ops", "mail"]),
        ({"ops": ["completed", "missed"]}, {"ops": ("completed", "missed")}, {"ops": ["completed", "missed"]}),
        ({"ops": "dead_letter", "mail": None}, {"ops": ("dead_letter",), "mail": USUAL}, None),
        ({"ops": ["missed", "missed"]}, {"ops": ("missed",)}, {"ops": ["missed"]}),
        ([], {}, None),
    ],
)
def test_who_is_told_what(written: Any, means: dict[str, tuple[str, ...]], shortest: Any) -> None:
    job = configuration(OPS, written).jobs["a"]
    assert job.watch.notify == means
    if shortest is not None:
        assert job.definition["notify"] == shortest
    again = configuration(OPS, job.definition.get("notify", []))
    assert again.jobs["a"].fingerprint == job.fingerprint
    if not isinstance(written, dict) or None not in written.values():  # A key without a value is in no schema.
        Draft7Validator(schema()).validate(json.loads(text(OPS, written)))


def test_a_job_replaces_what_defaults_say() -> None:
    found = configuration(OPS, [], ["ops"]).jobs
    assert found["a"].watch.notify == {}
    assert found["b"].watch.notify == {"ops": USUAL}


def test_channels_hold_references_never_secrets() -> None:
    http = {"url": {"env": "HOOK"}, "headers": {"X-A": "b", "Authorization": {"env": "T", "prefix": "Bearer "}}}
    found = configuration({**OPS, "hook": {"http": {**http, "method": "PUT", "body": "{{ title }}"}}}).channels
    assert (found["ops"].kind, found["ops"].options, found["ops"].secrets) == (
        "apprise",
        {},
        {"url": Secret("OPS_URL")},
    )
    hook = found["hook"]
    assert hook.kind == "http"
    assert hook.options == {"method": "PUT", "headers": {"X-A": "b"}, "body": "{{ title }}"}
    assert hook.secrets == {"url": Secret("HOOK"), "headers.Authorization": Secret("T", prefix="Bearer ")}
    assert hook.definition["http"]["headers"]["Authorization"] == {"env": "T", "prefix": "Bearer "}


@pytest.mark.parametrize(
    ("channel", "shown"),
    [
        ({"url": f"slack://{TOKEN}/x"}, "slack://***"),
        (
            {"http": {"url": f"https://u:{TOKEN}@hooks.example.com/{TOKEN}?key={TOKEN}"}},
            "https://hooks.example.com/***",
        ),
        ({"http": {"url": "https://${HOST}/"}}, "https://h.example.com"),
    ],
)
def test_an_address_that_is_written_out_is_shown_nowhere(channel: Any, shown: str) -> None:
    source = Stored({"jobs.yaml": text({"ops": channel}, ["ops"])}, "jobs.yaml")
    loaded = load(source, environ={"HOST": "h.example.com"})
    values = [str(one.value) for one in show(loaded, "ops")]
    assert shown in values
    assert TOKEN not in "".join(values)
    made = loaded.configuration.channels["ops"]
    assert TOKEN not in made.definition_text
    other = json.loads(json.dumps(channel).replace("slack:", "ntfy:").replace("hooks", "other"))
    words = describe(loaded.configuration, configuration({"ops": other}, ["ops"]))
    assert TOKEN not in str(words)


def test_a_difference_that_may_not_be_shown_is_told_nevertheless() -> None:
    old, new = configuration({"ops": {"url": "json://h/a"}}), configuration({"ops": {"url": "json://h/b"}})
    assert describe(old, new) == {"channel ops": ("its address, which is not shown",)}
    assert describe(old, configuration({})) == {"channel ops": ("removed",)}
    assert describe(configuration({}), old) == {"channel ops": ("added",)}
    by_env = configuration({"ops": {"url": {"env": "X"}}})
    assert describe(old, by_env) == {"channel ops": ('url: json://*** → {"env":"X"}',)}
    assert describe(None, old)["channel ops"] == ("added",)


def test_show_tells_where_each_was_written() -> None:
    yaml = "notify:\n  ops:\n    http:\n      url: https://h/x\njobs: {}\n"
    loaded = load(Stored({"jobs.yaml": yaml}, "jobs.yaml"), environ={})
    found = {one.key: (one.job, one.where) for one in show(loaded)}
    assert found == {"http.url": ("channel ops", "jobs.yaml:4"), "http.method": ("channel ops", "(default)")}
    assert show(loaded, "channel ops") == show(loaded, "ops") == show(loaded)


@pytest.mark.parametrize(
    ("notify", "job", "said"),
    [
        ({"ops": {}}, [], "notify.ops: nothing says where to; write url: {env: NAME}"),
        ({"ops": {"url": "json://h", "http": {"url": "http://h"}}}, [], "notify.ops: a channel has one way"),
        ({"ops": {"url": "ops@example.com"}}, [], "notify.ops.url: this is not an address of apprise"),
        ({"ops": {"url": "json://${HOST}"}}, [], "notify.ops.url: nothing is replaced in the address of a channel"),
        ({"ops": {"ulr": "json://h"}}, [], "unknown key `ulr`; did you mean `url`?"),
        ({"ops": {"http": {"url": "ftp://h"}}}, [], "is not a URL"),
        ({"ops": {"http": {"url": "http://h", "body": "{{ x"}}}, [], "line 1 of the template"),
        ({"ops": {"http": {"url": "http://h", "headers": {"Host": "x"}}}}, [], "is set by the scheduler"),
        ({"ops": {"http": {"headers": {}}}}, [], "`url` is missing"),
        ({"no good": {"url": "json://h"}}, [], "is not a good name"),
        (OPS, ["opps"], "jobs.a.notify[0]: there is no channel `opps`; did you mean `ops`? Or add it below `notify`"),
        (OPS, {"ops": ["mised"]}, "`mised` is nothing that people are told of; did you mean `missed`?"),
        (OPS, {"ops": []}, "is empty; write some of missed"),
        (OPS, {"opps": ["missed"]}, "jobs.a.notify.opps: there is no channel `opps`"),
        ({}, ["ops"], "there is no channel `ops`; add it below `notify`"),
        (OPS, [True], "`true` is not a text"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(notify: Any, job: Any, said: str) -> None:
    (found,) = problems(notify, job)
    assert said in found


def test_a_channel_that_defaults_name_and_nobody_has_is_told_once() -> None:
    (found,) = problems(OPS, None, ["opps"])
    assert "defaults.notify[0]: there is no channel `opps`" in found


def test_a_missing_secret_makes_the_channel_red_not_the_file(tmp_path: Path) -> None:
    there = tmp_path / "url"
    there.write_text("json://h")
    notify = {
        "ops": {"url": {"env": "NOT_THERE"}},
        "mail": {"url": {"file": str(there)}},
        "rel": {"url": {"file": "x"}},
    }
    source = Stored({"jobs.yaml": text(notify, ["ops"])}, "jobs.yaml")
    report = check(source, NOW, environ={})
    assert report.good()
    assert not report.good(strict=True)
    said = [str(one) for one in report.warnings]
    assert (
        "notify.ops.url: the secret cannot be read on this machine: the variable `NOT_THERE` is not defined" in said[0]
    )
    assert "notify.rel.url: `x` is relative to the folder in which the daemon was started" in said[1]
    assert len(said) == 2
    assert [str(one) for one in check(source, NOW, environ={}, elsewhere=True).warnings] == said[1:]


@pytest.mark.parametrize(
    ("channel", "warned"),
    [
        ({"url": f"wecombot://{TOKEN}"}, True),
        ({"url": "mailto://me:password@example.com"}, True),
        ({"url": "mailto://mail.example.com?to=ops@example.com"}, False),
        ({"url": "json://a-rather-long-host-name-12.internal/hook"}, False),
        ({"url": "ntfys://ntfy.example.com/topic"}, False),
        ({"http": {"url": f"https://hooks.example.com/services/{TOKEN}"}}, True),
        ({"http": {"url": "https://alerts2024host0000000x.example.com/hook"}}, False),
    ],
)
def test_a_token_that_is_written_out_is_warned_of(channel: Any, warned: bool) -> None:
    report = check(Stored({"jobs.yaml": text({"ops": channel})}, "jobs.yaml"), NOW, environ={})
    assert [TOKEN in str(one) for one in report.warnings] == [False] * warned
    assert all("seems to hold a token" in str(one) for one in report.warnings)


def test_jobs_that_tell_nobody_are_what_they_were() -> None:
    """Their definition, and so their fingerprint, is that of a release that told nobody."""
    assert "notify" not in configuration(OPS).jobs["a"].definition
