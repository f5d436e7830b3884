"""check: errors, and warnings about what is commonly regretted."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from scheduler.config.check import Report, check, check_file
from scheduler.config.sources import Stored

NOW = datetime(2026, 1, 15, tzinfo=UTC)


def report(text: str, **environ: str) -> Report:
    return check(Stored({"jobs.yaml": text}, "jobs.yaml"), NOW, environ=environ)


def warnings(keys: str, **environ: str) -> list[str]:
    found = report(f"defaults: {{timezone: Europe/Berlin}}\njobs:\n  a:\n    {keys}\n", **environ)
    assert not found.errors, found.errors
    return [str(one) for one in found.warnings]


@pytest.mark.parametrize(
    ("keys", "column", "said"),
    [
        ("command: nohup x", 14, "`nohup` does not help"),
        ("command: x; setsid y", 14, "`setsid` does not help"),
        ("command: 'x & disown'", 14, "`disown` does not help"),
        ("command: [nohup, x]", 14, "`nohup` does not help"),
        ("command: x &", 14, "a trailing `&`"),
        ("command: echo a #b", 14, "everything behind ` #` is a comment"),
        ("command: [echo, $HOME]", 21, "`$HOME` is not replaced"),
        ("command: [echo, a, '|', wc]", 24, "`|` is an argument like any other"),
        ("{command: x, env: {A: '${HOME}/x'}}", 27, "nothing is replaced in `env`"),
        ("{command: x, secrets: {A: {env: NOPE}}}", 31, "the variable `NOPE` is not defined"),
        ("{command: x, secrets: {A: {file: /nonexistent/x}}}", 31, "the file /nonexistent/x cannot be read"),
        ("http: {url: http://x, headers: {A: {env: NOPE}}}", 40, "the variable `NOPE` is not defined"),
        ("{schedule: '0 0 13 * 5', command: x}", 16, "either is enough"),
        ("{schedule: '30 2 * * *', command: x}", 16, "2026-03-29"),
        ("{schedule: '0 * * * *', command: x, grace: 2h}", 48, "longer than the 1h between occurrences"),
        ("{schedule: '0 3 * * *', command: x, timeout: 3h, retries: [30m]}", 50, "a run may take 6h30m"),
    ],
)
def test_a_warning_at_its_place(keys: str, column: int, said: str) -> None:
    (found,) = [one for one in warnings(keys) if said in one]
    assert found.startswith(f"jobs.yaml:4:{column}: jobs.a")


@pytest.mark.parametrize(
    "keys",
    [
        "command: x && y",
        "command: x > /dev/null 2>&1",
        "command: x &> /dev/null",
        "command: 'echo a #b'",
        "command: [sh, -c, 'echo $HOME | wc']",
        "command: [/bin/bash, -c, 'echo $HOME']",
        "command: [env, A=1, x]",
        "command: echo $HOME",
        "{command: nohup x &, overlap: allow, leftovers: keep}",
        "{command: x, secrets: {A: {env: TOKEN}}}",
        "{schedule: '0 8 * * 1', command: x}",
        "{schedule: '*/5 * * * *', command: x}",
        "{schedule: '0 3 * * *', command: x, timeout: 10m, retries: 3}",
        "{schedule: '0 3 * * *', command: x, timeout: 3h, heartbeat: false}",
    ],
)
def test_no_warning(keys: str) -> None:
    assert warnings(keys, TOKEN="t") == []


def test_a_warning_about_a_default_is_told_at_the_default() -> None:
    text = "defaults:\n  secrets: {A: {env: NOPE}}\njobs:\n  a: {command: x}\n  b: {command: x}\n"
    found = report(text).warnings
    assert [(one.line, one.path[0]) for one in found] == [(2, "defaults")]


def test_strict_counts_warnings_as_errors() -> None:
    found = report("jobs: {a: {command: x, secrets: {A: {env: NOPE}}}}")
    assert found.configuration is not None
    assert found.good()
    assert not found.good(strict=True)
    assert found.warnings[0].job == "a"
    assert report("jobs: {}").good(strict=True)


def test_errors_leave_no_configuration() -> None:
    found = report("jobs: {a: {command: x, timeout: 5}}")
    assert (found.configuration, len(found.errors), found.good()) == (None, 1, False)


def test_a_file_with_its_whole_name_in_the_messages(tmp_path: Path) -> None:
    path = tmp_path / "jobs.yaml"
    path.write_text("jobs: {a: {command: x #y\n}}\n")
    (found,) = check_file(path, NOW).warnings
    assert str(found).startswith(f"{path}:1:21: jobs.a.command: ")
    path.write_text("\ufeffjobs:\r\n  a:\r\n    command: x #y\r\n")
    (found,) = check_file(path, NOW).warnings
    assert found.line == 3


def test_a_relative_secret_file_is_allowed_but_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s").write_text("x")
    (found,) = warnings("{command: x, secrets: {A: {file: s}}}")
    assert "relative to the folder" in found
