"""A rolling upgrade: three nodes of this release are replaced by the next one, one after the other, under load."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from scheduler.core.schedule import SCHEDULE_CODE
from tests.databases import RELEASE, Place
from tests.long import LONG
from tests.rolling.fleet import NAMES, Fleet, fleet
from tests.rolling.release import NEXT, REVISION, next_release
from tests.until import until

pytestmark = [pytest.mark.crash, pytest.mark.timeout(600 if LONG else 150), pytest.mark.xdist_group("load")]


def test_both_releases_work_side_by_side(fresh_postgres_place: Place, tmp_path: Path) -> None:
    following = next_release(tmp_path / "next")
    with fleet(tmp_path, fresh_postgres_place.url, 60 if LONG else 15) as (nodes, pace):
        first, second, third = NAMES
        nodes.replace(first, **following)
        assert _revision(fresh_postgres_place.url) == REVISION
        # The new schedules are in force, and those who cannot know them go on with the same file.
        until(lambda: _of(nodes, first, "generation") == {2}, 30.0)
        assert _of(nodes, third, "version") == {RELEASE, NEXT}
        assert nodes.ask(third, "/v1/generations")["generations"][0]["schedule_code"] == SCHEDULE_CODE + 1
        nodes.replace(second)  # One of this release starts on the schema of the next.
        assert _of(nodes, second, "version") == {RELEASE, NEXT}
        nodes.replace(second, **following)
        nodes.replace(third, **following)
        assert _of(nodes, third, "version") == {NEXT}
        since, until_ = nodes.quieten()
        assert nodes.problems(since, until_, pace) == []
        assert len(nodes.ran_on()) == len(NAMES)


def _of(nodes: Fleet, name: str, key: str) -> set[object]:
    """What live nodes have there, as that node tells it."""
    return {node[key] for node in nodes.ask(name, "/v1/nodes")["nodes"] if node["state"] == "live"}


def _revision(url: str) -> str:
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    assert row is not None
    return str(row[0])
