"""A small daemon for executors: real supervisor, real files, outcomes as futures."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from scheduler.core.children import Children
from scheduler.core.execution import Launch
from scheduler.core.ids import new_id
from scheduler.core.job import Action, Child, Job, Limits
from scheduler.core.model import Cause, Run, Status
from scheduler.core.outcome import Failed, Outcome, Succeeded
from scheduler.core.secret import Secret
from scheduler.core.source import Compensate
from scheduler.executors.attempts.prepare import Preparation
from scheduler.executors.attempts.records import AttemptRecords
from scheduler.executors.context import Context
from scheduler.executors.registry import create_executors
from tests.executors.listing import ReadingOn

PATIENCE = 30.0
"""Seconds after which something that should happen counts as not happening."""
NODE = "test-node"
CREATED = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


class Going:
    """One attempt under way."""

    def __init__(self, bench: Bench, launch: Launch) -> None:
        self.bench = bench
        self.launch = launch
        self.outcomes: list[Outcome] = []
        self._future: Future[Outcome] = Future()
        self._lock = threading.Lock()

    def done(self, outcome: Outcome) -> None:
        with self._lock:
            self.outcomes.append(outcome)
        if len(self.outcomes) == 1:
            self._future.set_result(outcome)

    def outcome(self) -> Outcome:
        return self._future.result(PATIENCE)

    def succeeded(self) -> Succeeded:
        outcome = self.outcome()
        assert isinstance(outcome, Succeeded), (outcome, self.output())
        return outcome

    def failed(self) -> Failed:
        outcome = self.outcome()
        assert isinstance(outcome, Failed), outcome
        return outcome

    def output(self) -> str:
        outputs = self.bench.records.outputs([(self.launch.run.id, self.launch.attempt)])
        return b"".join(one.head + one.tail for one in outputs).decode("utf-8", "replace")

    def end(self, why: str) -> None:
        self.bench.executors[self.launch.job.action.kind].end(self.launch.run.id, why)

    def until_output(self, text: str) -> None:
        until(lambda: text in self.output(), f"output with {text!r}")


class Bench:
    """Executors of all kinds over one supervisor; `environ` stands for the daemon's environment."""

    def __init__(self, children: Children, state: Path, environ: Mapping[str, str]) -> None:
        self.children = children
        self.state = state
        self.environ = dict(environ)
        self.records = AttemptRecords(state, self.environ)
        self.scanning = ReadingOn()
        self.context = Context(children, self.records, self.environ, 16, str(state), self.scanning)
        self.executors = create_executors(self.context)
        self.preparation = Preparation(self.records, self.environ)

    def job(self, kind: str, options: Mapping[str, Any], **changes: Any) -> Job:
        child = {name: changes.pop(name) for name in ("env", "secrets", "workdir", "user", "stdin") if name in changes}
        limits = changes.pop("limits", Limits())
        changes.setdefault("kill_after", timedelta(seconds=5))
        if kind == "compensate":
            changes["compensate"] = Compensate(options["source"], options["compensator"], options=options["with"])
        return Job(
            name=changes.pop("name", "example"),
            definition_text='{"timezone": "Asia/Shanghai"}',
            fingerprint="f",
            action=Action(kind, options),
            child=Child(**child, limits=limits),
            **changes,
        )

    def start(
        self, kind: str, options: Mapping[str, Any], *, run: Mapping[str, Any] | None = None, **job: Any
    ) -> Going:
        made = self.job(kind, options, **job)
        launch = self.preparation.prepare(make_run(made.name, **(run or {})), made, None)
        assert isinstance(launch, Launch), launch
        going = Going(self, launch)
        self.executors[kind].start(launch, going.done)
        return going

    def run(self, kind: str, options: Mapping[str, Any], **how: Any) -> Outcome:
        return self.start(kind, options, **how).outcome()

    def close(self) -> None:
        for executor in self.executors.values():
            executor.close()
        self.records.close()


def make_run(job: str, **changes: Any) -> Run:
    key = new_id()
    run = Run(
        seq=1,
        id=key,
        job=job,
        key=key,
        cause=Cause.MANUAL,
        status=Status.RUNNING,
        created_at=CREATED,
        queue="default",
        priority=0,
        attempt=1,
        node=NODE,
        fence=7,
    )
    if "payload" in changes:
        changes.setdefault("has_payload", True)
    return replace(run, **changes)


def until(condition: Callable[[], object], what: str) -> None:
    """Waits for a condition of another process."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"waited in vain for {what}"
        threading.Event().wait(0.01)


def alive(marker: str) -> list[int]:
    """Processes that have the marker among their arguments or in their environment."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            text = Path(f"/proc/{name}/cmdline").read_bytes() + Path(f"/proc/{name}/environ").read_bytes()
        except OSError:
            continue
        if marker.encode() in text:
            found.append(int(name))
    return found


def living_in(directory: Path) -> list[int]:
    """Processes whose current directory this is."""
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.readlink(f"/proc/{name}/cwd") == str(directory):
                found.append(int(name))
        except OSError:
            continue
    return found


def secret(env: str, prefix: str = "") -> Secret:
    return Secret(env=env, prefix=prefix)
