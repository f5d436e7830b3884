from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest
from prometheus_client.parser import text_string_to_metric_families

from scheduler.core.commands import IfBusy
from scheduler.core.errors import Unavailable
from scheduler.core.model import FailReason, JobState, Status
from scheduler.core.notices import Bus
from scheduler.core.outcome import Failed, Snoozed
from scheduler.core.queries import DatabaseStatus, Gauges, JobGauge, Queries
from scheduler.observe.daemon_families import OwnState
from scheduler.observe.metrics import EVERY, Metrics
from scheduler.observe.tally import Histogram
from scheduler.store.store import SqlStore
from scheduler.web.job_json import job_json
from tests.engine.doubles import START
from tests.engine.rig import Rig, failed
from tests.faces import JOBS

Page = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@dataclass
class Loop:
    turned_at: float = 0.0
    last_seconds: float = 0.25
    errors: int = 3


class Watched:
    """A rig with its metrics, and a monotonic clock of its own."""

    def __init__(self, store: SqlStore) -> None:
        self.rig = Rig(store, JOBS)
        self.seconds = 0.0
        self.broken: dict[str, str] = {}
        self.own: OwnState | None = None
        self.logged: dict[str, int] = {}
        self.metrics = Metrics(
            self.rig.bus,
            "9.9",
            "2026a",
            configuration=lambda: self.rig.in_force.current.configuration,
            loops={"planner": Loop()},
            broken=lambda: self.broken,
            own=lambda: self.own,
            messages=lambda: self.logged,
            monotonic=lambda: self.seconds,
        )
        self.refresh()

    def refresh(self) -> Page:
        self.metrics.refresh(self.rig.store, self.rig.clock.now(), force=True)
        return self.page()

    def page(self) -> Page:
        return read(self.metrics.render())


@pytest.fixture
def watched(store: SqlStore) -> Watched:
    return Watched(store)


def read(page: bytes) -> Page:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(page.decode())
        for sample in family.samples
    }


def told(page: Page) -> Page:
    """Without what goes on by itself."""
    return {key: value for key, value in page.items() if key[0] != "schedctl_last_tick_timestamp_seconds"}


def of(page: Page, name: str, **labels: str) -> float:
    return page[name, tuple(sorted(labels.items()))]


def test_every_series_of_a_job_is_there_from_its_load(watched: Watched) -> None:
    page = watched.page()
    for result in ("completed", "failed", "timeout", "lost", "canceled", "skipped"):
        assert of(page, "schedctl_job_runs_total", job_name="report", result=result) == 0
    for reason in ("overlap", "missed", "paused", "blackout", "lock"):
        assert of(page, "schedctl_job_skipped_runs_total", job_name="report", reason=reason) == 0
    assert of(page, "schedctl_job_retries_total", job_name="report") == 0
    assert of(page, "schedctl_job_last_success_timestamp_seconds", job_name="report") == 0
    assert of(page, "schedctl_job_duration_seconds_count", job_name="report") == 0
    deadline = datetime(2026, 3, 2, 13, 25, tzinfo=UTC).timestamp()
    assert of(page, "schedctl_job_deadline_timestamp_seconds", job_name="report") == deadline
    assert of(page, "schedctl_job_next_run_timestamp_seconds", job_name="report") == deadline - 600
    assert of(page, "schedctl_job_deadline_timestamp_seconds", job_name="ticket") == math.inf
    assert of(page, "schedctl_job_next_run_timestamp_seconds", job_name="quiet") == math.inf
    assert of(
        page,
        "schedctl_job_info",
        job_name="report",
        schedule="15 8 * * 1",
        timezone="America/New_York",
        team="shop",
        severity="warning",
        kind="command",
    )
    assert of(page, "schedctl_job_failure_threshold", job_name="report") == 1


