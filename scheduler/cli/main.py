"""The program `schedctl`: finds the verb, runs it, turns what went wrong into one clear message and an exit code."""

from __future__ import annotations

import errno
import io
import os
import select
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click

from scheduler.cli.guesses import ALIASES, instead_of
from scheduler.cli.surface import Surface
from scheduler.cli.text import command_line
from scheduler.cli.verb import SETTINGS, shared_options
from scheduler.core.errors import InvalidInput, NotFound, Refused, SchedulerError, StartError, Unavailable
from scheduler.streams import STDOUT, discard, open_missing_streams

EXIT_CODES = ((InvalidInput, 1), (NotFound, 4), (Refused, 5), (Unavailable, 3), (StartError, 78))
BAD, INTERRUPTED = 1, 130

FAMILIES: dict[str, dict[str, str]] = {
    "What happens": {
        "status": "What is wrong, since when, and what to type",
        "list": "All jobs: next and last run, state",
        "describe": "Everything about one job",
        "next": "Coming times of one job, of all, or of a cron expression",
        "runs": "History, with what was skipped and why",
        "logs": "What a run printed",
        "events": "What sources told, and the runs it made; what was refused",
        "audit": "Compare what should have happened with what did",
        "scans": "Where compensation scans stand, what they found",
    },
    "Acting": {
        "run-now": "Run a job now",
        "cancel": "End a run",
        "retry": "Run a finished run again",
        "dead-letters": "Payloads whose runs gave up: list, retry, discard",
        "pause": "Let a job rest for a while",
        "resume": "End a pause",
        "ack": "Say that a miss is known",
        "backfill": "Run instants of the past after all",
        "replay": "Hand an event out once more",
        "send-test": "Make up an event of a source, and take it as if it had come",
        "scan": "Look now for events whose webhook never came",
    },
    "Jobs that run elsewhere": {
        "ping": "Tell that a run began, ended or failed",
        "exec": "Run a command, and tell how it went",
    },
    "Configuration": {
        "init": "Write a first jobs.yaml",
        "check": "Check a jobs.yaml, all errors at once",
        "diff": "What a reload would change",
        "reload": "Put the daemon's file in force",
        "show": "Jobs with their effective values",
        "verify": "Whether a webhook is signed as it must be, and why not",
        "explain": "A cron expression in words",
        "schema": "The JSON Schema of jobs.yaml",
        "import-crontab": "Turn a crontab into jobs.yaml",
    },
    "Operating": {
        "nodes": "The running daemons",
        "token": "Who may come in over TCP",
        "notify": "Who was told what; try whether a channel works: notify test",
        "db": "The database: its state, backups, a move to another one",
        "completion": "Have the shell complete verbs, jobs and runs",
    },
}
PLACES = {
    "next": "next_times.next_times",
    "list": "list_jobs.list_jobs",
    "exec": "execute.execute",
    "retry": "cancel.retry",
    "resume": "pause.resume",
}
"""Where a verb lives, if not in the file of its name: file.function."""
VERBS = [verb for family in FAMILIES.values() for verb in family]


class Verbs(click.Group):
    """Loads a verb's file when it is asked for; understands what people type in its place."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return VERBS

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in VERBS:
            return None
        plain = name.replace("-", "_")
        module, _, function = PLACES.get(name, f"{plain}.{plain}").partition(".")
        found: click.Command = getattr(import_module(f"scheduler.cli.verbs.{module}"), function)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name == "config" and args[1:2] and args[1] in FAMILIES["Configuration"]:
            args = args[1:]
        elif name == "help":
            args = [*args[1:2], "--help"]
            if args == ["--help"]:
                surface = ctx.ensure_object(Surface)
                surface.out(ctx.get_help())
                ctx.exit()
        elif name in ALIASES:
            meant = ALIASES[name]
            ctx.ensure_object(Surface).say(f"schedctl: `{name}` is called `{meant}` here")
            args = [meant, *args[1:]]
        elif name not in VERBS and not name.startswith("-"):
            raise click.UsageError(f"there is no verb `{name[:60]}`; {instead_of(name, VERBS)}", ctx)
        if args[0] == "status" and len(args) > 1 and not args[1].startswith("-"):
            of_one = command_line("describe", args[1][:60])
            raise click.UsageError(f"`status` is about everything; about one job or run: `{of_one}`", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for family, verbs in FAMILIES.items():
            with formatter.section(family):
                formatter.write_dl(list(verbs.items()))


def _version(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        from importlib.metadata import version

        ctx.ensure_object(Surface).out(f"schedctl {version('schedulerd')}")
        ctx.exit()


program = Verbs(
    "schedctl",
    help="Look after the jobs of a schedulerd.\n\nStart with: schedctl status",
    context_settings=SETTINGS,
    params=[
        *shared_options(),
        click.Option(
            ["--version"], is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version."
        ),
    ],
)


def run(arguments: Sequence[str], surface: Surface | None = None) -> int:
    """Carries out one command line; the exit code."""
    surface = surface or Surface()
    try:
        answer: Any = program.main(list(arguments), prog_name="schedctl", standalone_mode=False, obj=surface)
        sys.stdout.flush()
        return answer if isinstance(answer, int) else 0
    except click.ClickException as error:
        text = io.StringIO()
        error.show(text)
        surface.say(text.getvalue().rstrip("\n"))
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except SystemExit:
        # Click ends like this, with 1, when it notices the closed pipe itself.
        if _nobody_reads():
            discard(STDOUT)
            return 0
        raise
    except SchedulerError as error:
        surface.say(f"schedctl: {error.reason}" + (f"\nhint: {error.hint}" if error.hint else ""))
        return next((code for kind, code in EXIT_CODES if isinstance(error, kind)), BAD)


def _nobody_reads() -> bool:
    """Whether stdout is a pipe whose other end is closed."""
    watched = select.poll()
    watched.register(STDOUT, 0)
    return any(event & select.POLLERR for _, event in watched.poll(0))


def _not_written(error: OSError) -> int:
    """The exit code when the answer could not be written. Whoever closed a pipe has enough: nothing to report."""
    discard(STDOUT)
    if isinstance(error, BrokenPipeError):
        return 0
    if error.filename is not None:
        what = f"{error.filename}: {error.strerror}"
    elif error.errno == errno.EBADF:
        what = "stdout is closed, the answer is lost"
    else:
        what = f"the answer cannot be written: {error.strerror}"
    Surface().say(f"schedctl: {what}")
    return BAD


def main() -> None:
    open_missing_streams(lose_output=False)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = run(sys.argv[1:])
    except OSError as error:
        code = _not_written(error)
    except Exception as error:
        if os.environ.get("SCHEDCTL_DEBUG"):
            raise
        Surface().say(
            f"schedctl: internal error: {type(error).__name__}: {error}\n"
            "hint: restart a daemon of another release; else please report it, with what SCHEDCTL_DEBUG=1 shows"
        )
        code = BAD
    sys.exit(code)
