"""What a real schedule exports over a night in which the clocks change, judged by the shipped rules."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from scheduler.observe.metrics import Metrics
from scheduler.store.store import SqlStore
from tests.databases import Place
from tests.engine.doubles import TurnedClock
from tests.engine.rig import Rig
from tests.monitoring.tools import SHIPPED, checked, program

STEP = timedelta(minutes=15)
STEPS = 112
NIGHTS = {
    "spring, inside the gap": ("15 2 * * *", datetime(2026, 3, 7, 6, tzinfo=UTC)),
    "autumn, inside the fold": ("15 1 * * *", datetime(2026, 10, 31, 6, tzinfo=UTC)),
    "autumn, every half hour": ("*/30 * * * *", datetime(2026, 10, 31, 6, tzinfo=UTC)),
}
"""From the night before to the end of the night in which it happens, in New York."""
JOBS = """
defaults: {{timezone: America/New_York, grace: 25m, team: ops}}
jobs:
  j: {{schedule: "{schedule}", command: "true"}}
"""


def _deadlines(store: SqlStore, schedule: str, start: datetime, *, fails_from: datetime) -> list[float]:
    """At every step, relative to `start`, as a daemon exports them whose runs take no time."""
    rig = Rig(store, JOBS.format(schedule=schedule), TurnedClock(start))
    metrics = Metrics(rig.bus, "1", "2", configuration=lambda: rig.in_force.current.configuration)
    told = []
    for _ in range(STEPS):
        metrics.refresh(store, rig.clock.now(), force=True)
        lines = metrics.render().decode().splitlines()
        (line,) = [line for line in lines if line.startswith("schedctl_job_deadline_timestamp_seconds{")]
        told.append(float(line.rpartition(" ")[2]) - start.timestamp())
        rig.tick(minutes=15)
        if rig.clock.now() < fails_from:
            rig.finish()
    return told


@pytest.mark.parametrize("night", NIGHTS)
@pytest.mark.parametrize("well", [True, False])
def test_a_night_in_which_the_clocks_change(sqlite_place: Place, tmp_path: Path, night: str, well: bool) -> None:
    """A job that is well is never told to be missed; one that is not, once its deadline has passed."""
    schedule, start = NIGHTS[night]
    fails_from = start + (STEPS * STEP if well else timedelta(hours=12))
    with sqlite_place.opened_hastily() as store:
        deadlines = _deadlines(store, schedule, start, fails_from=fails_from)
    assert all(math.isfinite(one) for one in deadlines)
    times = [step * STEP.total_seconds() for step in range(len(deadlines))]
    passed = [at for at, deadline in zip(times, deadlines, strict=True) if at > deadline]
    assert (not passed) == well
    asked = times[-1] if well else passed[0] + STEP.total_seconds()
    firing = [] if well else [{"labels": '{job_name="j",severity="warning",team="ops"}', "value": 1}]
    ever = "count by (job_name, severity, team) (ALERTS{alertname='ScheduledJobMissed',alertstate='firing'})"
    test = {
        "interval": "15m",
        "input_series": [
            _series("schedctl_database_up", "", [1.0] * len(times)),
            _series("schedctl_job_info", ',job_name="j",team="ops",severity="warning"', [1.0] * len(times)),
            _series("schedctl_job_deadline_timestamp_seconds", ',job_name="j"', deadlines),
        ],
        "promql_expr_test": [
            {"expr": f"max_over_time(({ever})[2d:15m])", "eval_time": f"{asked:.0f}s", "exp_samples": firing},
        ],
    }
    if not well:
        before = {"expr": ever, "eval_time": f"{passed[0] - STEP.total_seconds():.0f}s", "exp_samples": []}
        test["promql_expr_test"].append(before)  # type: ignore[attr-defined]
    rules = {"rule_files": [str(SHIPPED / "rules.yml")], "evaluation_interval": "15m", "tests": [test]}
    file = tmp_path / "night.test.yml"
    file.write_text(yaml.safe_dump(rules))
    checked(program("promtool"), "test", "rules", str(file))


def _series(name: str, labels: str, values: list[float]) -> dict[str, str]:
    return {
        "series": f'{name}{{job="schedctl",instance="a"{labels}}}',
        "values": " ".join(f"{value:.0f}" for value in values),
    }