def test_runs_are_counted_by_what_became_of_them(watched: Watched) -> None:
    rig = watched.rig
    rig.tick(minutes=1)
    page = watched.refresh()
    assert of(page, "schedctl_job_running_runs", job_name="minutely") == 1
    run_deadline = START.timestamp() + 60 + 86400
    assert of(page, "schedctl_job_run_deadline_timestamp_seconds", job_name="minutely") == run_deadline
    rig.tick(seconds=31)
    rig.executor.finish_all()
    rig.tick(seconds=1)
    rig.tick(seconds=28)
    rig.executor.finish_all(Failed(FailReason.TIMEOUT, "too long"))
    rig.tick(seconds=1)
    page = watched.refresh()
    assert of(page, "schedctl_job_runs_total", job_name="minutely", result="completed") == 1
    assert of(page, "schedctl_job_runs_total", job_name="minutely", result="timeout") == 1
    assert of(page, "schedctl_job_consecutive_failures", job_name="minutely") == 1
    assert of(page, "schedctl_job_duration_seconds_count", job_name="minutely") == 2
    assert of(page, "schedctl_job_run_deadline_timestamp_seconds", job_name="minutely") == math.inf


def test_skips_and_retries_are_counted(watched: Watched) -> None:
    rig = watched.rig
    rig.tick(minutes=1)
    rig.tick(minutes=1)
    rig.tick(minutes=1)
    rig.desk.run_now("ticket", author="ana", payload=1, has_payload=True)
    rig.tick()
    ticket = next(run for run in rig.executor.live if rig.run(run).job == "ticket")
    rig.executor.finish(ticket, Failed(FailReason.EXIT, "exit 1", exit_code=1))
    rig.tick(seconds=1)
    page = watched.refresh()
    assert of(page, "schedctl_job_skipped_runs_total", job_name="minutely", reason="overlap") == 2
    assert of(page, "schedctl_job_retries_total", job_name="ticket") == 1
    assert of(page, "schedctl_queue_items", queue="default", state="time") == 1


def test_what_is_lost_is_told_by_when_it_was_noted(watched: Watched) -> None:
    """A counter is above zero before a daemon that comes back is first scraped, and may be what it was before."""

    def noted(page: Page) -> dict[str, float]:
        return {labels[0][1]: value for (name, labels), value in page.items() if "slot_lost" in name}

    rig = watched.rig
    rig.tick(minutes=1)
    rig.tick(minutes=1)
    assert of(watched.refresh(), "schedctl_job_skipped_runs_total", job_name="minutely", reason="overlap") == 1
    assert noted(watched.page()) == {}, "somebody asked for that"
    rig.finish()
    before = time.time()
    rig.tick(minutes=30)
    page = watched.refresh()
    assert of(page, "schedctl_job_skipped_runs_total", job_name="minutely", reason="missed") == 29
    assert list(noted(page)) == ["minutely"]
    assert before <= noted(page)["minutely"] <= time.time()
    rig.bus.publish("run.skipped", job="report", reason="lock", count=1)
    assert set(noted(watched.page())) == {"minutely", "report"}
    rig.reload(JOBS.replace("  minutely:", "  other:"))
    assert set(noted(watched.refresh())) == {"report"}
    later = Metrics(rig.bus, "1", "2")
    later.refresh(rig.store, rig.clock.now())
    assert noted(read(later.render())) == {}


def test_a_time_limit_is_one_of_an_attempt(watched: Watched) -> None:
    """A further attempt of an old run has all of it, and so has each of several runs: the first of them counts."""
    rig = watched.rig

    def left() -> timedelta:
        """Of the time limit of a day."""
        limit = of(watched.refresh(), "schedctl_job_run_deadline_timestamp_seconds", job_name="ticket")
        return timedelta(seconds=round(limit - rig.clock.now().timestamp()))

    rig.desk.run_now("ticket", author="ana")
    rig.tick()
    rig.turn(hours=20)
    assert left() == timedelta(hours=4)
    rig.executor.finish(rig.executor.of("ticket")[0], failed())
    rig.tick()
    assert rig.run(rig.runs("ticket")[0].id).status is Status.PENDING
    page = watched.refresh()
    assert of(page, "schedctl_job_run_deadline_timestamp_seconds", job_name="ticket") == math.inf
    rig.tick(minutes=2)
    assert left() == timedelta(hours=24)
    rig.executor.finish(rig.executor.of("ticket")[0], Snoozed(timedelta(hours=3)))
    rig.tick(seconds=1)
    rig.tick(hours=4)
    assert left() == timedelta(hours=24)
    rig.turn(hours=1)
    rig.desk.run_now("ticket", author="ana", if_busy=IfBusy.QUEUE)
    rig.tick()
    first, second = rig.executor.of("ticket")
    assert left() == timedelta(hours=23), "a younger one does not hide it"
    rig.executor.finish(first)
    rig.tick()
    assert (left(), rig.executor.of("ticket")) == (timedelta(hours=24), [second])


