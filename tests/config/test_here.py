"""check: what a job needs and this machine lacks. Nothing is executed to find out."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from scheduler.config.check import check, check_file
from scheduler.config.codes import HERE
from scheduler.config.problem import Problem
from scheduler.config.sources import Stored

NOW = datetime(2026, 1, 15, tzinfo=UTC)
BOOM = "raise RuntimeError('imported')\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a program, a file that is none, a package, and modules that must not be imported."""
    program = tmp_path / "bin" / "program"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (tmp_path / "bin" / "text").write_text("")
    (tmp_path / "bin" / "text").chmod(0o644)
    package = tmp_path / "reports"
    package.mkdir()
    (package / "__init__.py").write_text(BOOM)
    (package / "weekly.py").write_text(
        BOOM
        + "from os import path as renamed\nimport os.path\nvalue = 1\nasync def later(): ...\n"
        + "class Report:\n    def run(self): inside = 1\n"
        + "if True:\n    def guarded(): ...\ntry:\n    import nothing as tried\nexcept ImportError: tried = None\n"
    )
    (package / "broken.py").write_text("def f(:\n")
    (package / "stars.py").write_text("from os import *\n")
    (package / "asked.py").write_text("def __getattr__(name): ...\n")
    (package / "made.py").write_text("globals()['f'] = print\n")
    (tmp_path / "loose" / "deep").mkdir(parents=True)
    (tmp_path / "loose" / "deep" / "one.py").write_text(f"{BOOM}def run(): ...\n")
    return tmp_path


def told(folder: Path, keys: str, *, elsewhere: bool = False, **environ: str) -> list[Problem]:
    file = folder / "jobs.yaml"
    file.write_text(f"jobs:\n  a:\n    {keys}\n")
    report = check_file(file, NOW, environ=environ, elsewhere=elsewhere)
    assert not report.errors, report.errors
    return [one for one in report.warnings if one.code in HERE]


@pytest.mark.parametrize(
    ("keys", "column", "code", "said"),
    [
        ("command: [no-such-program, x]", 15, "no-program", "there is no program `no-such-program`"),
        ("command: no-such-program --x", 14, "no-program", "jobs search /usr/local/sbin:"),
        ("command: no-such-program; true", 14, "no-program", "no-such-program"),
        ("command: /nonexistent/x > /dev/null", 14, "no-program", "there is no program `/nonexistent/x`"),
        ("command: [bin/none]", 15, "no-program", "there is no program `bin/none`"),
        ("command: [bin/text]", 15, "no-program", "`bin/text` is not executable"),
        ("command: [bin]", 15, "no-program", "there is no program `bin`"),
        ("command: [./bin]", 15, "no-program", "`./bin` is a folder"),
        ("{command: [program], env: {PATH: /nonexistent}}", 16, "no-program", "jobs search /nonexistent"),
        ("{command: [text], env: {PATH: bin}}", 16, "no-program", "`text` is not executable"),
        ("{command: [bin/program], workdir: reports}", 16, "no-program", "`bin/program`"),
        ("{command: 'true', workdir: nowhere}", 32, "no-workdir", "there is no folder"),
        ("{command: 'true', workdir: bin/text}", 32, "no-workdir", "it is no folder"),
        ("{command: [bin/program], workdir: nowhere}", 39, "no-workdir", "there is no folder"),
        ("{call: 'reports.weekly:value', workdir: nowhere}", 45, "no-workdir", "there is no folder"),
        ("{command: 'true', user: nobody-at-all}", 29, "no-user", "there is no user `nobody-at-all`"),
        ("{command: 'true', secrets: {A: {env: NOPE}}}", 36, "no-secret", "the variable `NOPE` is not defined"),
        ("{command: 'true', secrets: {A: {file: /nonexistent/x}}}", 36, "no-secret", "/nonexistent/x cannot be read"),
        ("{command: 'true', secrets: {A: {file: /}}}", 36, "no-secret", "/ is a folder"),
        ("http: {url: http://x, headers: {A: {env: NOPE}}}", 40, "no-secret", "the variable `NOPE` is not defined"),
        ("call: no_such_module:f", 11, "no-function", "there is no module no_such_module"),
        ("call: reports.monthly:f", 11, "no-function", "there is no module reports.monthly"),
        ("call: reports.weekly.x:f", 11, "no-function", "reports.weekly is a module, not a package"),
        ("call: reports.weekly:Reports", 11, "no-function", "did you mean `Report`"),
        ("call: reports.weekly:inside", 11, "no-function", "does not define `inside`"),
        ("call: reports.broken:f", 11, "no-function", "broken.py:1: "),
        ("call: loose.deep.two:run", 11, "no-function", "there is no module loose.deep.two"),
        ("call: loose.deep.one:walk", 11, "no-function", "does not define `walk`"),
        ("call: loose.deep:run", 11, "no-function", "a folder without code"),
        ("call: json:no_such", 11, "no-function", "does not define `no_such`"),
        ("call: {function: 'no_such_module:f', with: {}}", 11, "no-function", "there is no module"),
    ],
)
def test_what_is_not_here(folder: Path, keys: str, column: int, code: str, said: str) -> None:
    (found,) = told(folder, keys)
    assert (found.line, found.column, found.code) == (3, column, code)
    assert said in str(found)
    assert "on this machine" in str(found)
    assert told(folder, keys, elsewhere=True) == []


