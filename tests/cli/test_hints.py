"""Every command that is printed anywhere can be pasted: it is one that schedctl understands."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import click
import pytest

import scheduler
from scheduler.cli.main import program
from scheduler.core.model import FailReason
from scheduler.core.outcome import Failed
from tests.cli.screen import Screen
from tests.cli.typed import Typist

SOURCES = Path(scheduler.__file__).parent
ROOT = SOURCES.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "README.zh-CN.md", *sorted((ROOT / "docs").rglob("*.md"))]
PLACEHOLDER = "X1"
"""What stands for a value that is only known at run time."""
QUOTED = r""" "[^"\n]*" | '[^'\n]*' """
END = r""" $ | [`;,()\n→…|<] | [:.](?=\s|$) | \s\s | \s(?:&&|>)\s """
PROSE = r"(?!(?:does|on|shows|is)\b)"
"""Words that follow the program's name where it is spoken of and not typed."""
COMMAND = re.compile(rf"schedctl\ {PROSE}(?=[a-z-])(?P<rest>(?:{QUOTED} | (?!{END}).)*)", re.VERBOSE)


def commands_in(text: str) -> list[str]:
    """What stands behind `schedctl` up to where it visibly ends: a backtick, a sign, two blanks. `schedctl exec: …` is
    a program that says its name."""
    text = re.sub(r"^schedctl exec:", "", text.replace("$?", "1"))
    return [found["rest"].strip() for found in COMMAND.finditer(text)]


@lru_cache(maxsize=1000)
def understood(command: str) -> str | None:
    """None if schedctl takes it, else what it says against it."""
    try:
        words = shlex.split(command)
        context = click.Context(program)
        name, verb, rest = program.resolve_command(context, words)
        assert verb is not None
        if isinstance(verb, click.Group) and rest:
            name, verb, rest = verb.resolve_command(context, rest)
            assert verb is not None
        with verb.make_context(name, list(rest), parent=context):
            return None
    except click.exceptions.Exit:
        return None
    except (click.ClickException, ValueError) as error:
        # What it will be is not known here, and need not be one of a choice.
        return None if f"'{PLACEHOLDER}'" in str(error) else str(error)


def texts(path: Path) -> Iterator[str]:
    """Every text with a command that the program in this file could show: literals and f-strings, docstrings left
    out."""
    source = path.read_text("utf-8")
    if "schedctl " not in source:
        return
    tree = ast.parse(source)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(one.value) if isinstance(one, ast.Constant) else PLACEHOLDER for one in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings | parts:
            yield re.sub(r"\{\w+\}", PLACEHOLDER, node.value)


def test_every_command_in_the_sources_is_understood() -> None:
    wrong = [
        f"{path.relative_to(SOURCES)}: schedctl {command}: {problem}"
        for path in sorted(SOURCES.rglob("*.py"))
        for text in texts(path)
        for command in commands_in(text)
        if (problem := understood(command)) is not None
    ]
    assert wrong == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_command_in_the_documents_is_understood(path: Path) -> None:
    """Where they speak of a verb, its arguments may be missing."""
    missing = ("Missing parameter", "requires an argument")
    wrong = [
        f"schedctl {command}: {problem}"
        for line in path.read_text("utf-8").splitlines()
        for command in commands_in(re.sub(r"\s+#.*", "", line.replace("\\|", "|")))
        if (problem := understood(command)) is not None and not any(word in problem for word in missing)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("see `schedctl list` and more", ["list"]),
        ("schedctl logs -f X; then schedctl status", ["logs -f X", "status"]),
        ("schedctl check a.yaml && schedctl reload      (nothing runs)", ["check a.yaml", "reload"]),
        ("schedctl schema > jobs.schema.json", ["schema"]),
        ("the socket of schedctl.sock", []),
    ],
)
def test_where_a_command_ends(text: str, commands: list[str]) -> None:
    assert commands_in(text) == commands


@pytest.mark.parametrize("command", ["lst", "list --nope", "describe", "list a b", "pause --for", "db nope"])
def test_what_is_not_understood_is_found(command: str) -> None:
    assert understood(command) is not None


OFFLINE = """
explain '0 0 13 * 5' --tz Europe/Berlin --day-match and
explain 'H 3 * * *' --name 'a b'
next --cron '0 8 * * *' --cron '0 20 * * *' --tz Asia/Tokyo
next --cron 'H 3 * * *'
check
check bad.yaml
check 'with blank.yaml' --strict
show --file jobs.yaml a
show --file jobs.yaml nobody
diff jobs.yaml jobs.yaml
diff jobs.yaml bad.yaml
init
init 'new file.yaml'
import-crontab tab
list --socket nowhere
"""

ONLINE = """
list
list nothing
list --failing
status
describe report
describe minutely
describe nobody
describe {failed}
runs
runs minutely
runs report
runs {done}
runs {failed}
runs --status skipped
logs minutely
logs {failed}
logs report
next
next report
next quiet
audit
audit --since tomorrow
show
show report
nodes
db status
diff
run-now ticket --payload 1
run-now ticket --replace
run-now ticket
cancel ticket
cancel {done}
retry {failed}
retry minutely
pause report --reason x
pause --tag money --for 1h
pause --tag nobody
resume --all
resume report
list --paused
reload
reload --if-hash 0000
"""


def next_steps(text: str) -> list[str]:
    """The commands that a screen offers: its last line, and those in its hints."""
    lines = [line.removeprefix("next: ") for line in text.splitlines() if line.startswith("next: ")]
    assert all(line.startswith("schedctl ") for line in lines), lines
    whole = [line.removeprefix("schedctl ") for line in lines]
    rest = "\n".join(line for line in text.splitlines() if not line.startswith(("next: ", "Usage: ", "Try '")))
    return whole + commands_in(rest)


def wrong_steps(text: str) -> dict[str, str]:
    return {step: problem for step in next_steps(text) if (problem := understood(step)) is not None}


@pytest.mark.parametrize("line", OFFLINE.strip().splitlines())
def test_what_is_offered_offline(
    line: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    good = (
        "defaults: {timezone: UTC}\njobs:\n  a: {schedule: '0 8 * * *', command: [echo], secrets: {X: {env: NO_X}}}\n"
    )
    for name, text in (
        ("jobs.yaml", good),
        ("with blank.yaml", good),
        ("bad.yaml", "jobs: ["),
        ("tab", "5 4 * * * x\n"),
    ):
        (tmp_path / name).write_text(text)
    answer = Typist(capsys)(*shlex.split(line))
    assert wrong_steps(answer.out + answer.err) == {}


def test_what_is_offered_by_a_daemon(screen: Screen) -> None:
    rig = screen.rig
    for _ in range(2):
        rig.tick(minutes=1)
        rig.finish()
    rig.tick(minutes=1)
    rig.finish(Failed(FailReason.EXIT, "exit code 1", exit_code=1))
    done, _, failed = rig.runs("minutely")
    offered: set[str] = set()
    for line in ONLINE.strip().splitlines():
        text = "\n".join(screen(*line.format(done=done.id, failed=failed.id[-8:]).split()))
        text += "\n" + screen.err
        assert wrong_steps(text) == {}, line
        assert next_steps(text) or screen.code in (1, 2), line
        offered |= set(next_steps(text))
    assert len(offered) > 15
    # They also work: looking ones at least change nothing, so each can be typed.
    for step in sorted(offered):
        if shlex.split(step)[0] in ("list", "describe", "runs", "status", "next", "show", "nodes", "diff"):
            screen(*shlex.split(step))
            assert screen.code in (0, 1), step