def test_looks_at_what_changed_show_what_a_look_at_everything_shows(watched: Watched) -> None:
    """No change of a job escapes that is made here: by planning, starting, settling, pausing, reloading, asking."""
    rig = watched.rig
    steps: list[Callable[[], object]] = [
        lambda: rig.tick(minutes=1),
        rig.executor.finish_all,
        lambda: rig.tick(seconds=1),
        lambda: rig.desk.pause(["minutely"], until=None, reason="x", author="me"),
        lambda: rig.tick(minutes=3),
        lambda: rig.desk.resume(["minutely"], author="me"),
        lambda: rig.desk.run_now("ticket", author="me", payload={"n": 1}, has_payload=True),
        lambda: rig.tick(minutes=1),
        lambda: rig.executor.finish_all(Failed(FailReason.EXIT, "no", exit_code=3)),
        lambda: rig.tick(seconds=1),
        lambda: rig.reload(JOBS.replace("  minutely:", "  other:")),
        lambda: rig.tick(minutes=1),
    ]
    for step in steps:
        step()
        watched.seconds += EVERY
        assert watched.metrics.refresh(rig.store, rig.clock.now())
        assert told(watched.page()) == told(watched.refresh())


def test_a_removed_job_says_farewell_and_goes(watched: Watched) -> None:
    watched.rig.reload(JOBS.replace("  minutely:", "  other:"))
    page = watched.refresh()
    named = {key for key in page if ("job_name", "minutely") in key[1]}
    assert named == {("schedctl_job_deadline_timestamp_seconds", (("job_name", "minutely"),))}
    assert of(page, "schedctl_job_deadline_timestamp_seconds", job_name="minutely") == math.inf
    watched.seconds += EVERY
    watched.metrics.refresh(watched.rig.store, watched.rig.clock.now())
    assert {key for key in watched.page() if ("job_name", "minutely") in key[1]} == named, "some jobs were looked at"
    later = Metrics(watched.rig.bus, "1", "2")
    later.refresh(watched.rig.store, watched.rig.clock.now())
    assert of(read(later.render()), "schedctl_job_deadline_timestamp_seconds", job_name="minutely") == math.inf
    watched.rig.clock.turn(minutes=17)
    assert not {key for key in watched.refresh() if ("job_name", "minutely") in key[1]}


def test_a_job_that_comes_back_goes_on_counting(watched: Watched) -> None:
    watched.rig.tick(minutes=1)
    watched.rig.reload(JOBS.replace("  minutely:", "  other:"))
    watched.refresh()
    watched.rig.executor.finish_all()
    watched.rig.tick(seconds=1)
    watched.rig.reload(JOBS)
    page = watched.refresh()
    assert of(page, "schedctl_job_runs_total", job_name="minutely", result="completed") == 1
    assert of(page, "schedctl_job_deadline_timestamp_seconds", job_name="minutely") < math.inf


def test_pauses(watched: Watched) -> None:
    watched.rig.desk.pause(["report"], until=None, reason="", author="ana")
    page = watched.refresh()
    assert of(page, "schedctl_job_paused_since_timestamp_seconds", job_name="report") == START.timestamp()
    assert of(page, "schedctl_job_paused_since_timestamp_seconds", job_name="minutely") == 0
    assert of(page, "schedctl_job_deadline_timestamp_seconds", job_name="report") == math.inf
    assert of(page, "schedctl_jobs", state="paused") == 1


class Gone:
    def queries(self) -> Iterator[Queries]:
        raise Unavailable("away")

    def db_status(self) -> DatabaseStatus:
        raise Unavailable("away")


