"""The page of a live daemon, and every query of the dashboard against a live Prometheus that reads it."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests.monitoring.conftest import Daemon, Watching
from tests.monitoring.tools import SHIPPED, checked, program
from tests.until import until

pytestmark = [pytest.mark.monitoring, pytest.mark.timeout(300)]

JOBS = """
defaults: {timezone: UTC}
sources: {shop: {signature: {scheme: none}, trust: network, event: {id: id, type: type}}}
notify: {ops: {http: {method: POST, url: "http://127.0.0.1:9/"}}}
jobs:
  well: {schedule: "* * * * * *", command: "true"}
  fails: {schedule: "* * * * * *", grace: 1s, command: "false", notify: [ops]}
  rests: {schedule: "* * * * * *", command: "true"}
  later: {schedule: "0 8 * * 1", command: "true", team: 'a "b"'}
  scan:
    schedule: "0 0 * * *"
    compensate:
      source: shop
      compensator: http_list
      with: {url: "http://127.0.0.1:9/", items: data, occurred_at: at, cursor: next}
"""

EMPTY = {"Scans: settled up to", "Dead man's switches"}
"""Panels that show nothing here: no scan has come through, and there is no switch."""


def _queries(dashboard: Any) -> Iterator[tuple[str, str]]:
    """Title and expression of each."""
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]
    for annotation in dashboard["annotations"]["list"]:
        yield "annotation", annotation["expr"]


def _concrete(expression: str) -> str:
    return expression.replace("$job", ".+").replace("$__rate_interval", "10s")


def test_the_page_and_the_dashboard(daemon: Daemon, watching: Watching) -> None:
    world = daemon(JOBS)
    world.start()
    listen = world.environment()["SCHEDULER_LISTEN"]
    assert world.ask("POST", "/v1/jobs/rests/pause", {})[0] == 200
    prometheus = watching(world)
    event, json_headers = b'{"id": "1", "type": "t"}', {"content-type": "application/json"}
    request = urllib.request.Request(f"http://{listen}/webhooks/shop", event, json_headers)
    with urllib.request.urlopen(request, timeout=10) as answer:
        assert answer.status == 202
    until(lambda: prometheus.value("min_over_time(schedctl_database_up[12s]) * count_over_time(up[12s]) > 10"), 60)
    until(lambda: prometheus.receiver.of("ScheduledJobMissed", job_name="fails"), 60)

    with urllib.request.urlopen(f"http://{listen}/metrics", timeout=10) as answer:
        page = answer.read()
    assert checked(program("promtool"), "check", "metrics", given=page) == ""
    assert rb'team="a \"b\""' in page

    dashboard = json.loads((SHIPPED / "grafana" / "schedulerd.json").read_text())
    queries = list(_queries(dashboard))
    assert len(queries) > 25
    until(lambda: not _silent(prometheus, queries), 60)
    assert prometheus.faults() == []


def _silent(prometheus: Any, queries: list[tuple[str, str]]) -> set[str]:
    """Panels that show nothing and should."""
    silent = {title for title, expression in queries if not prometheus.query(_concrete(expression))}
    return silent - EMPTY - {"annotation"}


def test_who_wants_histograms_of_each_job_has_them(daemon: Daemon) -> None:
    world = daemon(JOBS, SCHEDULER_JOB_HISTOGRAMS="on")
    world.start()
    until(lambda: b'schedctl_job_duration_seconds_bucket{job_name="well",le="0.1"}' in world.get("/metrics")[1])
    assert checked(program("promtool"), "check", "metrics", given=world.get("/metrics")[1]) == ""


def test_every_panel_has_a_title_of_its_own_and_a_place() -> None:
    dashboard = json.loads((SHIPPED / "grafana" / "schedulerd.json").read_text())
    titles = [panel["title"] for panel in dashboard["panels"] if panel["type"] != "row"]
    places = [tuple(panel["gridPos"].values()) for panel in dashboard["panels"]]
    assert len(set(titles)) == len(titles)
    assert len(set(places)) == len(places)
    assert all(x + width <= 24 for x, _, width, _ in places)
