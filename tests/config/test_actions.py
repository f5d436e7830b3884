"""Actions: what may be written, what executors get, and how a kind is added."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, ClassVar

import pytest
from pydantic import Field

from scheduler.config.actions.base import Options
from scheduler.config.actions.registry import discover
from scheduler.config.fields import Url
from scheduler.config.load import load_texts
from scheduler.config.problem import ConfigError
from scheduler.config.schema import schema
from tests.config.texts import load, one, problems

HTTP = "http: {url: https://x.example/y"


@pytest.mark.parametrize(
    ("keys", "kind", "options"),
    [
        ("command: echo hi", "command", {"command": "echo hi"}),
        ("command: [echo, hi]", "command", {"command": ["echo", "hi"]}),
        (f"{HTTP}}}", "http", {"method": "POST", "url": "https://x.example/y"}),
        (
            f"{HTTP}, method: GET, headers: {{A: b, N: 5, S: {{env: T, prefix: 'Bearer '}}}},"
            "body: '{}', expect_status: 204}",
            "http",
            {
                "method": "GET",
                "url": "https://x.example/y",
                "headers": {"A": "b", "N": "5", "S": {"env": "T", "prefix": "Bearer "}},
                "body": "{}",
                "expect_status": [204],
            },
        ),
        ("call: pkg.mod:fn", "call", {"function": "pkg.mod:fn"}),
        (
            "call: {function: 'm:f', with: {a: [1, 2.5, null, true], b: {c: x}}}",
            "call",
            {"function": "m:f", "with": {"a": [1, 2.5, None, True], "b": {"c": "x"}}},
        ),
    ],
)
def test_options(keys: str, kind: str, options: dict[str, Any]) -> None:
    action = one(keys).action
    assert (action.kind, action.options) == (kind, options)


def test_http_has_a_short_timeout_unless_one_is_written() -> None:
    assert one(f"{HTTP}}}").timeout == timedelta(minutes=3)
    assert one(f"{HTTP}}}, timeout: 1h").timeout == timedelta(hours=1)
    assert load(f"defaults: {{timeout: 2h}}\njobs: {{a: {{{HTTP}}}}}}}").jobs["a"].timeout == timedelta(hours=2)


def test_variables_are_replaced_in_url_workdir_and_with_only() -> None:
    env = {"HOST": "h.example", "DIR": "/d"}
    assert one("http: {url: 'https://${HOST}/$$x/$y'}", **env).action.options["url"] == "https://h.example/$x/$y"
    assert one("command: x, workdir: '${DIR}/w'", **env).child.workdir == "/d/w"
    called = one("call: {function: 'm:f', with: {a: ['${HOST}', {b: '${DIR}'}], '${DIR}': 1}}", **env).action.options
    assert called["with"] == {"a": ["h.example", {"b": "/d"}], "${DIR}": 1}
    job = one("command: 'echo ${DIR}', env: {A: '${DIR}'}, description: '${DIR}'", **env)
    assert (job.action.options["command"], job.child.env, job.description) == ("echo ${DIR}", {"A": "${DIR}"}, "${DIR}")


def test_a_value_with_a_variable_must_be_good_after_it_was_replaced() -> None:
    (found,) = problems("jobs: {a: {http: {url: '${URL}'}}}", URL="ftp://x")
    assert "is not a URL" in found.reason


class Ping(Options):
    kind: ClassVar[str] = "ping"
    summary: ClassVar[str] = "Pings."
    default_timeout: ClassVar[timedelta] = timedelta(seconds=7)

    target: Annotated[Url, Field(description="What to ping.")]


def test_a_kind_is_one_class() -> None:
    actions: dict[str, type[Options]] = {**discover(), "ping": Ping}
    files = {"jobs.yaml": "jobs: {a: {ping: {target: 'http://${H}'}}}"}
    job = load_texts(files, "jobs.yaml", actions=actions, environ={"H": "h"}).jobs["a"]
    assert (job.action.kind, job.action.options, job.timeout) == ("ping", {"target": "http://h"}, timedelta(seconds=7))
    with pytest.raises(ConfigError, match="did you mean `target`"):
        load_texts({"j": "jobs: {a: {ping: {tarrget: 'http://h'}}}"}, "j", actions=actions)
    assert "ping" in schema(actions)["properties"]["jobs"]["additionalProperties"]["properties"]


def test_a_kind_that_is_not_there_is_an_unknown_key() -> None:
    with pytest.raises(ConfigError, match="unknown key `http`"):
        load_texts({"j": f"jobs: {{a: {{{HTTP}}}}}}}"}, "j", actions={"command": discover()["command"]})


def test_the_kinds_that_come_with_the_scheduler() -> None:
    assert {"command", "http", "call"} <= discover().keys()
