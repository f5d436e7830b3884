"""The nemesis: does what the plan says, each lane in a thread of its own, and writes down what it did and when."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Sequence

from tests.chaos.clocks import FakeClock
from tests.chaos.cluster import PATIENCE, Cluster
from tests.chaos.log import EVERYBODY, Request, Rest, Sighting, Step, Trouble
from tests.chaos.node import Node
from tests.chaos.plan import DATABASE, PEOPLE, Fault

GRACE = 1.0
"""Seconds beyond a lease after which none of a node's processes may be seen."""


class Nemesis:
    """`begun`: the real time from which the plan counts."""

    def __init__(self, cluster: Cluster, faults: Sequence[Fault], lease: float, seed: int) -> None:
        self._cluster = cluster
        self._log = cluster.log
        self._lease = lease
        self._seed = seed
        self._lanes: dict[str, list[Fault]] = {}
        for fault in faults:
            self._lanes.setdefault(fault.whom, []).append(fault)
        self.failed: list[BaseException] = []

    def run(self, begun: float) -> None:
        """Returns when the whole plan is carried out and everything is well again."""
        lanes = [
            threading.Thread(target=self._lane, args=(faults, begun), name=whom) for whom, faults in self._lanes.items()
        ]
        for lane in lanes:
            lane.start()
        for lane in lanes:
            lane.join()
        if self.failed:
            raise self.failed[0]

    def _lane(self, faults: Sequence[Fault], begun: float) -> None:
        try:
            for number, fault in enumerate(faults):
                _until(begun + fault.at)
                chance = random.Random(f"{self._seed} {fault.whom} {number}")
                if fault.whom == DATABASE:
                    self._of_database(fault)
                elif fault.whom == PEOPLE:
                    self._of_people(fault, chance)
                else:
                    self._of_node(fault, self._cluster.nodes[fault.whom], chance)
        except BaseException as error:
            self.failed.append(error)

    # ------------------------------------------------------------ nodes

    def _of_node(self, fault: Fault, node: Node, chance: random.Random) -> None:
        befall, heal = self._acts(fault, node, chance)
        begin = time.time()
        boot = time.clock_gettime(time.CLOCK_BOOTTIME)
        befall()
        until = begin + fault.lasts
        if fault.kind in _SILENCING and fault.lasts > self._lease + GRACE + 0.2:
            _until(begin + self._lease + GRACE)
            self._look_for_survivors(node, boot)
        _until(until)
        healed = time.time()
        heal()
        if fault.kind == "freeze-node":
            _until(healed + GRACE + 0.2)
            self._look_for_survivors(node, boot)
        self._wait_ready(node)
        self._log.troubles.append(Trouble(fault.kind, node.name, begin, healed, time.time()))

    def _acts(self, fault: Fault, node: Node, chance: random.Random) -> tuple[Callable[[], None], Callable[[], None]]:
        """What is done, and what takes it back."""
        proxy = node.proxy
        if fault.kind in ("kill-supervisor", "stop-supervisor"):
            return _to_supervisor(node, signal.SIGKILL if fault.kind == "kill-supervisor" else signal.SIGSTOP)
        acts: dict[str, tuple[Callable[[], None], Callable[[], None]]] = {
            "kill-daemon": (node.world.kill, node.world.launch),
            "kill-node": (node.kill_everything, node.world.launch),
            "stop-daemon": (lambda: node.send(signal.SIGSTOP), lambda: node.send(signal.SIGCONT)),
            "freeze-node": (node.freeze, node.thaw),
            "stop-in-transaction": (lambda: self._stop_inside(node), lambda: node.send(signal.SIGCONT)),
            "cut-drop": (proxy.drop, proxy.pass_through),
            "cut-reset": (proxy.reset, proxy.pass_through),
            "cut-black-hole": (proxy.black_hole, proxy.pass_through),
            "cut-half-open": (lambda: proxy.half_open(chance.choice(("answers", "requests"))), proxy.pass_through),
            "cut-slow": (lambda: proxy.slow(fault.amount), proxy.pass_through),
            "clock": (lambda: _step(node.clock, fault.amount), lambda: _step(node.clock, -fault.amount)),
            "drain": (lambda: node.send(signal.SIGTERM), lambda: self._replace(node)),
        }
        return acts[fault.kind]

    def _stop_inside(self, node: Node) -> None:
        """Stops the daemon while the server waits for the end of a transaction of it."""
        patience = time.monotonic() + 5
        while True:
            node.send(signal.SIGSTOP)
            if self._cluster.in_transaction(node.name) or time.monotonic() > patience:
                return
            node.send(signal.SIGCONT)
            threading.Event().wait(0.003)

    def _replace(self, node: Node) -> None:
        """Another machine takes its place when it has left: with 0, unless there was no database to tell."""
        assert node.world.daemon is not None
        begin = time.time()
        code = node.world.daemon.wait(PATIENCE)
        away = [one for one in self._log.troubles if one.fault in _AWAY and one.end >= begin]
        if code != 0 and not away and self._cluster.well.is_set():
            self._log.complaints.append((time.time(), f"{node.name} left with {code}"))
        self._log.sightings += [Sighting(node.name, str(one), time.time()) for one in node.processes()]
        node.move()
        self._log.places[node.place] = node.name
        node.world.launch()

    def _look_for_survivors(self, node: Node, boot: float) -> None:
        """What had begun before its node fell silent, and is not stopped itself."""
        found = [one for one in node.processes() if one.began <= boot and one.state not in "Tt"]
        self._log.sightings += [Sighting(node.name, str(one), time.time()) for one in found]

    def _wait_ready(self, node: Node) -> None:
        patience = time.monotonic() + PATIENCE
        while not node.ready:
            if not self._cluster.well.is_set():
                patience = time.monotonic() + PATIENCE
            if not node.alive:
                self._log.complaints.append((time.time(), f"{node.name} ended by itself"))
                node.world.launch()
            if time.monotonic() > patience:
                self._log.complaints.append((time.time(), f"{node.name} is not ready {PATIENCE:.0f} s later"))
                return
            threading.Event().wait(0.1)

    # ------------------------------------------------------------ the database

    def _of_database(self, fault: Fault) -> None:
        postgres = self._cluster.postgres
        begin = time.time()
        self._cluster.well.clear()
        if fault.kind == "clock-database":
            self._step(fault.amount)
            healed = time.time()
            self._log.troubles.append(Trouble(fault.kind, EVERYBODY, begin, healed, healed))
            self._cluster.well.set()
            _until(begin + fault.lasts)
            begin = time.time()
            self._step(-fault.amount)
            healed = time.time()
        else:
            postgres.stop(fault.kind.removeprefix("restart-"))
            _until(begin + fault.lasts)
            healed = time.time()
            postgres.start()
        self._cluster.well.set()
        self._log.troubles.append(Trouble(fault.kind, EVERYBODY, begin, healed, time.time()))

    def _step(self, seconds: float) -> None:
        begin = time.time()
        clock = self._cluster.clock
        assert clock is not None
        clock.step(seconds)
        self._log.steps.append(Step(begin, time.time(), clock.offset))

    # ------------------------------------------------------------ people

    def _of_people(self, fault: Fault, chance: random.Random) -> None:
        if fault.kind == "reload":
            self._cluster.reload(chance)
        elif fault.kind == "pause":
            self._pause(fault, chance)
        else:
            self._run_now(chance)

    def _pause(self, fault: Fault, chance: random.Random) -> None:
        job = chance.choice([job.name for job in self._cluster.jobs if job.period is not None])
        asked = time.time()
        status, answer = self._cluster.ask(chance, "POST", f"/v1/jobs/{job}/pause", {"reason": "chaos"})
        granted = time.time()
        if status != 200:
            self._log.complaints.append((asked, f"a pause of {job} was answered {status}: {answer.decode()}"))
        _until(asked + fault.lasts)
        resume_asked = time.time()
        self._cluster.ask(chance, "POST", f"/v1/jobs/{job}/resume", {})
        self._log.rests.append(Rest(job, asked, granted, resume_asked, time.time()))

    def _run_now(self, chance: random.Random) -> None:
        """Refused while a run of it is unfinished, which is as good."""
        job = chance.choice([job.name for job in self._cluster.jobs if job.period is not None])
        key = f"now-{time.time():.6f}"
        asked = time.time()
        status, answer = self._cluster.ask(chance, "POST", f"/v1/jobs/{job}/runs", {}, {"Idempotency-Key": key})
        if status in (200, 202):
            run = str(json.loads(answer)["run_id"])
            self._log.requests.append(Request(job, key, run, "manual", asked, time.time()))
        elif status != 409:
            self._log.complaints.append((asked, f"run-now of {job} was answered {status}: {answer.decode()}"))


_SILENCING = ("kill-daemon", "stop-daemon", "stop-in-transaction", "cut-drop", "cut-reset", "cut-black-hole")
"""Faults after which a node can renew nothing."""
_AWAY = ("restart-fast", "restart-immediate")


def _to_supervisor(node: Node, number: int) -> tuple[Callable[[], None], Callable[[], None]]:
    """Sends it that; it is over when the daemon has another one."""
    victim = node.world.supervisor()

    def befall() -> None:
        if victim is not None:
            os.kill(victim, number)

    def heal() -> None:
        patience = time.monotonic() + PATIENCE
        while node.alive and node.world.supervisor() in (None, victim) and time.monotonic() < patience:
            threading.Event().wait(0.05)

    return befall, heal


def _step(clock: FakeClock | None, seconds: float) -> None:
    assert clock is not None
    clock.step(seconds)


def _until(real: float) -> None:
    while (left := real - time.time()) > 0:
        threading.Event().wait(left)