@pytest.mark.parametrize(
    "keys",
    [
        "command: [bin/program]",
        "command: bin/program; no-such-program",
        "{command: ./program, workdir: bin}",
        "{command: [program], env: {PATH: bin}}",
        "{command: [program], env: {PATH: '/nonexistent::bin'}, workdir: .}",
        "{command: no-such-program, secrets: {PATH: {env: THERE}}}",
        "command: [sh, -c, 'true']",
        "command: if true; then no-such-program; fi",
        "command: A=1 no-such-program",
        "command: $HOME/x",
        "command: ~/x",
        "command: 'f() { true; }; f'",
        "command: '\"/nonexistent/with blank\" x'",
        "command: cd /nonexistent && ls",
        "command: [bin/program, bin/none]",
        "{command: 'true', workdir: reports}",
        "{command: 'true', user: root}",
        "{command: 'true', secrets: {A: {env: THERE}, B: {file: /etc/passwd}}}",
        "{http: {url: 'http://x'}, workdir: nowhere, user: nobody-at-all}",
        "call: reports.weekly:value",
        "call: reports.weekly:later",
        "call: reports.weekly:Report.run",
        "call: reports.weekly:guarded",
        "call: reports.weekly:renamed",
        "call: reports.weekly:os",
        "call: reports.weekly:tried",
        "call: reports.stars:anything",
        "call: reports.asked:anything",
        "call: reports.made:anything",
        "call: loose.deep.one:run",
        "{call: 'deep.one:run', env: {PYTHONPATH: loose}}",
        "{call: 'one:run', workdir: loose/deep}",
        "call: json:dumps",
        "call: os.path:join",
        "call: sys:exit",
        "call: math:floor",
    ],
)
def test_what_is_here_or_cannot_be_told(folder: Path, keys: str) -> None:
    assert told(folder, keys, THERE="x") == []
    assert "reports" not in sys.modules


def test_everything_that_is_missing_is_told_at_once(folder: Path) -> None:
    keys = "{command: [/nonexistent/x], workdir: nowhere, user: nobody-at-all, secrets: {A: {env: X}, B: {file: /n}}}"
    found = told(folder, keys)
    assert [one.code for one in found] == ["no-program", "no-workdir", "no-user", "no-secret", "no-secret"]
    assert len({one.column for one in found}) == 5


def test_a_job_for_another_machine_says_so(folder: Path) -> None:
    assert told(folder, "{command: [no-such-program], acknowledge: [no-program]}") == []


def test_a_text_without_a_folder_is_not_judged_by_relative_paths() -> None:
    text = "jobs:\n  a: {command: [bin/none]}\n  b: {command: [/nonexistent/x]}\n  c: {call: 'x:y'}\n"
    report = check(Stored({"stdin": text}, "stdin"), NOW, environ={})
    assert [one.line for one in report.warnings] == [3]


def test_a_pipe_as_a_secret_does_not_hold_up_the_check(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    assert told(folder, f"{{command: 'true', secrets: {{A: {{file: {folder}/pipe}}}}}}") == []


def test_what_lies_in_a_closed_folder_is_passed_over(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    look = os.stat

    def closed(path: str, **options: object) -> os.stat_result:
        if "shut" in str(path):
            raise PermissionError(13, "Permission denied", path)
        return look(path, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "stat", closed)
    keys = "{command: [shut/none], workdir: shut, env: {PATH: /shut}}"
    assert told(folder, keys) == []
    assert told(folder, "{command: none, env: {PATH: /shut}}") == []
