"""`schedctl check`: a jobs.yaml, all errors at once; offline."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import click

from scheduler.cli.surface import Surface
from scheduler.cli.text import counted
from scheduler.cli.verb import verb


def jobs_file(surface: Surface, given: str | None) -> str:
    """The file that is meant: the given one, SCHEDULER_CONFIG, or jobs.yaml."""
    return given or surface.environ.get("SCHEDULER_CONFIG") or "jobs.yaml"


@verb("schedctl check", "schedctl check jobs.d --strict", "schedctl check --strict --elsewhere  # in CI")
@click.argument("file", required=False)
@click.option("--strict", is_flag=True, help="Warnings count as errors, missing programs and secrets too.")
@click.option("--elsewhere", is_flag=True, help="It is for another machine: do not look for programs and secrets here.")
def check(surface: Surface, file: str | None, strict: bool, elsewhere: bool) -> int:
    """Checks FILE (default: SCHEDULER_CONFIG, else jobs.yaml; a folder; - for stdin) without a daemon.

    Programs, folders, users, functions and secrets are looked for on this machine; nothing is executed. A job that is
    meant as it is accepts a warning by its code: `acknowledge: [clock-change]`. Exit 1 if the file cannot be used."""
    from scheduler.config.check import check as check_source
    from scheduler.config.sources import Disk, Source, Stored

    name = jobs_file(surface, file)
    source: Source = Disk(name)
    if name == "-":
        raw = sys.stdin.buffer.read()
        source = Stored({"stdin": raw.decode("utf-8", "surrogateescape")}, "stdin")
    report = check_source(source, surface.now(), environ=surface.environ, elsewhere=elsewhere)
    good = report.good(strict=strict)
    data = {
        "good": good,
        "hash": None if report.configuration is None else report.configuration.hash,
        "jobs": None if report.configuration is None else len(report.configuration.jobs),
        "sources": None if report.configuration is None else len(report.configuration.sources),
        "errors": [_problem(one) for one in report.errors],
        "warnings": [_problem(one) for one in report.warnings],
    }
    if surface.structured(data, [str(one) for one in report.errors]):
        return 0 if good else 1
    flags = [*(["--strict"] if strict else []), *(["--elsewhere"] if elsewhere else [])]
    again = shlex.join(["schedctl", "check", *([file] if file else []), *flags])
    for one in report.errors:
        surface.out(str(one))
    for one in report.warnings:
        surface.out(f"warning: {one}")
    if report.configuration is None:
        count = len(report.errors)
        surface.say(f"✗ {counted(count, 'error')}")
        surface.say(f"begin with {_place(report.errors[0])}")
        surface.then(again)
        return 1
    said = counted(len(report.configuration.jobs), "job")
    if report.configuration.sources:
        said += f", {counted(len(report.configuration.sources), 'source')}"
    if report.warnings:
        said += ", " + counted(len(report.warnings), "warning") + ("" if good else " (--strict: each is an error)")
    surface.say(f"{'✓' if good else '✗'} {said}  (hash {report.configuration.hash[:12]})")
    if not good:
        surface.say(f"begin with {_place(report.warnings[0])}: correct it, or acknowledge it in its job")
        surface.then(again)
        return 1
    surface.then(shlex.join(["schedctl", "diff", *([file] if file and Path(file).exists() else [])]))
    return 0


def _problem(problem: Any) -> dict[str, Any]:
    from scheduler.config.problem import path_text

    return {
        "file": problem.file,
        "line": problem.line,
        "column": problem.column,
        "path": path_text(problem.path),
        "code": problem.code,
        "reason": problem.reason,
        "hint": problem.hint,
    }


def _place(problem: Any) -> str:
    return f"{problem.file}:{problem.line}" if problem.line else str(problem.file)
