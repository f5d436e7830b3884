"""The tour of the README, typed as it stands there, from a folder as a clone has it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.markdown import ROOT, commands
from tests.until import until

TEXT = (ROOT / "README.md").read_text("utf-8")
TOUR = commands(TEXT)
REFUSED = ("sed -i 's/retries:/retires:/' jobs.yaml && schedctl reload",)
"""They show what happens when something is wrong."""
BIN = Path(sys.executable).parent


class Reader:
    """Somebody with two terminals in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "log"
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("SCHEDULER_", "SCHEDCTL_"))}
        path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
        self.environment = clean | {"PATH": path, "SCHEDULER_LISTEN": "127.0.0.1:0", "SCHEDULER_LOG_FORMAT": "json"}
        self.daemon: subprocess.Popen[bytes] | None = None

    def make_run(self) -> None:
        """What the Makefile does once everything is set up, on a free port."""
        recipe = re.search(r"^run:.*\n\t(.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
        assert recipe is not None
        line = "exec env " + recipe[1].replace("$(BIN)", str(BIN))
        if self.daemon is not None:
            self.daemon.wait(60)
        with self.log.open("wb") as log:
            self.daemon = subprocess.Popen(
                ["/bin/sh", "-c", line], cwd=self.folder, env=self.environment, stdout=log, stderr=log
            )
        until(self._started, 60)

    def _started(self) -> bool:
        text = self.log.read_text()
        assert self.daemon is not None
        assert self.daemon.poll() is None, text
        return '"started"' in text

    def type(self, line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["/bin/sh", "-c", line], cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=60
        )

    def metrics(self) -> str:
        started = (json.loads(line) for line in self.log.read_text().splitlines() if '"started"' in line)
        with urllib.request.urlopen(f"{next(started)['http']}/metrics", timeout=30) as answer:
            return str(answer.read(), "utf-8")


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    shutil.copy(ROOT / "jobs.yaml", tmp_path)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    person = Reader(tmp_path)
    yield person
    if person.daemon is not None and person.daemon.poll() is None:
        person.daemon.kill()
        person.daemon.wait()


@pytest.mark.crash
def test_every_command_does_what_it_is_shown_to_do(reader: Reader) -> None:
    assert TOUR[0] == "make run"
    for line in TOUR:
        if line == "make run":
            reader.make_run()
            continue
        done = reader.type(line)
        assert done.returncode == (line in REFUSED), f"{line}\n{done.stdout}{done.stderr}"
    audit = reader.type("schedctl audit -o json")
    assert audit.returncode == 0
    told = reader.type("schedctl runs weekly-seo-report -o json").stdout
    assert "COMPLETED" in told


@pytest.mark.crash
def test_metrics_that_are_named_are_there(reader: Reader) -> None:
    reader.make_run()
    named = set(re.findall(r"schedctl_\w+", TEXT))
    assert named
    until(lambda: all(f"\n{name}{{" in reader.metrics() for name in named), 60)
