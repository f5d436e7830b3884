"""`${NAME}`: where it is replaced, and what is said where it is not; secrets that would be kept."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from scheduler.config.check import check
from scheduler.config.problem import Problem
from scheduler.config.sources import Stored
from scheduler.config.variables import looks_secret
from tests.config.texts import problems

NOW = datetime(2026, 1, 15, tzinfo=UTC)
ENVIRON = {"HOST": "h", "API_TOKEN": "t", "USER_INFO": "u:p"}


def told(keys: str, defaults: str = "{}") -> list[Problem]:
    text = f"defaults: {defaults}\njobs:\n  a:\n    {keys}\n"
    report = check(Stored({"jobs.yaml": text}, "jobs.yaml"), NOW, environ=ENVIRON, elsewhere=True)
    assert not report.errors, report.errors
    return list(report.warnings)


@pytest.mark.parametrize(
    ("keys", "column", "said"),
    [
        ("{command: x, env: {A: '${HOME}/x'}}", 27, "nothing is replaced in `env`"),
        ("{command: x, env: {A: $HOME}}", 27, "secrets: {A: {env: NAME}}"),
        ("{command: x, stdin: 'to ${HOST}'}", 25, "`${HOST}` is taken as it is"),
        ("{command: x, description: 'on ${HOST}'}", 31, "`${HOST}` is taken as it is"),
        ("{command: x, runbook: 'https://${HOST}/x'}", 27, "in url, ping_url, workdir, include and with only"),
        ('http: {url: http://x, body: \'{"a": "${HOST}"}\'}', 33, "`${HOST}` is taken as it is"),
    ],
)
def test_where_nothing_is_replaced(keys: str, column: int, said: str) -> None:
    (found,) = told(keys)
    assert (found.line, found.column, found.code) == (4, column, "not-replaced")
    assert said in str(found)


@pytest.mark.parametrize(
    ("keys", "column", "said"),
    [
        ("http: {url: 'https://x/?q=${API_TOKEN}'}", 17, "the value of `${API_TOKEN}` is kept in the database"),
        ("http: {url: 'https://${USER_INFO}@x/'}", 17, "the password before the @"),
        ("http: {url: 'https://me:hunter2@x/'}", 17, "the password before the @"),
        ("http: {url: 'https://x/?a=1&access_token=${HOST}'}", 17, "the parameter `access_token`"),
        ("http: {url: 'https://x/?apiKey=123'}", 17, "headers: {Authorization: {env: NAME"),
        ("http: {url: http://x, headers: {Authorization: Bearer abc}}", 52, "the header `Authorization`"),
        ("http: {url: http://x, headers: {X-Api-Key: abc}}", 48, "{env: NAME} or {file: PATH}"),
        ("call: {function: 'm:f', with: {a: ['${API_TOKEN}']}}", 40, "give it in `secrets`"),
        ("{command: x, env: {DB_PASSWORD: hunter2}}", 37, "write secrets: {DB_PASSWORD: {env: NAME}}"),
    ],
)
def test_a_secret_that_would_be_kept(keys: str, column: int, said: str) -> None:
    (found,) = told(keys)
    assert (found.line, found.column, found.code) == (4, column, "secret-in-text")
    assert said in str(found)
    assert "hunter2" not in str(found)


@pytest.mark.parametrize(
    "keys",
    [
        "http: {url: 'https://${HOST}/?page=${HOST}&key='}",
        "http: {url: 'https://me@x/'}",
        "{command: x, workdir: '/srv/${HOST}'}",
        "call: {function: 'm:f', with: {a: '${HOST}'}}",
        "http: {url: http://x, headers: {Authorization: {env: API_TOKEN, prefix: 'Bearer '}, Accept: text/plain}}",
        "http: {url: http://x, body: '{{ payload.id }} costs $5'}",
        "command: echo ${HOST} $API_TOKEN",
        "{command: x, env: {TOKEN_FILE: run/token, API_KEY: /run/key, SORT_KEY: name, PASSWORD: ''}}",
    ],
)
def test_what_is_fine(keys: str) -> None:
    assert told(keys) == []


def test_what_defaults_say_is_told_there() -> None:
    (found,) = told("command: x", "{stdin: '${HOST}'}")
    assert (found.line, found.path) == (1, ("defaults", "stdin"))
    (found,) = told("{command: x, env: {B: 1}}", "{env: {A: $B}}")
    assert (found.line, found.column, found.path) == (1, 21, ("defaults", "env", "A"))


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("queue: '${Q}'", "`${NAME}` is replaced in url, ping_url, workdir, include and with only"),
        ("schedule: '${WHEN}', timezone: UTC", "`${NAME}` is replaced in"),
        ("schedule: '@daily', timezone: '${ZONE}'", "`${NAME}` is replaced in"),
        ("timeout: '${LONG}'", "`${NAME}` is replaced in"),
        ("secrets: {A: {file: '${CREDENTIALS_DIRECTORY}/x'}}", "nothing is replaced in a secret"),
        ("secrets: {A: {env: '${X}'}}", "nothing is replaced in a secret"),
    ],
)
def test_what_cannot_be_used_says_that_nothing_is_replaced(keys: str, said: str) -> None:
    (found,) = problems(f"jobs: {{a: {{command: x, {keys}}}}}")
    assert said in str(found)


def test_a_header_names_the_way_that_works() -> None:
    (found,) = problems("jobs: {a: {http: {url: http://x, headers: {Authorization: 'Bearer ${API_TOKEN}'}}}}")
    assert "`${API_TOKEN}` is not replaced in headers" in str(found)
    assert "write {env: API_TOKEN, prefix: 'Bearer '}" in str(found)


@pytest.mark.parametrize("name", ["TOKEN", "api_token", "accessToken", "MY_SECRET", "db-password", "KEY", "API_KEY_2"])
def test_names_of_secrets(name: str) -> None:
    assert looks_secret(name)


@pytest.mark.parametrize("name", ["HOST", "KEYCLOAK_HOST", "PAGE", "KEYWORDS"])
def test_other_names(name: str) -> None:
    assert not looks_secret(name)
