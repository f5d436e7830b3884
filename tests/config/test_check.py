"""check: errors, and warnings about what is commonly regretted."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from scheduler.config.check import Report, check, check_file
from scheduler.config.problem import Problem
from scheduler.config.sources import Stored
from tests.config.texts import one

NOW = datetime(2026, 1, 15, tzinfo=UTC)


def report(text: str, *, elsewhere: bool = False, **environ: str) -> Report:
    return check(Stored({"jobs.yaml": text}, "jobs.yaml"), NOW, environ=environ, elsewhere=elsewhere)


def remarks(keys: str) -> Sequence[Problem]:
    """What is unwise in the file itself, wherever it is used."""
    text = f"defaults: {{timezone: Europe/Berlin}}\njobs:\n  a:\n    {keys}\n"
    found = report(text, elsewhere=True, TOKEN="t", HOST="h")
    assert not found.errors, found.errors
    return found.warnings


def warnings(keys: str) -> list[str]:
    return [str(one) for one in remarks(keys)]


UNWISE = [
    ("command: nohup x", 14, "detached", "`nohup` does not help"),
    ("command: x; setsid y", 14, "detached", "`setsid` does not help"),
    ("command: 'x & disown'", 14, "detached", "`disown` does not help"),
    ("command: [nohup, x]", 14, "detached", "`nohup` does not help"),
    ("command: x &", 14, "detached", "a trailing `&`"),
    ("command: echo a #b", 14, "comment", "everything behind ` #` is a comment"),
    ("command: [echo, $HOME]", 21, "no-shell", "`$HOME` is not replaced"),
    ("command: [echo, a, '|', wc]", 24, "no-shell", "`|` is an argument like any other"),
    ("{command: x, overlap: allow, leftovers: keep}", 45, "kept", "it ends when schedulerd does"),
    ("{command: x, secrets: {A: {file: s}}}", 31, "relative-secret", "relative to the folder"),
    ("{schedule: '0 0 13 * 5', command: x}", 16, "both-days", "either is enough"),
    ("{schedule: '30 2 * * *', command: x}", 16, "clock-change", "2026-03-29"),
    ("{schedule: '* 2 * * *', command: x, timezone: UTC}", 16, "every-minute", "60 a day"),
    ("{schedule: '30 8 * * * *', command: x, timezone: UTC}", 16, "stray-star", 'write "30 8 * * *"'),
    ("{schedule: '*/7 * * * *', command: x, timezone: UTC}", 16, "uneven-steps", "does not divide"),
    ("{schedule: '0 0 31 * *', command: x, timezone: UTC}", 16, "short-months", "day 31"),
    ("{schedule: ['0 8 * * *', '0 8 * * *'], command: x, timezone: UTC}", 16, "written-twice", "more than once"),
    ("{schedule: '0 8 * * *', command: x, timezone: Etc/GMT+8}", 16, "zone", "its sign is reversed"),
    ("{schedule: '0 * * * *', command: x, grace: 2h}", 48, "grace-long", "longer than the 1h between occurrences"),
    ("{schedule: '0 3 * * *', command: x, timeout: 3h, retries: [30m]}", 50, "grace-short", "a run may take 6h30m"),
]


@pytest.mark.parametrize(("keys", "column", "code", "said"), UNWISE)
def test_a_warning_at_its_place(keys: str, column: int, code: str, said: str) -> None:
    (found,) = [one for one in remarks(keys) if said in str(one)]
    assert str(found).startswith(f"jobs.yaml:4:{column}: jobs.a")
    assert found.code == code
    assert str(found).endswith(f"(or accept it, acknowledge: [{code}])")


@pytest.mark.parametrize(("keys", "column", "code", "said"), UNWISE)
def test_a_warning_that_is_acknowledged_is_not_told(keys: str, column: int, code: str, said: str) -> None:
    inside = keys[1:-1] if keys.startswith("{") else keys.replace(" #b", "")
    if code == "comment":
        return  # the acknowledgement cannot stand in that line
    found = remarks(f"{{{inside}, acknowledge: [{code}]}}")
    assert code not in {one.code for one in found}


def test_a_comment_can_be_acknowledged_as_well() -> None:
    text = "jobs:\n  a:\n    command: echo a #b\n"
    assert [one.code for one in report(text, elsewhere=True).warnings] == ["comment"]
    assert not report(f"{text}    acknowledge: comment\n", elsewhere=True).warnings


def test_other_warnings_of_the_job_are_still_told() -> None:
    keys = "schedule: ['0 0 13 * 5', '30 2 29 3 *'], command: x &"
    assert [one.code for one in remarks(f"{{{keys}}}")] == ["both-days", "clock-change", "detached"]
    assert [one.code for one in remarks(f"{{{keys}, acknowledge: [clock-change]}}")] == ["both-days", "detached"]


def test_defaults_acknowledge_for_every_job_that_says_nothing_itself() -> None:
    text = "defaults: {acknowledge: detached}\njobs:\n  a: {command: x &}\n  b: {command: x &, acknowledge: []}\n"
    assert [one.line for one in report(text, elsewhere=True).warnings] == [4]


def test_a_code_that_does_not_exist_is_refused() -> None:
    (found,) = report("jobs: {a: {command: x, acknowledge: [clock-chang]}}").errors
    assert "did you mean `clock-change`" in str(found)


def test_what_is_acknowledged_is_part_of_the_job() -> None:
    assert one("command: x, acknowledge: detached").definition["acknowledge"] == ["detached"]
    assert "acknowledge" not in one("command: x").definition


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
        "{command: x, secrets: {A: {env: TOKEN}}}",
        "{schedule: '0 8 * * 1', command: x}",
        "{schedule: '*/5 * * * *', command: x}",
        "{schedule: '0 3 * * *', command: x, timeout: 10m, retries: 3}",
        "{schedule: '0 3 * * *', command: x, timeout: 3h, heartbeat: false}",
    ],
)
def test_no_warning(keys: str) -> None:
    assert warnings(keys) == []


def test_a_warning_about_a_default_is_told_at_the_default() -> None:
    text = "defaults:\n  secrets: {A: {env: NOPE}}\njobs:\n  a: {command: 'true'}\n  b: {command: 'true'}\n"
    found = report(text).warnings
    assert [(one.line, one.path[0]) for one in found] == [(2, "defaults")]


def test_strict_counts_warnings_as_errors() -> None:
    found = report("jobs: {a: {command: 'true', secrets: {A: {env: NOPE}}}}")
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
    path.write_text("jobs: {a: {command: echo #y\n}}\n")
    (found,) = check_file(path, NOW).warnings
    assert str(found).startswith(f"{path}:1:21: jobs.a.command: ")
    path.write_text("\ufeffjobs:\r\n  a:\r\n    command: echo #y\r\n")
    (found,) = check_file(path, NOW).warnings
    assert found.line == 3
