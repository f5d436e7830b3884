"""The program around the verbs: names, exit codes, what it loads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from scheduler.cli.dial import places
from scheduler.cli.guesses import ALIASES
from scheduler.cli.main import VERBS, main, program
from scheduler.cli.verb import Verb
from tests.cli.typed import Typist
from tests.faces import Served


@pytest.fixture
def schedctl(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Typist:
    monkeypatch.chdir(tmp_path)
    return Typist(capsys, {"XDG_STATE_HOME": str(tmp_path)})


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_has_help_with_examples(schedctl: Typist, name: str) -> None:
    for flag in ("-h", "--help"):
        answer = schedctl(name, flag)
        assert answer.code == 0
        assert f"schedctl {name}" in answer.out
    group = isinstance(program.get_command(click.Context(program), name), click.Group)
    assert group or "Examples:" in answer.out


@pytest.mark.parametrize("name", VERBS)
def test_examples_fit_a_narrow_terminal(name: str) -> None:
    command = program.get_command(click.Context(program), name)
    verbs = command.commands.values() if isinstance(command, click.Group) else [command]
    shown = [f"  {example}" for verb in verbs if isinstance(verb, Verb) for example in verb.examples]
    assert shown
    assert [line for line in shown if len(line) > 80] == []


def test_the_overview_lists_every_verb(schedctl: Typist) -> None:
    text = schedctl("--help").out
    assert all(f"  {name} " in text for name in VERBS)
    assert schedctl().code == 2
    assert schedctl("--version").out.startswith("schedctl ")


@pytest.mark.parametrize(("typed", "meant"), ALIASES.items())
def test_other_programs_words_are_understood(schedctl: Typist, typed: str, meant: str) -> None:
    answer = schedctl(typed, "--help")
    assert answer.code == 0
    assert answer.err == f"schedctl: `{typed}` is called `{meant}` here\n"
    assert f"schedctl {meant}" in answer.out


@pytest.mark.parametrize(("typed", "meant"), [("lst", "list"), ("descibe", "describe"), ("triger", "run-now")])
def test_slips_are_answered_with_what_was_meant(schedctl: Typist, typed: str, meant: str) -> None:
    answer = schedctl(typed)
    assert answer.code == 2
    assert f"did you mean `{meant}`?" in answer.err


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("add", "jobs live in jobs.yaml: change it there"),
        ("rm", "jobs live in jobs.yaml: change it there"),
        ("version", "it is `schedctl --version`"),
        ("drain", "a daemon that gets TERM (systemctl stop schedulerd)"),
        ("watch", "`schedctl list --watch`"),
        ("metrics", "/metrics at the address of SCHEDULER_LISTEN"),
        ("weekly-report", "if it is a job: `schedctl describe weekly-report`"),
    ],
)
def test_first_guesses_are_answered_with_what_to_do(schedctl: Typist, typed: str, told: str) -> None:
    answer = schedctl(typed)
    assert (answer.code, answer.out) == (2, "")
    assert told in answer.err


@pytest.mark.parametrize("typed", ["status", "health"])
def test_the_status_of_one_job_is_its_description(schedctl: Typist, typed: str) -> None:
    answer = schedctl(typed, "backup-db")
    assert (answer.code, answer.out) == (2, "")
    assert "about one job or run: `schedctl describe backup-db`" in answer.err


@pytest.mark.parametrize("group", ["db", "dead-letters", "notify", "token"])
def test_a_group_says_in_whole_sentences_what_there_is(schedctl: Typist, group: str) -> None:
    listed = schedctl(group, "--help").out.partition("Commands:")[2]
    assert listed.strip()
    assert "..." not in listed


def test_help_is_a_verb_too(schedctl: Typist) -> None:
    assert schedctl("help").out == schedctl("--help").out
    assert schedctl("help", "logs").out == schedctl("logs", "--help").out
    assert schedctl("help", "nonsense").code == 2


def test_the_configuration_may_be_named(schedctl: Typist) -> None:
    assert schedctl("config", "check", "--help").out == schedctl("check", "--help").out
    assert schedctl("config").code == 2
    assert schedctl("config", "list").code == 2


def test_an_audit_is_of_one_job_or_of_all(schedctl: Typist) -> None:
    answer = schedctl("audit", "minutely", "--job", "report")
    assert (answer.code, "minutely or report? name one job" in answer.err) == (2, True)


def test_nonsense_is_usage(schedctl: Typist) -> None:
    assert schedctl("xyzzy").code == 2
    assert schedctl("list", "--nope").code == 2
    assert schedctl("describe").code == 2
    assert schedctl("list", "-o", "xml").code == 2


def test_no_daemon_is_exit_3_and_says_where_it_looked(schedctl: Typist, tmp_path: Path) -> None:
    answer = schedctl("list")
    assert (answer.code, answer.out) == (3, "")
    for place in ("var/schedctl.sock", "/run/schedulerd/schedctl.sock", str(tmp_path / "schedulerd/schedctl.sock")):
        assert place in answer.err
    assert "no socket there" in answer.err
    named = schedctl("list", "--socket", "nowhere.sock")
    assert (named.code, named.err.count(".sock")) == (3, 1)


def test_a_stale_socket_is_told_apart(schedctl: Typist) -> None:
    import socket

    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind("stale.sock")
    assert "nobody serves it" in schedctl("list", "--socket", "stale.sock").err


def test_a_named_place_is_the_only_one() -> None:
    assert places("a", {"SCHEDULER_SOCKET": "b"}) == ["a"]
    assert places(None, {"SCHEDULER_SOCKET": "b"}) == ["b"]
    assert places(None, {"HOME": "/home/ana"}) == [
        "var/schedctl.sock",
        "/run/schedulerd/schedctl.sock",
        "/var/lib/schedulerd/schedctl.sock",
        "/home/ana/.local/state/schedulerd/schedctl.sock",
    ]


def test_options_are_taken_in_any_position(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    socket = str(served.socket)
    for arguments in (
        ("-o", "name", "list", "report"),
        ("list", "-o", "name", "report"),
        ("list", "report", "-o", "name"),
        ("--socket", socket, "list", "report", "-o", "name"),
    ):
        assert served.schedctl(*arguments) == 0
        assert capsys.readouterr().out == "report\n"


def test_no_colour_outside_a_terminal(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    served.rig.tick(minutes=1)
    served.schedctl("list")
    assert "\x1b" not in capsys.readouterr().out


def test_what_the_daemon_answers_is_an_exit_code(served: Served) -> None:
    assert served.schedctl("describe", "nobody") == 4
    assert served.schedctl("cancel", "nobody") == 4
    assert served.schedctl("pause", "report", "--until", "2026-01-01") == 1


def loaded_by(*arguments: str, cwd: Path) -> set[str]:
    """The modules that a command line loads."""
    script = (
        "import sys\nfrom scheduler.cli.main import run\n"
        f"run({list(arguments)!r})\nprint(*sys.modules, file=sys.__stdout__)"
    )
    environ = {**os.environ, "SCHEDULER_SOCKET": "nowhere.sock"}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=cwd, env=environ, check=True
    )
    return set(done.stdout.splitlines()[-1].split())


HEAVY = {
    "pydantic",
    "sqlalchemy",
    "croniter",
    "pendulum",
    "httpx",
    "starlette",
    "uvicorn",
    "yaml",
    "structlog",
    "jinja2",
}


@pytest.mark.parametrize(
    "arguments", [("list",), ("status",), ("run-now", "a"), ("logs", "a"), ("describe", "a"), ("next",), ("reload",)]
)
def test_online_verbs_load_little(arguments: tuple[str, ...], tmp_path: Path) -> None:
    assert not HEAVY & loaded_by(*arguments, cwd=tmp_path)


def test_a_reader_that_has_enough_is_no_error(tmp_path: Path) -> None:
    command = (
        f"{sys.executable} -c 'from scheduler.cli.main import main; main()' next --cron '* * * * * *' -n 50000 --json"
    )
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command} | head -1"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "[\n", "")


def test_the_program_can_be_walked_by_click() -> None:
    context = click.Context(program)
    assert program.list_commands(context) == VERBS
    assert program.get_command(context, "nope") is None


def test_a_fault_of_the_program_itself_is_one_clear_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(arguments: object) -> int:
        raise RuntimeError("oops")

    monkeypatch.setattr("scheduler.cli.main.run", broken)
    monkeypatch.delenv("SCHEDCTL_DEBUG", raising=False)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    assert capsys.readouterr().err.startswith("schedctl: internal error: RuntimeError: oops\n")
    monkeypatch.setenv("SCHEDCTL_DEBUG", "1")
    with pytest.raises(RuntimeError):
        main()
