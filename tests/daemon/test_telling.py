"""A real daemon tells people, through real sockets."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from tests.crash.world import World
from tests.daemon.conftest import Make
from tests.observe.channels.receiver import Receiver, receiver
from tests.until import until


@pytest.fixture
def web() -> Iterator[Receiver]:
    with receiver() as found:
        yield found


def text(web: Receiver, jobs: dict[str, Any], **channels: Any) -> str:
    hook = {"hook": {"http": {"url": web.url("/hook")}}, **channels}
    return json.dumps({"defaults": {"timezone": "UTC"}, "notify": hook, "jobs": jobs})


def notifications(world: World) -> list[dict[str, Any]]:
    """Oldest first."""
    status, body = world.ask("GET", "/v1/notifications?limit=1000")
    assert status == 200
    return list(reversed(json.loads(body)["notifications"]))


def test_a_miss_is_handed_to_its_channel_within_two_seconds(make_world: Make, web: Receiver) -> None:
    """Of three, which come apart, the one in the middle: the machine may have other things to do for a moment."""
    job = {"schedule": "* * * * * *", "command": "exit 1", "alert_after": 1000, "notify": {"hook": "missed"}}
    jobs = {f"job-{grace}": {**job, "grace": f"{grace}s"} for grace in (2, 6, 10)}
    world = make_world(text(web, jobs), SCHEDULER_PUBLIC_URL="https://cron.example.com")
    world.start()
    until(lambda: len(web.got) >= 3, 60)
    told = [one.json() for one in web.got[:3]]
    assert [one["title"] for one in told] == [f"✗ job-{grace}: MISSED" for grace in (2, 6, 10)]
    assert told[0]["link"] == "https://cron.example.com/v1/jobs/job-2"
    late = sorted(one.at - datetime.fromisoformat(one.json()["since"]).timestamp() for one in web.got[:3])
    assert late[0] >= 0
    assert late[1] <= 2.0, late
    assert world.stop() == 0


def test_what_was_announced_is_told_through_kill_9_and_repeated_once_at_most(make_world: Make, web: Receiver) -> None:
    job = {"command": "exit 3", "notify": ["hook"]}
    world = make_world(text(web, {"backup": job}))
    world.start()
    web.hanging.clear()
    assert world.ask("POST", "/v1/jobs/backup/runs", {})[0] == 202
    until(lambda: web.got)
    world.kill()
    web.hanging.set()
    world.start()
    until(lambda: [one["status"] for one in notifications(world)] == ["sent"])
    assert [one.json()["title"] for one in web.got] == ["✗ backup: FAILED"] * 2
    world.kill()
    world.start()
    assert world.ask("POST", "/v1/jobs/backup/runs", {})[0] == 202
    assert world.ask("POST", "/v1/channels/hook/test", {})[0] == 200
    until(lambda: len(web.got) == 3)
    assert "a test" in web.got[2].json()["title"]


def test_a_channel_that_hangs_or_lacks_its_secret_harms_nobody_and_is_seen(make_world: Make, web: Receiver) -> None:
    with receiver() as dead:
        dead.hanging.clear()
        jobs = {"work": {"command": "echo done", "notify": dict.fromkeys(("hook", "dead", "lacks"), "completed")}}
        channels = {"dead": {"http": {"url": dead.url("/x")}}, "lacks": {"url": {"env": "NOT_THERE"}}}
        world = make_world(text(web, jobs, **channels))
        world.start()
        for number in range(3):
            assert world.ask("POST", "/v1/jobs/work/runs", {})[0] == 202
            until(lambda number=number: len(web.got) == number + 1)
        _, body = world.ask("GET", "/v1/status")
        problems = {one["about"]: one for one in json.loads(body)["problems"]}
        assert "NOT_THERE" in problems["lacks"]["what"]
        assert problems["lacks"]["command"] == "schedctl notify test lacks"
        assert world.ask("GET", "/readyz")[0] == 200
        dead.hanging.set()
        until(lambda: all(one["status"] == "sent" for one in notifications(world) if one["channel"] == "dead"))
    assert world.stop() == 0


def test_a_daemon_that_tells_nobody_loads_nothing_for_it() -> None:
    script = "import scheduler.app, sys; print(sorted({'apprise', 'requests', 'httpx'} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
