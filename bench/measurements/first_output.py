"""How soon schedctl says something."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence

from bench.measurement import Bar, Figures, Row
from bench.peers.install import HOME, installed
from bench.peers.peer import NotMeasured
from bench.session import Session
from bench.tools.daemon import SCHEDCTL
from bench.tools.jobs_file import far_jobs, jobs_file
from bench.tools.percentiles import percentile

ORDER = 13
TITLE = "First output, milliseconds from the start of the process to its first byte (median)"
BARS = tuple(Bar("schedulerd", f"{what} ms", most=150) for what in ("--help", "list"))
_ROUNDS = 11


def run(session: Session) -> Iterator[Row]:
    rounds = session.size(_ROUNDS, 1)
    yield session.row("schedulerd", lambda: measure(session, rounds))
    yield from session.theirs(("cronstable",), lambda name: measure_cronstable(rounds))
    bare = [sys.executable, "-c", "print(1)"]
    yield session.row("a bare Python", lambda: {"--help ms": first_byte(bare, None, rounds)})


def measure(session: Session, rounds: int) -> Figures:
    jobs = far_jobs(20)
    with session.daemon(jobs_file(jobs)) as daemon:
        return {
            f"{words[-1]} ms": first_byte([str(SCHEDCTL), *words], daemon.environment(), rounds)
            for words in (["--help"], ["list"], ["status"])
        }


def measure_cronstable(rounds: int) -> Figures:
    if reason := installed("cronstable"):
        raise NotMeasured(reason)
    return {"--help ms": first_byte([str(HOME / "venv" / "bin" / "cronstable"), "--help"], None, rounds)}


def first_byte(argv: Sequence[str], environment: Mapping[str, str] | None, rounds: int) -> float:
    """The median, after one round that warms the caches."""
    taken = []
    for _ in range(rounds + 1):
        begun = time.monotonic()
        with subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            assert process.stdout is not None
            if not process.stdout.read(1):
                raise RuntimeError(f"{' '.join(argv)} says nothing")
            taken.append(time.monotonic() - begun)
            process.stdout.read()
    return percentile(taken[1:], 0.5) * 1e3
