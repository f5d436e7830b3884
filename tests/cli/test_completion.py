"""Tab: verbs, options, jobs and runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.screen import Screen
from tests.faces import Served

SCHEDCTL = [sys.executable, "-c", "from scheduler.cli.main import main; main()"]


def completed(served: Served | None, line: str) -> list[str]:
    """What bash would offer for the last word of `line`."""
    words = f"schedctl {line}"
    environ = {
        **os.environ,
        "SCHEDULER_SOCKET": str(served.socket) if served else "/nowhere",
        "_SCHEDCTL_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
    }
    done = subprocess.run(SCHEDCTL, env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return [one.partition(",")[2] for one in done.stdout.splitlines() if one]


def test_verbs_and_options(served: Served) -> None:
    assert completed(served, "des") == ["describe"]
    assert "--missed" in completed(served, "list --mi")
    assert completed(served, "list -o ya") == ["yaml"]


@pytest.mark.parametrize(
    "line",
    [
        "describe {}",
        "run-now {}",
        "pause quiet {}",
        "resume {}",
        "runs {}",
        "next {}",
        "show {}",
        "audit --job {}",
        "audit {}",
    ],
)
def test_jobs_come_from_the_daemon(served: Served, line: str) -> None:
    assert completed(served, line.format("mi")) == ["minutely"]
    assert completed(served, line.format("nothing")) == []
    assert completed(None, line.format("mi")) == []


def test_sources_come_from_the_file_without_a_daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "jobs.yaml"
    file.write_text("sources: {stripe: {preset: stripe}, shop: {}, git: {}}\njobs: {}\n")
    assert completed(None, f"verify --config {file} s") == ["stripe", "shop"]
    monkeypatch.setenv("SCHEDULER_CONFIG", str(file))
    assert completed(None, "verify g") == ["git"]
    file.write_text("sources: [")
    assert completed(None, "verify g") == []


@pytest.mark.parametrize("verb", ["logs", "cancel", "retry"])
def test_runs_are_offered_too(served: Served, verb: str) -> None:
    served.rig.tick(minutes=1)
    (run,) = served.rig.runs("minutely")
    assert completed(served, f"{verb} {run.id[-8:-4]}") == [run.id[-8:]]
    assert completed(served, f"{verb} mi") == ["minutely"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts(screen: Screen, shell: str) -> None:
    text = "\n".join(screen("completion", shell))
    assert f"_SCHEDCTL_COMPLETE={shell}_complete" in text
    assert "to keep it: " in screen.err
    if shell == "bash":
        assert subprocess.run(["bash", "-n"], input=text, text=True, check=False).returncode == 0


def test_which_shell(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    screen("completion")
    assert (screen.code, "which shell? bash, zsh or fish" in screen.err) == (2, True)
    screen("completion", "tcsh")
    assert screen.code == 2


def test_bash_completes(served: Served, tmp_path: Path) -> None:
    """The script in a real bash, as somebody has it who types."""
    program = tmp_path / "schedctl"
    program.write_text(f"#!/bin/sh\nexec {SCHEDCTL[0]} -c '{SCHEDCTL[2]}' \"$@\"\n")
    program.chmod(0o755)
    lines = (
        'eval "$(schedctl completion bash 2>/dev/null)"\n'
        "COMP_WORDS=(schedctl describe rep); COMP_CWORD=2\n"
        "_schedctl_completion schedctl\necho ${COMPREPLY[@]}\n"
    )
    path = f"{tmp_path}:{os.environ['PATH']}"
    environ = {**os.environ, "SCHEDULER_SOCKET": str(served.socket), "PATH": path}
    done = subprocess.run(["bash", "-c", lines], env=environ, capture_output=True, text=True, check=False)
    assert done.stdout == "report\n", done.stderr
