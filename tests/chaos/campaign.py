"""A campaign: load, faults, a lull in which everything ends, and the verdict."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

from tests.chaos import load
from tests.chaos.checker import Verdict, check
from tests.chaos.clients import Clients
from tests.chaos.cluster import Cluster
from tests.chaos.history import History, Problem
from tests.chaos.log import Log
from tests.chaos.machine import Machine
from tests.chaos.nemesis import Nemesis
from tests.chaos.plan import Fault
from tests.crash.world import marked

ENDING = 150.0
"""Seconds after the last instant in which every run has ended: one that was lost twice waits 30 s."""


def campaign(
    folder: Path,
    faults: list[Fault],
    *,
    nodes: list[str],
    seconds: float,
    seed: int,
    lease: float,
    jobs: int,
    punctual: bool = False,
) -> tuple[Verdict, History]:
    """Carries out `faults` for `seconds`, lets everything end, drains the nodes, and judges."""
    log = Log()
    made = load.jobs(jobs)
    clocked = {fault.whom for fault in faults if fault.kind.startswith("clock")}
    cluster = Cluster(folder, nodes, made, lease, log, clocked)
    nemesis, clients, machine = Nemesis(cluster, faults, lease, seed), Clients(cluster, seed), Machine(log)
    chance = random.Random(seed)
    machine.start()
    try:
        cluster.start()
        begun = time.time()
        clients.start()
        nemesis.run(begun)
        _wait_until(begun + seconds)
        clients.stop()
        cluster.reload(chance, quiet=True)
        _resume(cluster, chance, log)
        _wait_ended(cluster, log)
        unaccounted = cluster.audit(chance)
        _leave(cluster, log)
        runs, skips, attempts = cluster.read_ledger()
        survivors = [str(one) for one in marked(cluster.mark)]
    finally:
        clients.stop()
        machine.stop()
        cluster.close()
    stamps = cluster.read_stamps()
    jobs_by_name = {job.name: job for job in made}
    history = History(jobs_by_name, tuple(nodes), lease, time.time(), log, stamps, runs, skips, attempts, survivors)
    verdict = check(history, punctual=punctual)
    verdict.problems += [Problem(one) for one in unaccounted]
    return verdict, history


def _wait_until(real: float) -> None:
    threading.Event().wait(max(0.0, real - time.time()))


def _resume(cluster: Cluster, chance: random.Random, log: Log) -> None:
    """A pause that nobody answered may have been carried out after its end."""
    for path in sorted({path for _, path in log.strays if path.endswith("/pause")}):
        cluster.ask(chance, "POST", path.removesuffix("pause") + "resume", {})


def _wait_ended(cluster: Cluster, log: Log) -> None:
    patience = time.monotonic() + ENDING
    while cluster.unfinished():
        if time.monotonic() > patience:
            log.complaints.append((time.time(), f"runs are unfinished {ENDING:.0f} s after the last instant"))
            return
        threading.Event().wait(0.3)


def _leave(cluster: Cluster, log: Log) -> None:
    """All nodes drain."""
    for node in cluster.nodes.values():
        if node.alive and (code := node.world.stop()) != 0:
            log.complaints.append((time.time(), f"{node.name} left with {code}"))
