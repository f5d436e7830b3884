"""Pings of jobs, from the run to a service that behaves like healthchecks, over a real socket."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import structlog

from scheduler.config.secrets import read_secret
from scheduler.core.model import FailReason, Output
from scheduler.core.outcome import Canceled, Failed, Outcome
from scheduler.core.ping import Standing
from scheduler.core.sign import Sign, Word
from scheduler.engine import pinger as module
from scheduler.engine.pinger import Pinger
from scheduler.engine.targets import Targets
from scheduler.observe.pinging import Sender
from scheduler.store.store import SqlStore
from tests.databases import Place
from tests.engine.doubles import TurnedClock
from tests.engine.rig import Rig, failed, jobs
from tests.rings.healthchecks import Check, Healthchecks, healthchecks

LEASE = timedelta(minutes=10)


@pytest.fixture
def service() -> Iterator[Healthchecks]:
    with healthchecks() as made:
        yield made


class Pinged:
    """A node with a pinger: store, runs, threads and sockets are real, clocks are turned, attempts end when told."""

    def __init__(
        self,
        store: SqlStore,
        urls: Mapping[str, object],
        *,
        timeout: float = 5.0,
        clock: TurnedClock | None = None,
        lease: timedelta | None = None,
        environ: Mapping[str, str] | None = None,
        **keys: Any,
    ) -> None:
        entries = {name: {"heartbeat": {"ping_url": url}, **keys} for name, url in urls.items()}
        self.rig = rig = Rig(store, jobs({**entries, "quiet": {}}), clock, lease=lease)
        self._printed: dict[str, bytes] = {}
        setattr(rig.attempts, "outputs", self._outputs)  # noqa: B010 -- what attempts printed is what the test says
        self.targets = Targets()
        self._answered = threading.Event()
        self.pinger = Pinger(
            rig.store,
            rig.store,
            rig.in_force,
            rig.clock,
            lambda: rig.node,
            Sender("schedulerd/test", timeout),
            lambda secret: read_secret("ping_url", secret, environ or {}),
            self._answered.set,
            self.targets,
        )
        rig.bus.subscribe(self.pinger.hear, "run.started", "run.settled")

    def tick(self, **by: float) -> int:
        self.rig.tick(**by)
        return self.pinger.tick(self.rig.store.now())

    def ping(self, **by: float) -> None:
        """A second of a daemon, and all that comes of it until no ping is under way."""
        self.tick(**by)
        while self.pinger._busy:
            assert self._answered.wait(20)
            self._answered.clear()
            self.pinger.tick(self.rig.store.now())

    def begin(self, name: str = "report") -> str:
        run, _ = self.rig.desk.run_now(name, author="me")
        self.ping()
        assert run.id in self.rig.executor.live
        return run.id

    def end(self, run: str, outcome: Outcome | None = None, printed: str = "") -> None:
        self._printed[run] = printed.encode()
        self.rig.executor.finish(run, outcome)
        self.ping()

    def _outputs(self, runs: Collection[tuple[str, int]]) -> list[Output]:
        return [Output(run, attempt, self._printed.get(run, b""), b"", 0, True) for run, attempt in runs]

    def left(self) -> list[str]:
        """What waits to be told, of each job the first."""
        far = self.rig.store.now().replace(year=2999)
        with self.rig.store.read() as tx:
            return [one.signal for one in tx.outgoing.due(self.rig.node, far, 1_000)]


def kinds(service: Healthchecks, check: Check) -> list[str]:
    return [one.kind for one in service.of(check)]


def test_a_run_that_succeeds_is_started_and_up(store: SqlStore, service: Healthchecks) -> None:
    check = service.check()
    pinged = Pinged(store, {"report": service.ping_url(check)})
    run = pinged.begin()
    assert (check.started, check.status) == (True, "new")
    pinged.end(run, printed="12 pages written\n")
    first, last = service.of(check)
    assert (first.kind, last.kind, check.flips) == ("start", "success", ["new-up"])
    assert first.rid == last.rid == run
    assert check.timed == 1
    assert last.body.startswith(b"12 pages written\n[schedulerd] report (")
    assert b"completed" in last.body
    assert (last.method, last.agent) == ("POST", "schedulerd/test")
    assert pinged.left() == []


@pytest.mark.parametrize(
    ("outcome", "kind", "exitstatus"),
    [
        (failed(), "fail", 1),
        (Failed(FailReason.EXIT, "exit 75", exit_code=75), "fail", 75),
        (Failed(FailReason.TIMEOUT, "ran too long"), "fail", None),
        (Failed(FailReason.SIGNAL, "killed", signal=9), "fail", None),
    ],
)
def test_a_run_that_fails_is_down(
    store: SqlStore, service: Healthchecks, outcome: Outcome, kind: str, exitstatus: int | None
) -> None:
    check = service.check()
    pinged = Pinged(store, {"report": service.ping_url(check)})
    pinged.end(pinged.begin(), outcome)
    last = service.of(check)[-1]
    assert (last.kind, last.exitstatus, check.status, check.started) == (kind, exitstatus, "down", False)


def test_an_attempt_with_another_to_come_changes_no_state(store: SqlStore, service: Healthchecks) -> None:
    check = service.check()
    pinged = Pinged(store, {"report": service.ping_url(check)}, retries=["10s"])
    run = pinged.begin()
    pinged.end(run, failed(), printed="no route\n")
    assert (check.started, check.status, kinds(service, check)) == (True, "new", ["start", "log"])
    assert service.of(check)[-1].body.startswith(b"no route\n")
    assert b"a further one follows" in service.of(check)[-1].body
    pinged.ping(seconds=15)
    pinged.end(run)
    assert (check.started, check.status, kinds(service, check)) == (False, "up", ["start", "log", "success"])


def test_a_canceled_run_is_neither_up_nor_down(store: SqlStore, service: Healthchecks) -> None:
    check = service.check()
    pinged = Pinged(store, {"report": service.ping_url(check)})
    pinged.end(pinged.begin(), Canceled("not today"))
    assert (kinds(service, check), check.flips) == (["start", "log"], [])
    assert b"was canceled" in service.of(check)[-1].body


def test_a_job_without_a_url_costs_nothing(store: SqlStore, service: Healthchecks) -> None:
    pinged = Pinged(store, {"report": service.ping_url(service.check())})
    run, _ = pinged.rig.desk.run_now("quiet", author="me")
    pinged.ping()
    pinged.end(run.id)
    assert service.heard == []
    assert pinged.left() == []


def test_a_slug_is_provisioned(store: SqlStore, service: Healthchecks) -> None:
    pinged = Pinged(store, {"report": f"{service.url}/{service.ping_key}/report?create=1"})
    pinged.end(pinged.begin())
    assert [one.kind for one in service.heard] == ["start", "success"]
    assert {one.check for one in service.heard} == {service.heard[0].check}


def test_a_url_may_be_a_secret(store: SqlStore, service: Healthchecks, tmp_path: Path) -> None:
    check, other = service.check(), service.check()
    (tmp_path / "url").write_text(service.ping_url(other) + "\n")
    urls = {"report": {"env": "HC", "prefix": f"{service.url}/"}, "other": {"file": str(tmp_path / "url")}}
    pinged = Pinged(store, urls, environ={"HC": check.code})
    pinged.end(pinged.begin())
    pinged.end(pinged.begin("other"))
    assert (check.status, other.status) == ("up", "up")
    with store.read() as tx:
        newest = tx.generations.newest()
    assert newest is not None
    assert check.code not in str(newest.files)


def test_a_secret_that_is_missing_is_told_and_looked_for_again(store: SqlStore, service: Healthchecks) -> None:
    environ: dict[str, str] = {}
    pinged = Pinged(store, {"report": {"env": "HC"}}, environ=environ)
    check = service.check()
    # The mapping is looked at when a ping is sent; an empty one would have been replaced.
    pinged.pinger._resolve = lambda secret: read_secret("ping_url", secret, environ)
    pinged.end(pinged.begin())
    standing = pinged.targets.standings(frozenset({"report"}))["report"]
    assert "no variable HC" in standing.reason
    environ["HC"] = service.ping_url(check)
    pinged.ping(seconds=30)
    assert check.status == "up"


@pytest.mark.parametrize("trouble", ["reset", 500, 429, 404])
def test_an_end_is_told_however_long_that_takes(store: SqlStore, service: Healthchecks, trouble: str | int) -> None:
    check = service.check()
    pinged = Pinged(store, {"report": service.ping_url(check)})
    service.fall(trouble)
    pinged.end(pinged.begin())
    for _ in range(60):
        pinged.ping(minutes=1)
    assert service.heard == []
    assert pinged.left() == ["success"]
    assert 12 <= service.refused <= 30  # Retried with growing waits, at most five minutes long.
    service.recover()
    pinged.ping(minutes=5)
    assert kinds(service, check) == ["success"]
    assert pinged.left() == []
    assert b"completed" in service.of(check)[0].body


def test_what_waited_comes_in_its_order(store: SqlStore, service: Healthchecks) -> None:
    check = service.check()
    pinged = Pinged(store, {"report": service.ping_url(check)})
    service.fall(503)
    ids = []
    for outcome in (None, failed(), None, failed()):
        ids.append(pinged.begin())
        pinged.end(ids[-1], outcome)
        pinged.ping(minutes=2)
    service.recover()
    pinged.ping(minutes=5)
    assert [(one.kind, one.rid) for one in service.of(check)] == list(
        zip(("success", "fail", "success", "fail"), ids, strict=True)
    )
    assert check.flips == ["new-up", "up-down", "down-up", "up-down"]


def test_a_restart_loses_no_end(store: SqlStore, service: Healthchecks) -> None:
    check = service.check()
    pinged = Pinged(store, {"report": service.ping_url(check)})
    service.fall("reset")
    run = pinged.begin()
    pinged.end(run)
    pinged.rig.turn(minutes=30)
    service.recover()
    later = Pinged(store, {"report": service.ping_url(check)}, clock=pinged.rig.clock)
    later.ping(seconds=1)
    assert [(one.kind, one.rid) for one in service.of(check)] == [("success", run)]


def test_an_end_that_was_sent_and_not_written_down_is_sent_again(store: SqlStore, service: Healthchecks) -> None:
    """The daemon died between the answer and its note of it."""
    check = service.check()
    pinged = Pinged(store, {"report": service.ping_url(check)})
    run = pinged.begin()
    pinged.rig.executor.finish(run)
    pinged.tick()
    service.wait(2, check)
    pinged.rig.turn(seconds=90)
    later = Pinged(store, {"report": service.ping_url(check)}, clock=pinged.rig.clock)
    later.ping()
    assert kinds(service, check) == ["start", "success"]  # It is this long the former's to send.
    later.ping(seconds=60)
    assert kinds(service, check) == ["start", "success", "success"]
    assert later.left() == []


def test_the_run_of_a_lost_node_is_told_by_another(store: SqlStore, service: Healthchecks) -> None:
    check = service.check()
    pinged = Pinged(store, {"report": service.ping_url(check)}, on_lost="fail")
    run = pinged.begin()
    later = Pinged(store, {"report": service.ping_url(check)}, on_lost="fail", clock=pinged.rig.clock)
    with store.begin() as tx:
        tx.nodes.mark(pinged.rig.node, "stopped", later.rig.store.now())
    later.ping(seconds=1)
    assert [(one.kind, one.rid) for one in service.of(check)] == [("start", run), ("fail", run)]


def test_a_silent_service_holds_up_neither_runs_nor_other_services(store: SqlStore, service: Healthchecks) -> None:
    with healthchecks() as hung:
        check, silent = service.check(), hung.check()
        hung.fall("silent")
        pinged = Pinged(store, {"report": service.ping_url(check), "stuck": hung.ping_url(silent)}, timeout=60)
        stuck, _ = pinged.rig.desk.run_now("stuck", author="me")
        pinged.tick()
        hung.wait_refused(1)
        report, _ = pinged.rig.desk.run_now("report", author="me")
        pinged.tick()
        service.wait(1, check)
        for run in (stuck, report):
            pinged.rig.executor.finish(run.id)
        while check.status == "new":
            pinged.tick()
            pinged._answered.wait(0.05)
        assert [str(pinged.rig.run(run.id).status) for run in (stuck, report)] == ["COMPLETED", "COMPLETED"]
        assert hung.heard == []
        hung.recover()
        pinged.ping(seconds=30)
        assert kinds(hung, silent) == ["success"]


def test_no_more_pings_than_threads_are_under_way(store: SqlStore) -> None:
    with healthchecks() as hung:
        hung.fall("silent")
        names = [f"job-{number}" for number in range(module.THREADS + 5)]
        pinged = Pinged(store, {name: hung.ping_url(hung.check()) for name in names}, timeout=60)
        for name in names:
            pinged.rig.desk.run_now(name, author="me")
        for _ in range(3):
            pinged.tick(seconds=1)
        hung.wait_refused(module.THREADS)
        assert (len(pinged.pinger._busy), hung.refused) == (module.THREADS, module.THREADS)


def test_a_start_is_never_told_after_its_end(store: SqlStore, service: Healthchecks) -> None:
    check = service.check()
    pinged = Pinged(store, {"report": service.ping_url(check)})
    run, _ = pinged.rig.desk.run_now("report", author="me")
    pinged.rig.tick()
    pinged.rig.executor.finish(run.id)
    pinged.rig.tick()
    pinged.rig.bus.publish("run.started", run=run.id, job="report", attempt=1, delay=None)
    pinged.ping()
    assert kinds(service, check) == ["success"]
    assert not check.started


def test_an_old_start_is_not_told(store: SqlStore, service: Healthchecks) -> None:
    check = service.check()
    pinged = Pinged(store, {"report": service.ping_url(check)})
    service.fall("reset")
    pinged.begin()
    service.recover()
    pinged.ping(seconds=module.STALE + 1)
    assert service.heard == []


def test_a_start_that_was_not_taken_is_tried_once_more(store: SqlStore, service: Healthchecks) -> None:
    check = service.check()
    pinged = Pinged(store, {"report": service.ping_url(check)})
    service.fall("reset")
    pinged.begin()
    service.recover()
    pinged.ping(seconds=2)
    assert service.heard == []
    pinged.ping(seconds=4)
    assert kinds(service, check) == ["start"]


def test_the_service_says_how_long_a_body_may_be(store: SqlStore) -> None:
    with healthchecks(limit=200) as service:
        check = service.check()
        pinged = Pinged(store, {"report": service.ping_url(check)})
        pinged.end(pinged.begin(), printed="a line\n" * 500)
        body = service.of(check)[-1].body
        assert len(body) <= 200
        assert b"completed" in body
        assert body.startswith(b"a line\n")


def test_what_cannot_be_told_for_a_day_is_given_up(store: SqlStore, service: Healthchecks) -> None:
    pinged = Pinged(store, {"report": service.ping_url(service.check())})
    service.fall("reset")
    pinged.end(pinged.begin())
    pinged.ping(hours=23)
    assert pinged.left() == ["success"]
    pinged.ping(hours=2)
    pinged.ping(minutes=2)
    assert pinged.left() == []


def test_only_the_newest_of_a_job_are_kept(
    store: SqlStore, service: Healthchecks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST", 3)
    check = service.check()
    pinged = Pinged(store, {"report": service.ping_url(check)})
    service.fall("reset")
    ids = []
    for _ in range(6):
        ids.append(pinged.begin())
        pinged.end(ids[-1])
    pinged.ping(minutes=2)
    service.recover()
    pinged.ping(minutes=5)
    assert [one.rid for one in service.of(check)] == ids[-3:]


def test_a_job_that_lost_its_url_is_told_no_more(store: SqlStore, service: Healthchecks) -> None:
    pinged = Pinged(store, {"report": service.ping_url(service.check())})
    service.fall("reset")
    pinged.end(pinged.begin())
    pinged.ping(minutes=4)
    assert len(pinged.targets.remarks(pinged.rig.store.now())) == 1
    pinged.rig.reload(jobs({"report": {}, "quiet": {}}))
    service.recover()
    pinged.ping(minutes=10)
    assert service.heard == []
    assert pinged.left() == []
    assert pinged.targets.remarks(pinged.rig.store.now()) == []


def test_a_target_that_is_not_reached_is_a_remark_and_says_no_url(store: SqlStore, service: Healthchecks) -> None:
    check = service.check()
    pinged = Pinged(store, {"report": service.ping_url(check)})
    service.fall(500)
    pinged.end(pinged.begin())
    assert pinged.targets.remarks(pinged.rig.store.now()) == []
    pinged.ping(minutes=4)
    (remark,) = pinged.targets.remarks(pinged.rig.store.now())
    assert (remark.about, remark.command) == ("ping", "schedctl show report")
    assert "job report" in remark.what
    assert "answered 500: busy" in remark.what
    assert check.code not in remark.what
    service.recover()
    pinged.ping(minutes=6)
    assert pinged.targets.remarks(pinged.rig.store.now()) == []
    standing = pinged.targets.standings(frozenset({"report"}))["report"]
    assert standing.failures >= 2
    assert standing.accepted_at == pinged.rig.store.now()


def standing(pinged: Pinged) -> Standing:
    return pinged.targets.standings(frozenset({"report"}))["report"]


def test_a_start_that_is_lost_makes_no_target_a_failing_one(store: SqlStore, service: Healthchecks) -> None:
    """Nothing is sent until the run ends."""
    check = service.check()
    pinged = Pinged(store, {"report": service.ping_url(check)})
    service.fall("reset")
    with structlog.testing.capture_logs() as logs:
        run = pinged.begin()
        pinged.ping(seconds=6)
        service.recover()
        pinged.ping(hours=6)
        assert (standing(pinged).failures, standing(pinged).failing_since) == (2, None)
        assert pinged.targets.remarks(pinged.rig.store.now()) == []
        pinged.end(run)
    assert kinds(service, check) == ["success"]
    assert [entry["event"] for entry in logs if entry["event"].startswith("ping")] == ["ping_failed", "ping_restored"]


def test_what_another_node_was_heard_with_fails_no_more(postgres_place: Place, service: Healthchecks) -> None:
    check = service.check()
    with closing(postgres_place.open()) as store:
        pinged = Pinged(store, {"report": service.ping_url(check)}, lease=LEASE)
        other = Pinged(store, {"report": service.ping_url(check)}, clock=pinged.rig.clock, lease=LEASE)
        run = pinged.begin()
        service.fall("reset")
        pinged.end(run)
        began = standing(pinged).failing_since
        assert began is not None
        pinged.ping(minutes=3)
        assert standing(pinged).failing_since == began, "it waits to be sent again"
        service.recover()
        other.ping(minutes=3)
        assert kinds(service, check) == ["start", "success"]
        assert not rests(pinged)
        pinged.rig.in_force.stand_aside("a plug-in is missing", pinged.rig.store.now())
        pinged.ping(seconds=6)
        assert standing(pinged).failing_since is None
        assert rests(pinged)


def rests(pinged: Pinged) -> bool:
    rig = pinged.rig
    return pinged.pinger.rests(rig.store.look(rig.node, rig.in_force.current.generation))


def test_what_was_given_up_fails_no_more(store: SqlStore, service: Healthchecks) -> None:
    pinged = Pinged(store, {"report": service.ping_url(service.check())})
    service.fall("reset")
    pinged.end(pinged.begin())
    pinged.ping(hours=23)
    assert standing(pinged).failing_since is not None
    pinged.ping(hours=2)
    assert (pinged.left(), standing(pinged).failing_since) == ([], None)
    assert standing(pinged).failures > 1


def test_a_node_that_has_not_loaded_the_newest_file_drops_nothing(store: SqlStore, service: Healthchecks) -> None:
    """Somebody gave the job its URL just now."""
    check = service.check()
    pinged = Pinged(store, {"report": service.ping_url(check)})
    newest = pinged.rig.in_force.current
    job = newest.configuration.jobs["report"]
    unwatched = {"report": replace(job, watch=replace(job.watch, ping_url=None))}
    before = replace(newest, generation=0, configuration=replace(newest.configuration, jobs=unwatched))
    service.fall("reset")
    pinged.end(pinged.begin())
    service.recover()
    pinged.rig.in_force.set(before)
    pinged.pinger.tick(pinged.rig.turn(minutes=1))
    assert pinged.left() == ["success"]
    pinged.rig.in_force.set(newest)
    pinged.ping(minutes=1)
    assert kinds(service, check) == ["success"]


def test_of_two_nodes_one_sends(postgres_place: Place, service: Healthchecks) -> None:
    check = service.check()
    with closing(postgres_place.open()) as store:
        pinged = Pinged(store, {"report": service.ping_url(check)}, lease=LEASE)
        other = Pinged(store, {"report": service.ping_url(check)}, clock=pinged.rig.clock, lease=LEASE)
        run = pinged.begin()
        service.fall("reset")
        pinged.end(run)
        service.recover()
        pinged.rig.turn(minutes=3)
        for node in (other, pinged):
            node.ping()
    assert kinds(service, check) == ["start", "success"]


def test_what_a_job_that_runs_elsewhere_tells_is_told_on(store: SqlStore, service: Healthchecks) -> None:
    check = service.check()
    pinged = Pinged(store, {"report": service.ping_url(check)}, external=True, schedule="0 3 * * *")
    pinged.rig.signs.take(Sign("report", Word.START))
    pinged.ping(seconds=1)
    assert check.started
    pinged.rig.signs.take(Sign("report", Word.FAIL, exit_code=3, text=b"no route\n"))
    pinged.ping(seconds=1)
    last = service.of(check)[-1]
    assert (last.kind, last.exitstatus, check.timed) == ("fail", 3, 1)
    assert last.body.startswith(b"no route\n")
