"""Programs that ask for runs and tell events, and remember what they were promised."""

from __future__ import annotations

import hashlib
import hmac
import json
import random
import threading
import time
from collections.abc import Callable

from tests.chaos.cluster import Cluster
from tests.chaos.load import SECRET, SOURCE
from tests.chaos.log import Request, Told

PATIENCE = 20.0
"""Seconds in which a client insists on an answer; then it gives up, and its request may or may not have been taken."""


class Clients:
    """One thread each asks for runs under a key of its own and tells events, a few a second."""

    def __init__(self, cluster: Cluster, seed: int, pause: tuple[float, float] = (0.1, 0.9)) -> None:
        self._cluster = cluster
        self._log = cluster.log
        self._seed = seed
        self._pause = pause
        self._over = threading.Event()
        self._asked = [job.name for job in cluster.jobs if job.period is None and not job.on_event]
        self._wanting = tuple(job.name for job in cluster.jobs if job.on_event)
        self._threads = [
            threading.Thread(target=self._repeat, args=(one, name), name=name)
            for one, name in ((self._ask, "asks"), (self._ask, "asks too"), (self._tell, "tells"))
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Returns when the last answer is there, or given up."""
        self._over.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()

    def _repeat(self, act: Callable[[random.Random, str], None], name: str) -> None:
        chance = random.Random(f"{self._seed} {name}")
        number = 0
        while not self._over.wait(chance.uniform(*self._pause)):
            number += 1
            try:
                act(chance, f"{name.replace(' ', '-')}-{number}")
            except TimeoutError:
                continue

    def _ask(self, chance: random.Random, key: str) -> None:
        job = chance.choice(self._asked)
        asked = time.time()
        headers = {"Idempotency-Key": key}
        status, answer = self._cluster.ask(
            chance, "POST", f"/v1/jobs/{job}/runs", {"payload": {"key": key}}, headers, PATIENCE
        )
        if status in (200, 202):
            run = str(json.loads(answer)["run_id"])
            self._log.requests.append(Request(job, key, run, "api", asked, time.time()))
        else:
            self._log.complaints.append((asked, f"a request of {job} was answered {status}: {answer.decode()}"))

    def _tell(self, chance: random.Random, key: str) -> None:
        body = json.dumps({"id": key, "type": "sold"}).encode()
        headers = {"X-Signature": hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()}
        asked = time.time()
        status, answer = self._cluster.ask(chance, "POST", f"/webhooks/{SOURCE}", body, headers, PATIENCE)
        if 200 <= status < 300:
            self._log.told.append(Told(key, self._wanting, asked, time.time()))
        else:
            self._log.complaints.append((asked, f"an event was answered {status}: {answer.decode()}"))
