"""Silence is heard: with a real daemon, Prometheus and Alertmanager, and the shipped rules but for their `for:`."""

from __future__ import annotations

import time

import pytest

from tests.crash.world import World
from tests.monitoring.conftest import Daemon, Watching
from tests.monitoring.tools import Monitoring, Told
from tests.until import until

pytestmark = [pytest.mark.monitoring, pytest.mark.timeout(300)]

HEARD = 10.0
"""Seconds from the deadline to the receiver."""
LONG = 60.0

JOBS = """
defaults: {timezone: UTC}
jobs:
  # succeeds every two seconds while the file is there, else it fails, which nobody is told as such
  nightly:
    {schedule: "*/2 * * * * *", grace: 8s, command: [test, -e, FLAG], team: dba, severity: critical, alert_after: 99}
  # none of these has a success, and nothing may be said of any
  rested: {schedule: "*/5 * * * * *", grace: 4s, command: "false", alert_after: 99}
  dropped: {schedule: "*/5 * * * * *", grace: 15s, command: "false", alert_after: 99}
  weekly: {schedule: "0 8 * * 1", command: "true"}
  never: {schedule: "0 0 29 2 *", command: "true"}
  unwatched: {schedule: "*/5 * * * * *", grace: 1s, command: "false", heartbeat: false, alert_after: 99}
  by-hand: {command: "false"}
"""


def deadline(prometheus: Monitoring, job: str) -> float:
    found = prometheus.value(f'max(schedctl_job_deadline_timestamp_seconds{{job_name="{job}"}})')
    assert found is not None
    return found


def fewest_failures_while_told(prometheus: Monitoring, job: str) -> float | None:
    failures = f'schedctl_job_consecutive_failures{{job_name="{job}"}}'
    told = f'ALERTS{{alertname="ScheduledJobFailing", job_name="{job}"}}'
    return prometheus.value(f"min_over_time(({failures} and on(job_name) {told})[1m:100ms])")


def said(told: list[Told]) -> list[tuple[str, str]]:
    return [(one.name, one.status) for one in told]


def missed(prometheus: Monitoring) -> list[Told]:
    return prometheus.receiver.of("ScheduledJobMissed")


def ask(world: World, path: str, body: object = None) -> None:
    status, answer = world.ask("POST", path, body or {})
    assert status < 300, answer


def test_a_miss_is_told_once_through_the_death_of_the_daemon_and_recovers(daemon: Daemon, watching: Watching) -> None:
    world = daemon("")
    flag = world.folder / "flag"
    flag.touch()
    text = JOBS.replace("FLAG", str(flag))
    world.config.write_text(text)
    world.start()
    ask(world, "/v1/jobs/rested/pause", {"reason": "holidays"})
    prometheus = watching(world)
    receiver = prometheus.receiver
    until(lambda: prometheus.value("count(schedctl_job_deadline_timestamp_seconds < +Inf)"), LONG)
    until(lambda: receiver.of("Watchdog"), LONG)
    world.config.write_text("\n".join(line for line in text.splitlines() if "dropped" not in line))
    ask(world, "/v1/reload")

    flag.unlink()
    until(lambda: missed(prometheus), LONG)
    (alert,) = missed(prometheus)
    late = alert.at - deadline(prometheus, "nightly")
    assert 0 < late <= HEARD
    assert alert.receiver == "oncall"
    assert alert.labels == {
        "alertname": "ScheduledJobMissed",
        "job": "schedctl",
        "job_name": "nightly",
        "severity": "critical",
        "team": "dba",
    }
    assert alert.annotations["description"].endswith("Type: schedctl describe nightly")
    (active,) = prometheus.alerts("ScheduledJobMissed")

    world.kill()
    until(lambda: receiver.of("SchedulerDown", "firing"), LONG)
    world.start()
    until(lambda: receiver.of("SchedulerDown", "resolved"), LONG)
    until(lambda: prometheus.value("schedctl_database_up") == 1, LONG)
    (still,) = prometheus.alerts("ScheduledJobMissed")
    assert (still["state"], still["activeAt"]) == ("firing", active["activeAt"]), "one miss, from its beginning"
    assert said(missed(prometheus)) == [("ScheduledJobMissed", "firing")]

    flag.touch()
    until(lambda: len(missed(prometheus)) > 1, LONG)
    assert said(missed(prometheus)) == [("ScheduledJobMissed", "firing"), ("ScheduledJobMissed", "resolved")]
    assert {one.labels["job_name"] for one in missed(prometheus)} == {"nightly"}
    assert prometheus.faults() == []
    assert not receiver.of("ScheduledJobFailing")
    # the deadlines of all others have passed, had they had one
    assert time.time() > deadline(prometheus, "nightly") - 30
    assert prometheus.value('schedctl_job_deadline_timestamp_seconds{job_name="dropped"}') == float("inf")
    assert said(receiver.of("SchedulerDown")) == [("SchedulerDown", "firing"), ("SchedulerDown", "resolved")]


def test_failures_in_a_row_are_told_as_often_as_the_job_says(daemon: Daemon, watching: Watching) -> None:
    world = daemon(
        "defaults: {timezone: UTC}\n"
        'jobs: {report: {schedule: "* * * * * *", command: "false", alert_after: 3, team: ops}}\n'
    )
    world.start()
    prometheus = watching(world)
    until(lambda: prometheus.receiver.of("ScheduledJobFailing"), LONG)
    (alert,) = prometheus.receiver.of("ScheduledJobFailing")
    assert (alert.labels["job_name"], alert.labels["team"], alert.labels["severity"]) == ("report", "ops", "warning")
    assert (fewest_failures_while_told(prometheus, "report") or 0) >= 3