def test_without_the_database_the_page_stands_and_stops_vouching(watched: Watched) -> None:
    with pytest.raises(Unavailable):
        watched.metrics.refresh(Gone(), START, force=True)  # type: ignore[arg-type]
    page = watched.page()
    assert of(page, "schedctl_database_up") == 0
    assert of(page, "schedctl_job_deadline_timestamp_seconds", job_name="ticket") == math.inf
    assert of(watched.refresh(), "schedctl_database_up") == 1
    watched.seconds += 13
    assert of(watched.page(), "schedctl_database_up") == 0, "a look that hangs raises nothing"
    watched.seconds += 48
    page = watched.page()
    assert ("schedctl_job_deadline_timestamp_seconds", (("job_name", "ticket"),)) not in page
    assert of(page, "schedctl_job_deadline_timestamp_seconds", job_name="report") < math.inf
    assert of(watched.refresh(), "schedctl_database_up") == 1


def test_the_database_is_asked_every_few_seconds_only(watched: Watched) -> None:
    assert watched.metrics.refresh(watched.rig.store, START) is False
    watched.seconds += 5
    assert watched.metrics.refresh(watched.rig.store, START) is True


def test_reloads(watched: Watched) -> None:
    watched.rig.reload(JOBS.replace("15 8", "16 8"))
    page = watched.page()
    assert of(page, "schedctl_config_last_reload_successful") == 1
    assert of(page, "schedctl_config_reloads_total", result="refused") == 0
    accepted = of(page, "schedctl_config_reloads_total", result="accepted")
    with pytest.raises(Exception, match=r"jobs\.yaml"):
        watched.rig.reload("jobs: [")
    page = watched.page()
    assert of(page, "schedctl_config_last_reload_successful") == 0
    assert of(page, "schedctl_config_reloads_total", result="refused") == 1
    assert of(page, "schedctl_config_reloads_total", result="accepted") == accepted
    watched.rig.reload(JOBS)
    assert of(watched.page(), "schedctl_config_last_reload_successful") == 1
    hashes = [labels for name, labels in watched.page() if name == "schedctl_config_info"]
    assert hashes == [(("hash", watched.rig.in_force.current.configuration.hash),)]


def test_the_daemon_itself(watched: Watched) -> None:
    watched.broken["overdue"] = "…"
    watched.seconds = 40.0
    page = watched.page()
    labels = {name: labels for name, labels in page if name == "schedctl_build_info"}
    assert dict(labels["schedctl_build_info"])["version"] == "9.9"
    assert dict(labels["schedctl_build_info"])["tzdata_version"] == "2026a"
    assert of(page, "schedctl_loop_silent_seconds", loop="planner") == 40
    assert of(page, "schedctl_loop_tick_seconds", loop="planner") == 0.25
    assert of(page, "schedctl_loop_errors_total", loop="planner") == 3
    assert of(page, "schedctl_invariant_broken", invariant="overdue") == 1
    assert of(page, "schedctl_invariant_broken", invariant="orphan") == 0
    assert of(page, "schedctl_nodes", state="live") == 1
    assert of(page, "schedctl_unaccounted_total") == 0


def test_an_overdue_planner_is_seen(watched: Watched) -> None:
    watched.rig.clock.turn(minutes=5)
    assert of(watched.refresh(), "schedctl_planning_lag_seconds") == 240


def test_dead_letters(watched: Watched) -> None:
    watched.rig.desk.run_now("ticket", author="ana", payload=1, has_payload=True)
    watched.rig.tick()
    watched.rig.executor.finish_all(Failed(FailReason.EXIT, "exit 1", retryable=False))
    watched.rig.tick(seconds=1)
    page = watched.refresh()
    assert of(page, "schedctl_dead_letters") == 1
    assert of(page, "schedctl_job_dead_letters", job_name="ticket") == 1
    watched.rig.reload(JOBS.replace("  ticket:", "  tickets:"))
    page = watched.refresh()
    assert of(page, "schedctl_dead_letters") == 1, "removing a job does not make what it left undone disappear"
    assert ("schedctl_job_dead_letters", (("job_name", "ticket"),)) not in page


