"""The rings around a real daemon, each tried by breaking what it watches.

The first one, the service manager's watchdog, has its tests in tests/systemd: it is no longer fed when a loop hangs.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.crash.world import World
from tests.daemon.waiting import wait_for
from tests.rings.healthchecks import Check, Healthchecks, healthchecks

TIMEOUT = 40.0


class Ringed(World):
    """A quick daemon whose own ping and whose job's pings go to a service."""

    def __init__(self, folder: Path, service: Healthchecks) -> None:
        self.service = service
        self.own, self.job = service.check(), service.check()
        secret = folder / "ping_url"
        secret.write_text(service.ping_url(self.own) + "\n")
        super().__init__(folder, "rings", SCHEDULER_PING_URL_FILE=str(secret), SCHEDULER_QUEUES="default")
        self.program = ("tests.rings.quick_daemon", str(folder))
        heartbeat = {"ping_url": service.ping_url(self.job)}
        jobs = {"report": {"command": "echo 12 pages; exit $CODE", "env": {"CODE": "0"}, "heartbeat": heartbeat}}
        self.config.write_text(json.dumps({"jobs": jobs}))

    @contextmanager
    def broken(self, name: str) -> Iterator[None]:
        flag = self.folder / name
        flag.touch()
        try:
            yield
        finally:
            flag.unlink()

    def until(self, check: Check, status: str) -> str:
        """Waits until the service says so of it; the last body that it was told."""
        wait_for(lambda: check.status == status, TIMEOUT, f"{status}, but {self.service.of(check)[-3:]}")
        return self.service.of(check)[-1].body.decode()

    def status(self) -> list[str]:
        return [one["what"] for one in json.loads(self.get("/v1/status")[1])["problems"]]

    def metric(self, name: str) -> float:
        lines = self.get("/metrics")[1].decode().splitlines()
        return next(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{name} "))


@pytest.fixture
def ringed(tmp_path: Path) -> Iterator[Ringed]:
    with healthchecks() as service:
        world = Ringed(tmp_path, service)
        world.start()
        yield world
        assert world.daemon is not None
        if world.daemon.poll() is None:
            world.daemon.send_signal(signal.SIGCONT)
            world.kill()


def test_all_is_well(ringed: Ringed) -> None:
    ringed.until(ringed.own, "up")
    wait_for(lambda: ringed.metric("schedctl_canary_last_success_timestamp_seconds") > 0, TIMEOUT, "a canary")
    ringed.service.wait(len(ringed.service.heard) + 3, ringed.own)
    assert ringed.own.flips == ["new-up"]
    assert ringed.status() == []
    listed = json.loads(ringed.get("/v1/jobs")[1])
    assert [one["name"] for one in listed["jobs"]] == ["report"]
    assert json.loads(ringed.get("/v1/runs")[1])["entries"] == []
    assert json.loads(ringed.get("/v1/runs?job=_canary")[1])["entries"] != []
    assert "_canary" not in ringed.log.read_text()


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("planner", "no turn for 3 s: planner"),
        ("worker", "no turn for 3 s: worker"),
        ("keeper", "no turn for 3 s: keeper"),
        ("stopped", "the canary has not come through"),
    ],
)
def test_a_loop_that_hangs_or_does_nothing_is_told_outside(ringed: Ringed, what: str, says: str) -> None:
    ringed.until(ringed.own, "up")
    with ringed.broken(what):
        ringed.until(ringed.own, "down")
        wait_for(lambda: says in ringed.service.of(ringed.own)[-1].body.decode(), TIMEOUT, says)
        wait_for(lambda: ringed.status() != [], TIMEOUT, "a remark in status")
        ready = ringed.get("/readyz")[0]
    ringed.until(ringed.own, "up")
    assert ready == (200 if what == "stopped" else 503), "the canary does not decide who gets webhooks"
    wait_for(lambda: ringed.status() == [], TIMEOUT, "all is well again")


def test_a_database_that_does_not_answer_is_told_outside(ringed: Ringed) -> None:
    ringed.until(ringed.own, "up")
    with closing(sqlite3.connect(ringed.state / "scheduler.db", isolation_level=None)) as blocking:
        blocking.execute("BEGIN IMMEDIATE")
        ringed.until(ringed.own, "down")
        wait_for(
            lambda: "the database does not answer" in ringed.service.of(ringed.own)[-1].body.decode(),
            TIMEOUT,
            "the database as the reason",
        )
        blocking.execute("ROLLBACK")
    ringed.until(ringed.own, "up")


def test_a_daemon_that_is_stopped_or_dead_is_silent(ringed: Ringed) -> None:
    ringed.until(ringed.own, "up")
    assert ringed.daemon is not None
    os.kill(ringed.daemon.pid, signal.SIGSTOP)
    heard = len(ringed.service.of(ringed.own))
    wait_for(lambda: _stopped(ringed.daemon.pid), TIMEOUT, "stopped")  # type: ignore[union-attr]
    heard = len(ringed.service.of(ringed.own))
    with pytest.raises(AssertionError):
        ringed.service.wait(heard + 2, ringed.own, timeout=4)
    os.kill(ringed.daemon.pid, signal.SIGCONT)
    ringed.service.wait(heard + 2, ringed.own)


def test_pings_of_a_job_survive_the_daemon(ringed: Ringed) -> None:
    """Ended while the service is away, told by the next daemon after kill -9."""
    ringed.service.fall("reset")
    status, answer = ringed.ask("POST", "/v1/jobs/report/runs", {})
    assert status == 202
    run = json.loads(answer)["run_id"]
    wait_for(
        lambda: json.loads(ringed.get(f"/v1/runs/{run}")[1])["status"] == "COMPLETED", TIMEOUT, "a run that is over"
    )
    ringed.kill()
    ringed.service.recover()
    ringed.start()
    ringed.until(ringed.job, "up")
    (heard,) = ringed.service.of(ringed.job)
    assert (heard.kind, heard.rid) == ("success", run)
    assert heard.body.startswith(b"12 pages\n")
    for where in (
        ringed.log.read_text(),
        str(json.loads(ringed.get("/v1/status")[1])),
        ringed.get("/metrics")[1].decode(),
    ):
        assert ringed.own.code not in where


def test_a_target_that_does_not_answer_is_a_remark(ringed: Ringed) -> None:
    ringed.until(ringed.own, "up")
    ringed.service.fall(500)
    wait_for(lambda: any("SCHEDULER_PING_URL" in one for one in ringed.status()), TIMEOUT, "a remark about the ping")
    ringed.service.recover()
    wait_for(lambda: ringed.status() == [], TIMEOUT, "all is well again")


def _stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("T")
