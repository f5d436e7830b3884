"""`/ping/{key}/{job}`: what external jobs tell over HTTP, as other services' clients do it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, MutableMapping
from dataclasses import replace
from typing import Any

import httpx
import pytest
import structlog

from scheduler.core.access import Role
from scheduler.core.errors import DatabaseAway
from scheduler.core.model import Output, Run, Status
from scheduler.core.sign import LONGEST_TEXT, Noted, Sign
from scheduler.store.store import SqlStore
from scheduler.web.app import create_outside
from scheduler.web.outside import Outside
from scheduler.web.pings import BURST
from tests.faces import Faces
from tests.web.client import Client, client_of

TEXT = """
defaults: {timezone: UTC, grace: 15m}
jobs:
  backup: {external: true, schedule: "0 2 * * *"}
  nach tisch: {external: true, schedule: "0 2 * * *"}
  ours: {schedule: "0 2 * * *", command: [x]}
""".replace("nach tisch", "after.lunch-2_b")


class World:
    """One daemon with keys of all roles; `client` comes from somewhere on the internet."""

    def __init__(self, faces: Faces, client: Client) -> None:
        self.faces = faces
        self.client = client
        self.keys = {role: faces.gate.create(f"of-{role}", role, author="ana")[1] for role in Role}
        self.key = self.keys[Role.PING]
        self.counted: list[tuple[str, str, int]] = []

    def ping(self, rest: str = "", job: str = "backup", method: str = "GET", **how: Any) -> httpx.Response:
        return self.client.request(method, f"/ping/{self.key}/{job}{rest}", **how)

    @property
    def runs(self) -> list[Run]:
        return self.faces.rig.runs()

    def output(self, run: str) -> Output | None:
        with self.faces.rig.store.queries() as queries:
            found: Output | None = queries.output(run)
            return found


@pytest.fixture
def logs() -> Iterator[list[MutableMapping[str, Any]]]:
    with structlog.testing.capture_logs() as entries:
        yield entries


@pytest.fixture(params=["tcp", "webhooks"])
def world(request: pytest.FixtureRequest, store: SqlStore, logs: object) -> Iterator[World]:
    """By both doors that strangers may reach."""
    faces = Faces(store, TEXT)
    counted: list[tuple[str, str, int]] = []
    faces.backend = replace(faces.backend, served=lambda *one: counted.append(one[:3]))
    app: Any = faces.apps()[0]
    if request.param == "webhooks":
        app = Outside()
        app.apps = create_outside(faces.backend)
    with client_of(app, base_url="https://sched.example", host="203.0.113.9") as client:
        world = World(faces, client)
        world.counted = counted
        yield world


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
@pytest.mark.parametrize(
    ("rest", "status", "reason", "code"),
    [
        ("", Status.COMPLETED, None, None),
        ("/", Status.COMPLETED, None, None),
        ("/0", Status.COMPLETED, None, 0),
        ("/start", Status.RUNNING, None, None),
        ("/fail", Status.FAILED, "error", None),
        ("/1", Status.FAILED, "exit", 1),
        ("/255", Status.FAILED, "exit", 255),
    ],
)
def test_what_is_told(
    world: World, method: str, rest: str, status: Status, reason: str | None, code: int | None
) -> None:
    answer = world.ping(rest, method=method)
    assert (answer.status_code, answer.text) == (200, "" if method == "HEAD" else "OK")
    assert answer.headers["ping-body-limit"] == "10000"
    assert answer.headers["content-type"].startswith("text/plain")
    (run,) = world.runs
    assert (run.job, run.status, run.reason, run.exit_code) == ("backup", status, reason, code)
    assert (run.author, answer.headers["schedctl-run"]) == ("ping:of-ping", run.id)
    assert world.counted == [("/ping/{key}/{job}", method, 200)]


def test_a_start_and_an_end_are_one_run(world: World) -> None:
    rid = uuid.uuid4()
    world.ping(f"/start?rid={rid}")
    world.faces.rig.turn(seconds=90)
    world.ping(f"/log?rid={rid}", method="POST", content=b"half\n")
    world.ping(f"/0?rid={str(rid).upper()}&took=80.5&create=1", method="POST", content=b"done\n")
    world.ping(f"/1?rid={rid}", method="POST", content=b"told again, otherwise\n")
    (run,) = world.runs
    assert (run.status, run.took, run.key) == (Status.COMPLETED, 80.5, f"ping:{rid}")
    output = world.output(run.id)
    assert output is not None
    assert output.tail == b"half\ndone\n"


def test_the_end_of_a_long_body_is_kept(world: World) -> None:
    body = b"x" * 300_000 + b"the last line\n"
    told: list[Sign] = []
    take = world.faces.rig.signs.take

    def taken(sign: Sign) -> Noted:
        told.append(sign)
        return take(sign)

    world.faces.rig.signs.take = taken  # type: ignore[method-assign]
    assert world.ping("/3", method="POST", content=body).status_code == 200
    assert [(len(one.text), one.omitted) for one in told] == [(LONGEST_TEXT, len(body) - LONGEST_TEXT)]
    (run,) = world.runs
    output = world.output(run.id)
    assert output is not None
    assert (output.tail, output.omitted) == (body[-LONGEST_TEXT:], len(body) - LONGEST_TEXT)


def test_a_form_is_a_text_like_any_other(world: World) -> None:
    """What `curl -d` and `curl --data-raw` send."""
    world.ping(method="POST", content=b"a=1&b", headers={"Content-Type": "application/x-www-form-urlencoded"})
    output = world.output(world.runs[0].id)
    assert output is not None
    assert output.tail == b"a=1&b"


def test_a_line_without_a_run(world: World) -> None:
    answer = world.ping("/log", method="POST", content=b"x")
    assert (answer.status_code, answer.text) == (200, "OK (there is no run that this could be kept with)")
    assert world.runs == []


@pytest.mark.parametrize("job", ["after.lunch-2_b", "after%2Elunch-2_b", "%61fter.lunch-2_b"])
def test_names_may_be_escaped(world: World, job: str) -> None:
    assert world.ping(job=job).status_code == 200
    assert world.runs[0].job == "after.lunch-2_b"


# ------------------------------------------------------------ keys


@pytest.mark.parametrize("job", ["backup", "ours", "nobody"])
@pytest.mark.parametrize("rest", ["", "/start", "/999", "?rid=x"])
def test_without_a_right_key_everything_looks_the_same(world: World, job: str, rest: str) -> None:
    wrong = [
        "sched_" + "x" * 43,
        "x",
        "-",
        world.key[:-1],
        world.key + "x",
        world.keys[Role.READ],
        world.keys[Role.OPERATE],
    ]
    answers = [world.client.get(f"/ping/{key}/{job}{rest}") for key in wrong]
    answers.append(
        world.client.get(f"/ping/-/{job}{rest}", headers={"Authorization": f"Bearer {world.keys[Role.READ]}"})
    )
    assert {(one.status_code, one.text, len(one.headers)) for one in answers} == {(404, "not found", 3)}
    assert world.runs == []


def test_a_key_that_was_revoked_opens_nothing(world: World) -> None:
    assert world.ping().status_code == 200
    world.faces.gate.revoke("of-ping", author="ana")
    assert world.ping().status_code == 404


@pytest.mark.parametrize("role", [Role.PING, Role.OPERATE])
def test_the_key_may_be_in_the_header(world: World, role: Role) -> None:
    answer = world.client.post("/ping/-/backup/start", headers={"Authorization": f"Bearer {world.keys[role]}"})
    assert answer.status_code == 200
    assert world.runs[0].author == ("ping:of-ping" if role is Role.PING else "token:of-operate")


@pytest.mark.parametrize("path", ["/ping/", "/ping/KEY", "/ping/KEY/", "/ping//backup", "/ping/KEY//start"])
def test_paths_without_a_key_or_a_job(world: World, path: str) -> None:
    assert world.client.get(path.replace("KEY", world.key)).status_code == 404
    assert world.runs == []


def test_a_ping_key_opens_nothing_else(world: World) -> None:
    for method, path in (("GET", "/v1/next"), ("POST", "/v1/jobs/backup/pause"), ("POST", "/v1/reload")):
        answer = world.client.request(method, path, headers={"Authorization": f"Bearer {world.key}"})
        assert answer.status_code in (403, 404), path


def test_the_key_is_nowhere(world: World, logs: list[MutableMapping[str, Any]]) -> None:
    for rest in ("", "/start", "/log", "/x", "/256", "?rid=x", "/a/b"):
        for job in ("backup", "ours", "nobody", world.key):
            answer = world.ping(rest, job=job)
            assert world.key not in answer.text
            assert world.key not in str(answer.headers)
    for _ in range(BURST + 5):
        world.ping()
    world.faces.rig.store.away = True
    world.ping()
    world.faces.rig.store.away = False
    told = json.dumps([logs, world.counted, [dict(one.fields) for one in world.faces.rig.notices]], default=str)
    assert world.key not in told
    assert {one[0] for one in world.counted} == {"/ping/{key}/{job}"}
    assert all(world.key not in str(run) for run in world.runs)


def test_what_goes_wrong_inside_tells_nothing(world: World, logs: list[MutableMapping[str, Any]]) -> None:
    def broken(sign: Any) -> Any:
        raise RuntimeError("broken inside")

    world.faces.rig.signs.take = broken  # type: ignore[method-assign]
    answer = world.ping()
    assert (answer.status_code, answer.text, "retry-after" in answer.headers) == (503, "try again later", True)
    (line,) = [one for one in logs if one["event"] == "request_failed"]
    assert world.key not in str(line)


# ------------------------------------------------------------ refused


@pytest.mark.parametrize(
    ("rest", "says"),
    [
        ("/256", "exit code from 0 to 255"),
        ("/-1", "exit code from 0 to 255"),
        ("/0000", "exit code from 0 to 255"),
        ("/²", "exit code from 0 to 255"),
        ("/stop", "nothing, start, fail, log"),
        ("/start/now", "nothing, start, fail, log"),
        ("?rid=17", "`rid` is no UUID"),
        ("?took=x", "`took` is a number of seconds"),
        ("?ago=-1", "`ago` is a number of seconds"),
        ("?ago=nan", "`ago` is a number of seconds"),
        ("?ago=1e99", "`ago` is a number of seconds"),
        ("/start?took=3", "`took` goes with the end"),
    ],
)
def test_what_cannot_be_understood_is_400_and_says_why(world: World, rest: str, says: str) -> None:
    answer = world.ping(rest)
    assert (answer.status_code, says in answer.text) == (400, True), answer.text
    assert world.runs == []


def test_an_unknown_job_and_one_of_ours(world: World) -> None:
    assert world.ping(job="nobody").status_code == 404
    assert "there is no such job" in world.ping(job="nobody").text
    refused = world.ping(job="ours")
    assert (refused.status_code, "ours runs here" in refused.text) == (409, True)


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH"])
def test_other_methods(world: World, method: str) -> None:
    answer = world.ping(method=method)
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD, POST")
    assert world.counted[-1] == ("/ping/{key}/{job}", "other", 405)


def test_one_job_that_pings_without_end_is_slowed_down_alone(world: World) -> None:
    answers = [world.ping() for _ in range(BURST + 3)]
    assert [one.status_code for one in answers[:BURST]] == [200] * BURST
    assert answers[-1].status_code == 429
    assert int(answers[-1].headers["retry-after"]) >= 1
    assert world.ping(job="after.lunch-2_b").status_code == 200


def test_while_the_database_is_away(world: World) -> None:
    assert world.ping().status_code == 200
    world.faces.rig.store.away = True
    for key in (world.key, "sched_" + "y" * 43):
        answer = world.client.get(f"/ping/{key}/backup")
        if key == world.key:
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
            assert answer.text == "try again later"
        else:
            assert answer.status_code in (404, 503)
    world.faces.rig.store.away = False
    assert world.ping().status_code == 200
    assert len(world.runs) == 2


def test_a_key_that_nobody_can_look_up_is_not_called_wrong(world: World) -> None:
    def away() -> None:
        raise DatabaseAway("away")

    world.faces.rig.turn(minutes=1)
    world.faces.gate.refresh = away  # type: ignore[method-assign]
    answer = world.client.get("/ping/sched_" + "y" * 43 + "/backup")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")


# ------------------------------------------------------------ the socket


def test_on_the_socket_nobody_needs_a_key(store: SqlStore) -> None:
    faces = Faces(store, TEXT)
    with client_of(faces.apps()[1], host="ana") as client:
        assert client.post("/ping/-/backup/start").status_code == 200
    assert faces.rig.runs()[0].author == "ana"


def test_the_run_is_shown_like_any_other(store: SqlStore) -> None:
    faces = Faces(store, TEXT)
    with client_of(faces.apps()[1], host="ana") as client:
        run = client.post("/ping/-/backup/start", content=b"begun\n").headers["schedctl-run"]
        shown = client.get(f"/v1/runs/{run}").json()
        assert (shown["status"], shown["node"], shown["queue"]) == ("RUNNING", "elsewhere", "")
        assert client.get(f"/v1/runs/{run}/log").text == "begun\n"
        assert client.get("/v1/jobs/backup").json()["job"]["state"] == "running"
        assert client.post(f"/v1/runs/{run}/cancel").status_code == 409
        assert client.post("/v1/jobs/backup/runs", json={}).status_code == 409
        client.post("/ping/-/backup/3", content=b"ended\n")
        assert client.get(f"/v1/runs/{run}").json()["error"] == "exit code 3"


def test_a_job_says_that_it_runs_elsewhere_and_when_it_is_expected(store: SqlStore) -> None:
    faces = Faces(store, TEXT)
    with client_of(faces.apps()[1], host="ana") as client:
        shown = {one["name"]: one for one in client.get("/v1/jobs").json()["jobs"]}
        assert (shown["backup"]["external"], shown["backup"]["next_run_at"]) == (True, "2026-03-03T02:00:00Z")
        assert (shown["ours"]["external"], shown["ours"]["next_run_at"]) == (False, "2026-03-03T02:00:00Z")