def test_notices_of_any_shape_do_not_break_the_page(watched: Watched) -> None:
    watched.rig.bus.publish("run.started", run="r", job="report", delay=1.5)
    watched.rig.bus.publish("audit.finished", unaccounted=2)
    watched.rig.bus.publish("run.settled", run="r", job="no such job", status="COMPLETED", reason=None)
    watched.rig.bus.publish("unheard.of")
    page = watched.page()
    assert of(page, "schedctl_start_delay_seconds_count") == 1
    assert of(page, "schedctl_unaccounted_total") == 2
    assert not [key for key in page if ("job_name", "no such job") in key[1]]


WEIRD = ['a"b', "a\\b", "a\nb", "\ud800", "\x00", "日本", "x" * 5000, "", "{}"]


def test_no_name_breaks_the_page() -> None:
    class Readable:
        @contextmanager
        def queries(self) -> Iterator[Readable]:
            yield self

        def gauges(self, now: datetime, jobs: object = None) -> Gauges:
            state = JobState("", 1, "", True, None, START)
            return Gauges(tuple(JobGauge(replace(state, name=name)) for name in WEIRD), (), (), 1)

    metrics = Metrics(Bus(), "1", "2")
    metrics.refresh(Readable(), START)  # type: ignore[arg-type]
    page = read(metrics.render())
    assert sum(name == "schedctl_job_last_exit_code" for name, _ in page) == len(WEIRD)


def test_counting_from_many_threads(watched: Watched) -> None:
    def count() -> None:
        for _ in range(500):
            watched.rig.bus.publish("run.skipped", job="report", reason="overlap", count=2)
            watched.page() if _ % 250 == 0 else None

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert of(watched.page(), "schedctl_job_skipped_runs_total", job_name="report", reason="overlap") == 4000


def test_no_series_says_when_it_was_created(watched: Watched) -> None:
    assert b"_created" not in watched.metrics.render()


@pytest.mark.parametrize(("wanted", "series"), [(False, 2), (True, 18)])
def test_histograms_of_each_job_are_there_for_those_who_want_them(store: SqlStore, wanted: bool, series: int) -> None:
    rig = Rig(store, JOBS)
    metrics = Metrics(rig.bus, "1", "2", job_histograms=wanted)
    metrics.refresh(store, START)
    rig.bus.publish("run.settled", run="r", job="report", status="COMPLETED", took=2.5)
    page = read(metrics.render())
    told = [
        key for key in page if key[0].startswith("schedctl_job_duration_seconds") and ("job_name", "report") in key[1]
    ]
    assert len(told) == series
    assert of(page, "schedctl_job_duration_seconds_count", job_name="report") == 1
    assert of(page, "schedctl_job_duration_seconds_sum", job_name="report") == 2.5
    assert of(page, "schedctl_job_duration_seconds_count", job_name="quiet") == 0
    if wanted:
        assert of(page, "schedctl_job_duration_seconds_bucket", job_name="report", le="1") == 0
        assert of(page, "schedctl_job_duration_seconds_bucket", job_name="report", le="5") == 1


def test_histograms() -> None:
    histogram = Histogram((1, 5))
    for value in (0.5, 1, 1.5, 5, 99):
        histogram.observe(value)
    assert histogram.cumulative() == [("1", 2.0), ("5", 4.0), ("+Inf", 5.0)]
    assert histogram.sum == 107


def test_what_a_node_says_of_itself(watched: Watched) -> None:
    page = watched.page()
    assert not [name for name, _ in page if name.startswith("schedctl_daemon_problem")]
    watched.own = OwnState({"disk", "overdue"}, aside=True, slots=8, taken=3, clock_offset=-1.5)
    watched.logged = {"info": 5, "error": 0}
    page = watched.page()
    assert of(page, "schedctl_daemon_problem", about="disk") == 1
    for about in ("clock", "configuration", "database", "leaving", "loops", "supervisor"):
        assert of(page, "schedctl_daemon_problem", about=about) == 0
    assert sum(name == "schedctl_daemon_problem" for name, _ in page) == 9, "invariants have a metric of their own"
    assert of(page, "schedctl_standing_aside") == 1
    assert (of(page, "schedctl_worker_slots", state="busy"), of(page, "schedctl_worker_slots", state="free")) == (3, 5)
    assert of(page, "schedctl_clock_offset_seconds") == -1.5
    assert of(page, "schedctl_log_messages_total", level="info") == 5
    assert of(page, "schedctl_log_messages_total", level="error") == 0


