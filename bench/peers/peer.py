"""A peer: something that a user would pick instead, and how it is asked to do what is measured."""

from __future__ import annotations

import importlib
import os
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import bench.peers
from bench.peers.install import HOME, installed

PROGRAMS = Path(__file__).parent / "programs"
PYTHON = HOME / "venv" / "bin" / "python"


class NotMeasured(Exception):
    """A peer that is not there, or does not do this."""


@dataclass(frozen=True, slots=True)
class Task:
    """What is asked of a peer. `environment` carries BENCH_* (see programs/stamp.py)."""

    folder: Path
    count: int
    due: float
    child: Path
    command: bool
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Command:
    argv: tuple[str, ...]
    more: Mapping[str, str] = field(default_factory=dict)

    def environment(self, task: Task) -> dict[str, str]:
        return {**task.environment, **self.more}


@dataclass(frozen=True, slots=True)
class Peer:
    """`roles`: what it can do, as functions that prepare files and give the commands to start.

    schema (ends by itself), due, second, idle, work, enqueue, enqueue-batch, latency, first-load, restart.
    `lead(count)`: seconds from its start until it is loaded.
    `records`: it stamps what it has recorded. `most`: tasks that it can take in sensible time. `left`: the query that
    counts the tasks in its database that are not settled."""

    name: str
    package: str
    roles: Mapping[str, Callable[[Task], list[Command]]]
    services: tuple[str, ...] = ()
    whole_minutes: bool = False
    records: bool = True
    says_ready: bool = True
    most: int = 1_000_000
    left: str = ""
    lead: Callable[[int], float] = lambda count: 5 + count * 0.002

    def must_be_there(self) -> None:
        """Raises NotMeasured with the reason."""
        if reason := installed(self.package):
            raise NotMeasured(reason)

    def commands(self, role: str, task: Task) -> list[Command]:
        """Raises NotMeasured with the reason."""
        self.must_be_there()
        if role not in self.roles:
            raise NotMeasured(f"{self.name} does not do this")
        return self.roles[role](task)


def python(program: str, role: str, **more: str) -> Callable[[Task], list[Command]]:
    """Runs one of our programs in the peers' environment."""
    return lambda task: [Command((str(PYTHON), str(PROGRAMS / program), role), more)]


def node(program: str, role: str, **more: str) -> Callable[[Task], list[Command]]:
    """The same with Node.js and the packages that were prepared for it."""
    packages = {"NODE_PATH": str(HOME / "node" / "node_modules")}
    return lambda task: [Command(("node", str(PROGRAMS / program), role), {**packages, **more})]


def base_environment() -> dict[str, str]:
    """What peers see of ours."""
    kept = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "USER")
    return {name: os.environ[name] for name in kept if name in os.environ}


def peers() -> dict[str, Peer]:
    found: dict[str, Peer] = {}
    for module in pkgutil.iter_modules(bench.peers.__path__):
        loaded = importlib.import_module(f"bench.peers.{module.name}")
        found |= {one.name: one for one in getattr(loaded, "PEERS", ())}
    return found
