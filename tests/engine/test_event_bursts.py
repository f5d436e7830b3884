"""Many events in a second: each is handled once, whatever happens to the job meanwhile."""

from __future__ import annotations

from collections import Counter

import pytest

from scheduler.core.errors import Refused
from scheduler.core.model import Status
from scheduler.store.store import SqlStore
from tests.engine.rig import Rig, jobs
from tests.engine.senders import SIGNED, event, told
from tests.long import LONG

MANY = 1_000 if LONG else 150


def text(*names: str) -> str:
    """The jobs of these names, in a queue of fifty places."""
    entries = {name: {"on_event": "payments", "queue": "tickets"} for name in names}
    return jobs(entries, sources={"payments": SIGNED}, queues={"tickets": {"concurrency": 50}})


@pytest.fixture
def rig(store: SqlStore) -> Rig:
    rig = Rig(store, text("ticket"))
    for start in range(0, MANY, 50):
        told(rig, *(event(f"e{number}") for number in range(start, start + 50)))
    return rig


def work_off(rig: Rig) -> None:
    for _ in range(MANY):
        rig.tick(seconds=1)
        assert len(rig.executor.live) <= 50
        if not rig.finish():
            return


def handled(rig: Rig) -> Counter[str]:
    """How often each event was handed to a handler that completed."""
    runs = rig.runs("ticket")
    assert not [run for run in runs if run.status is Status.SKIPPED]
    return Counter(rig.run(run.id).payload["event"]["id"] for run in runs if run.status is Status.COMPLETED)


def once() -> Counter[str]:
    return Counter({f"e{number}": 1 for number in range(MANY)})


def test_each_is_handled_once(rig: Rig) -> None:
    work_off(rig)
    assert handled(rig) == once()


def test_across_a_pause(rig: Rig) -> None:
    rig.seconds(2)
    rig.desk.pause(["ticket"], until=None, reason="maintenance", author="me")
    rig.finish()
    rig.seconds(3, finish=True)
    assert rig.executor.live == {}
    rig.desk.resume(["ticket"], author="me")
    work_off(rig)
    assert handled(rig) == once()


def test_when_a_reload_removes_the_job_and_another_brings_it_back(rig: Rig) -> None:
    with pytest.raises(Refused, match="ticket"):
        rig.reload(text("other"))
    rig.tick()
    assert len(rig.executor.live) == 50
    rig.reload(text("other"), drop_pending=True)
    rig.finish()
    rig.tick(seconds=1)
    assert Counter(rig.statuses("ticket")) == {"COMPLETED": 50, "FAILED": MANY - 50}
    rig.reload(text("other", "ticket"))
    with rig.store.queries() as queries:
        page = queries.dead_letters("ticket", limit=10_000)
    letters = [entry.run.id for entry in page.entries if entry.run is not None]
    rig.desk.retry_all(letters, author="me")
    work_off(rig)
    assert handled(rig) == once()