def test_deadlines_that_pass_are_counted_once_each(watched: Watched) -> None:
    """By the node that noted it, so that over all nodes each miss counts once."""

    def missed(page: Page) -> float:
        return of(page, "schedctl_job_missed_deadlines_total", job_name="minutely")

    def watch(minutes: int) -> None:
        for _ in range(2 * minutes):
            rig.tick(seconds=30)

    rig = watched.rig
    assert missed(watched.refresh()) == 0
    watch(12)
    for _ in range(3):
        assert missed(watched.refresh()) == 1
    assert of(watched.refresh(), "schedctl_jobs", state="missed") == 1
    rig.finish()
    page = watched.refresh()
    assert (missed(page), of(page, "schedctl_jobs", state="missed")) == (1, 0)
    watch(30)
    assert missed(watched.refresh()) == 2
    later = Metrics(rig.bus, "1", "2", configuration=lambda: rig.in_force.current.configuration)
    later.refresh(rig.store, rig.clock.now())
    assert missed(read(later.render())) == 0


@pytest.mark.parametrize("minutes", [0, 3, 30])
def test_everybody_is_told_the_same_deadline(watched: Watched, minutes: int) -> None:
    watched.rig.tick(minutes=minutes)
    page = watched.refresh()
    with watched.rig.store.queries() as queries:
        views = queries.jobs(watched.rig.clock.now())
    now = watched.rig.clock.now()
    for view in views:
        told = job_json(view, now, None)["deadline_at"]
        exported = of(page, "schedctl_job_deadline_timestamp_seconds", job_name=view.state.name)
        assert exported == (math.inf if told is None else datetime.fromisoformat(told).timestamp())


def test_what_is_nearly_always_nothing_is_told_where_it_is_something(watched: Watched) -> None:
    rare = ("schedctl_job_waiting_runs", "schedctl_job_dead_letters", "schedctl_job_alarm")
    assert not [name for name, _ in watched.page() if name in rare]
    watched.rig.desk.run_now("ticket", author="ana")
    with watched.rig.store.begin() as tx:
        tx.jobs.set_alarm("report", "oops", enabled=False)
    page = watched.refresh()
    assert [(name, labels) for name, labels in page if name in rare] == [
        ("schedctl_job_waiting_runs", (("job_name", "ticket"),)),
        ("schedctl_job_alarm", (("job_name", "report"),)),
    ]


def test_webhooks_are_counted_by_what_became_of_them(watched: Watched) -> None:
    for what in ("stored", "stored", "signature_mismatch"):
        watched.metrics.received("shop", what)
    page = watched.page()
    assert of(page, "schedctl_webhooks_received_total", source="shop", result="stored") == 2
    assert of(page, "schedctl_webhooks_received_total", source="shop", result="signature_mismatch") == 1


def test_answers_of_the_api_are_counted_by_declared_path(watched: Watched) -> None:
    watched.metrics.served("/v1/jobs/{name}", "GET", 200, 0.02)
    watched.metrics.served("/v1/jobs/{name}", "GET", 404, 0.2)
    watched.metrics.served("other", "other", 404, 0.001)
    page = watched.page()
    assert of(page, "schedctl_http_requests_total", route="/v1/jobs/{name}", method="GET", code="404") == 1
    assert of(page, "schedctl_http_requests_total", route="other", method="other", code="404") == 1
    assert of(page, "schedctl_http_request_duration_seconds_count", route="/v1/jobs/{name}") == 2
    assert of(page, "schedctl_http_request_duration_seconds_bucket", route="/v1/jobs/{name}", le="0.025") == 1
