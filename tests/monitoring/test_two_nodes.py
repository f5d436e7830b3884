"""Two nodes on one PostgreSQL tell one miss once, also when one of them knows nothing of it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.databases import Place
from tests.monitoring.cable import Cable
from tests.monitoring.conftest import Daemon, Watching
from tests.monitoring.tools import Told
from tests.until import until

pytestmark = [pytest.mark.monitoring, pytest.mark.timeout(300)]

LONG = 60.0
HEARD = 10.0
JOBS = """
defaults: {timezone: UTC}
jobs:
  nightly:
    {schedule: "*/2 * * * * *", grace: 8s, command: [test, -e, FLAG], team: dba, severity: critical, alert_after: 99}
"""


@pytest.fixture
def cable(fresh_postgres_place: Place) -> Iterator[Cable]:
    with tempfile.TemporaryDirectory(prefix="pg") as folder:
        cable = Cable(fresh_postgres_place.url, Path(folder))
        yield cable
        cable.cut()


def test_a_node_that_is_cut_off_during_a_pause_neither_hides_nor_doubles_the_miss_after_it(
    daemon: Daemon, watching: Watching, fresh_postgres_place: Place, cable: Cable, tmp_path: Path
) -> None:
    flag = tmp_path / "flag"
    flag.touch()
    text = JOBS.replace("FLAG", str(flag))
    well = daemon(text, "well", fresh_postgres_place.url)
    cut_off = daemon(text, "cut-off", cable.url)
    well.start()
    cut_off.start()
    prometheus = watching(well, cut_off)
    name = cut_off.environment()["SCHEDULER_LISTEN"]
    until(lambda: prometheus.value("count(schedctl_job_last_success_timestamp_seconds > 0)") == 2, LONG)

    assert well.ask("POST", "/v1/jobs/nightly/pause", {})[0] == 200
    until(lambda: prometheus.value("count(schedctl_job_deadline_timestamp_seconds == +Inf)") == 2, LONG)
    cable.cut()
    until(lambda: prometheus.value(f'schedctl_database_up{{instance="{name}"}}') == 0, LONG)
    flag.unlink()
    assert well.ask("POST", "/v1/jobs/nightly/resume", {})[0] == 200
    until(lambda: prometheus.receiver.of("ScheduledJobMissed"), LONG)
    (alert,) = prometheus.receiver.of("ScheduledJobMissed")
    assert prometheus.value(f'schedctl_job_deadline_timestamp_seconds{{instance="{name}"}}') == float("inf")
    deadline = prometheus.value("min(schedctl_job_deadline_timestamp_seconds)")
    assert deadline is not None
    assert 0 < alert.at - deadline <= HEARD
    (active,) = prometheus.alerts("ScheduledJobMissed")

    cable.mend()
    until(lambda: prometheus.value(f'schedctl_database_up{{instance="{name}"}}') == 1, LONG)
    until(lambda: prometheus.value("count(schedctl_job_deadline_timestamp_seconds < +Inf)") == 2, LONG)
    (still,) = prometheus.alerts("ScheduledJobMissed")
    assert (still["state"], still["activeAt"]) == ("firing", active["activeAt"])
    flag.touch()
    until(lambda: len(prometheus.receiver.of("ScheduledJobMissed")) > 1, LONG)
    assert _said(prometheus.receiver.told) == ["firing", "resolved"]
    assert prometheus.faults() == []


def _said(told: list[Told]) -> list[str]:
    return [one.status for one in told if one.name == "ScheduledJobMissed"]
