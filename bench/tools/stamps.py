"""Stamps: lines of seconds since 1970, appended by children and by peers to files of one folder."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path

_SOURCE = Path(__file__).with_name("stamp.c")
_WITHOUT_COMPILER = """#!/bin/bash
echo "$EPOCHREALTIME" >> "$1"
"""
"""One process too, but one that takes about a millisecond more to start."""


@cache
def stamp_program(folder: Path) -> Path:
    """The program that a child is: `PROGRAM FILE` appends the time of its start. Compiled once per folder."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "stamp"
    compiler = shutil.which("cc")
    for options in (["-static"], []):
        command = [compiler or "", "-O2", *options, str(_SOURCE), "-o", str(program)]
        if compiler and subprocess.run(command, capture_output=True, check=False).returncode == 0:
            return program
    program.write_text(_WITHOUT_COMPILER)
    program.chmod(0o755)
    return program


def shell_program(folder: Path) -> Path:
    """The same as most people would write it: a shell that becomes `date`. Costs two to three times as much."""
    program = folder / "stamp.sh"
    program.write_text('#!/bin/sh\nexec date +%s.%N >> "$1"\n')
    program.chmod(0o755)
    return program


def read(folder: Path, kind: str) -> list[float]:
    """All whole lines of `kind.*`, sorted."""
    found = []
    for file in folder.glob(f"{kind}.*"):
        found += [float(line) for line in file.read_text().split("\n")[:-1] if line]
    return sorted(found)


def count(folder: Path, kind: str) -> int:
    """How many lines there are."""
    return sum(file.read_bytes().count(b"\n") for file in folder.glob(f"{kind}.*"))
