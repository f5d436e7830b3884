"""Who may see and do what."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from typing import Any

import pytest

from scheduler.core.access import Access, Role
from scheduler.core.errors import Unavailable
from scheduler.core.model import FailReason
from scheduler.core.outcome import Failed, Succeeded
from scheduler.core.remark import Remark
from scheduler.web.app import OPERATIONS
from scheduler.web.operation import Operation
from tests.faces import Faces
from tests.web.client import Client, client_of

SECRET = "geheim"
JOBS = f"""
version: 1
defaults: {{timezone: UTC}}
jobs:
  private:
    description: about {SECRET}
    schedule: "* * * * *"
    command: [do, {SECRET}]
    env: {{WORD: {SECRET}}}
    runbook: "https://wiki/{SECRET}"
    grace: 1m
  ticket:
    command: [ticket]
"""
PATHS = {
    "{name}": "private",
    "{run}": "private",
    "{token}": "nobody",
    "{queue}": "default",
}
"""What stands for the parameters of a path."""

ASKED: dict[Access, set[str]] = {
    Access.ANYBODY: {
        "GET /healthz",
        "GET /readyz",
        "GET /metrics",
        "GET /openapi.json",
        "GET /signin",
        "POST /signin",
        "POST /signout",
    },
    Access.FACTS: {
        "GET /v1/status",
        "GET /v1/nodes",
        "GET /v1/queues",
        "GET /v1/jobs",
        "GET /v1/jobs/{name}",
        "GET /v1/runs",
        "GET /v1/runs/{run}",
        "GET /v1/runs/{run}/status",
    },
    Access.READ: {
        "GET /v1/generations",
        "GET /v1/dead-letters",
        "GET /v1/notifications",
        "GET /v1/database",
        "GET /v1/next",
        "GET /v1/audit",
        "GET /v1/effective",
        "GET /v1/events",
        "GET /v1/events/{source}/{id}",
        "GET /v1/rejects",
        "GET /v1/scans",
        "GET /v1/runs/{run}/log",
        "GET /v1/runs/{run}/stream",
        "GET /v1/stream",
    },
    Access.OPERATE: {
        "GET /v1/configuration",
        "POST /v1/jobs/{name}/runs",
        "POST /v1/jobs/{name}/pause",
        "POST /v1/jobs/{name}/resume",
        "POST /v1/pause",
        "POST /v1/resume",
        "POST /v1/reload",
        "POST /v1/runs/{run}/cancel",
        "POST /v1/runs/{run}/retry",
        "POST /v1/jobs/{name}/ack",
        "POST /v1/jobs/{name}/backfill",
        "POST /v1/jobs/{name}/cancel",
        "POST /v1/dead-letters/discard",
        "POST /v1/dead-letters/retry",
        "POST /v1/events/{id}/replay",
        "POST /v1/events/{source}/{id}/replay",
        "POST /v1/sources/{source}/reverify",
        "POST /v1/channels/{channel}/test",
        "POST /v1/sources/{source}/test",
        "POST /v1/rates/{queue}/take",
    },
    Access.LOCAL: {"GET /v1/tokens", "POST /v1/tokens", "POST /v1/tokens/{token}/revoke", "POST /v1/sign-in-links"},
}
"""Written down once more, so that nothing changes its access by accident."""


def path_of(operation: Operation) -> str:
    path = operation.path
    for parameter, value in PATHS.items():
        path = path.replace(parameter, value)
    return path


@pytest.fixture
def faces(store: Any) -> Faces:
    return Faces(store, JOBS)


Over = Callable[..., Client]


@pytest.fixture
def over_tcp(faces: Faces) -> Iterator[Over]:
    """Clients of the TCP face, by address and headers."""
    with ExitStack() as stack:

        def make(host: str = "127.0.0.1", **headers: str) -> Client:
            client = stack.enter_context(client_of(faces.apps()[0], host=host))
            client.headers.update(headers)
            return client

        yield make


def bearer(faces: Faces, role: Role, name: str = "robot", **how: Any) -> dict[str, str]:
    _, secret = faces.gate.create(name, role, author="test", **how)
    return {"Authorization": f"Bearer {secret}"}


def make_history(acting: Client, faces: Faces) -> None:
    """Runs and skips in every state, each with something private in it."""
    rig = faces.rig
    rig.tick(minutes=1)
    (run,) = rig.runs("private")
    faces.live[run.id] = f"printing {SECRET}".encode()
    rig.executor.finish(run.id, Failed(FailReason.EXIT, f"exit 1: {SECRET}", exit_code=1))
    rig.tick(seconds=1)
    rig.tick(minutes=1)
    rig.finish(Succeeded(result={"word": SECRET}))
    acting.post("/v1/jobs/ticket/runs", json={"payload": SECRET, "reason": SECRET})
    rig.tick()
    rig.finish(Failed(FailReason.EXIT, SECRET, exit_code=1, retryable=False))
    made = acting.post("/v1/jobs/ticket/runs", json={"payload": {"word": SECRET}, "reason": SECRET}).json()
    acting.post(f"/v1/runs/{made['run_id']}/cancel", json={"reason": SECRET})
    acting.post("/v1/jobs/ticket/runs", json={"payload": {"word": SECRET}}, headers={"Idempotency-Key": SECRET})
    acting.post("/v1/jobs/private/pause", json={"reason": SECRET})
    rig.tick(minutes=3)
    acting.post("/v1/jobs/ticket/pause", json={"reason": SECRET, "until": "2026-03-02T20:00:00Z"})
    with rig.store.begin() as tx:
        tx.jobs.set_alarm("private", f"planning failed: {SECRET}", enabled=True)
    faces.said.append(Remark("configuration", f"the last reload was refused: {SECRET}", None, SECRET))


def test_every_operation_asks_for_what_it_should() -> None:
    found: dict[Access, set[str]] = {access: set() for access in Access}
    for operation in OPERATIONS:
        found[operation.access].add(f"{operation.method} {operation.path}")
    assert found == ASKED


def test_nothing_that_somebody_wrote_printed_or_sent_is_told_without_a_token(
    acting: Client, faces: Faces, over_tcp: Over
) -> None:
    make_history(acting, faces)
    faces.hub.close()  # Streams end at once.
    stranger, ping = over_tcp(), over_tcp(**bearer(faces, Role.PING))
    told = told_to_reader = 0
    reader = over_tcp(**bearer(faces, Role.READ, "reader"))
    for operation in OPERATIONS:
        if operation.method != "GET" or operation.access is Access.LOCAL:
            continue
        paths = [path_of(operation)]
        if "{run}" in operation.path:
            paths += [operation.path.replace("{run}", run.id) for run in faces.rig.runs()]
        for path in paths:
            for client in (stranger, ping):
                answer = client.get(path)
                assert SECRET not in answer.text + str(answer.headers), (path, answer.text)
                told += answer.status_code == 200
            told_to_reader += SECRET in reader.get(path).text
    assert told >= 40, "the facts are told"
    assert told_to_reader >= 12, "there was something to hide"


def test_facts_are_told(acting: Client, faces: Faces, reading: Client) -> None:
    make_history(acting, faces)
    runs = reading.get("/v1/runs?skips=false").json()["entries"]
    assert [run["status"] for run in runs] == ["RUNNING", "CANCELED", "FAILED", "COMPLETED", "FAILED"]
    assert [run["reason"] for run in runs] == [None, None, "exit", None, "exit"]
    assert runs[3]["started_at"] == "2026-03-02T08:02:01Z"
    assert runs[3]["result"] is None
    job = reading.get("/v1/jobs/private").json()["job"]
    assert (job["name"], job["state"], job["schedule"]) == ("private", "alarm", ["* * * * *"])
    assert job["definition"] is None
    assert job["pause"]["from"] is not None
    assert job["pause"]["reason"] is None
    status = reading.get("/v1/status").json()
    assert status["states"]["alarm"] == 1
    assert {problem["kind"] for problem in status["problems"]} >= {"alarm", "daemon"}
    assert status["checks"] == {"loops": "ok", "database": "ok"}


@pytest.mark.parametrize(
    "operation",
    [one for one in OPERATIONS if one.path != "/signin"],
    ids=lambda one: f"{one.method} {one.path}",
)
def test_who_may_what(operation: Operation, faces: Faces, over_tcp: Over, acting: Client) -> None:
    """The refusals; what is not refused may still find nothing."""
    faces.hub.close()  # Streams end at once.
    method, path = operation.method, path_of(operation)
    refused = {
        "nobody": over_tcp().request(method, path).status_code in (401, 403),
        "unknown": over_tcp(Authorization="Bearer sched_made_up").request(method, path).status_code == 401,
        "acting": acting.request(method, path).status_code in (401, 403),
    }
    for role in Role:
        answer = over_tcp(**bearer(faces, role, role)).request(method, path)
        refused[role] = answer.status_code == 403
    asks = operation.access
    assert refused == {
        "nobody": asks > Access.FACTS or path == "/signout",
        "unknown": True,
        "acting": False,
        "ping": asks > Access.FACTS,
        "read": asks > Access.READ,
        "operate": asks > Access.OPERATE,
    }


def test_a_refusal_says_how_to_be_let_in(faces: Faces, over_tcp: Over) -> None:
    answer = over_tcp().get("/v1/runs/private/log")
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert "--role read" in answer.json()["hint"]
    answer = over_tcp(**bearer(faces, Role.READ)).post("/v1/reload")
    assert "takes role operate" in answer.json()["detail"]


def test_who_acts_with_a_token_is_known_by_its_name(faces: Faces, over_tcp: Over) -> None:
    client = over_tcp(**bearer(faces, Role.OPERATE, "the shop"))
    assert client.post("/v1/jobs/ticket/runs", json={"payload": 1}).status_code == 202
    (run,) = faces.rig.runs("ticket")
    assert run.author == "token:the shop"


@pytest.mark.parametrize("host", ["evil.example", "10.0.0.1:8780"])
def test_with_a_token_the_host_does_not_matter(faces: Faces, over_tcp: Over, host: str) -> None:
    client = over_tcp(**bearer(faces, Role.READ))
    assert client.get("/v1/runs", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic c2NoZWQ6eA==", "Bearer a b", "Bearer \xe9"])
def test_a_header_that_holds_no_token_is_not_taken_for_none(over_tcp: Over, header: str) -> None:
    """Whoever tries to say who he is must not silently be treated as a stranger."""
    assert over_tcp().get("/v1/jobs", headers={"Authorization": header.encode("latin-1")}).status_code == 401


@pytest.mark.parametrize("path", ["/v1/jobs", "/metrics", "/nowhere", "/v1/runs/private/log"])
def test_from_another_machine_everything_needs_a_token(faces: Faces, over_tcp: Over, path: str) -> None:
    away = over_tcp("192.0.2.7")
    assert away.get(path, headers={"Host": "localhost"}).status_code == 401
    assert away.get("/healthz", headers={"Host": "schedulerd.example"}).status_code == 200
    assert away.get("/readyz").status_code == 200
    assert away.get("/signin").status_code == 200
    known = over_tcp("192.0.2.7", **bearer(faces, Role.READ))
    assert known.get("/metrics").status_code == 200


def test_too_many_strangers_are_told_to_come_back(
    faces: Faces, over_tcp: Over, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduler.web.guard.MOST_STRANGERS", 0)
    answer = over_tcp().get("/v1/jobs")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
    assert over_tcp(**bearer(faces, Role.READ)).get("/v1/jobs").status_code == 200


# ------------------------------------------------------------ tokens


def test_a_token_is_made_used_listed_and_revoked(acting: Client, over_tcp: Over) -> None:
    made = acting.post("/v1/tokens", json={"name": "grafana", "role": "read"})
    assert made.status_code == 201
    secret = made.json()["secret"]
    client = over_tcp(Authorization=f"Bearer {secret}")
    assert client.get("/v1/generations").status_code == 200
    assert client.post("/v1/reload").status_code == 403
    (listed,) = acting.get("/v1/tokens").json()["tokens"]
    assert (listed["name"], listed["role"], listed["live"], listed["author"]) == ("grafana", "read", True, "ana")
    assert secret not in acting.get("/v1/tokens").text
    revoked = acting.post("/v1/tokens/grafana/revoke").json()["token"]
    assert revoked["live"] is False
    assert client.get("/v1/generations").status_code == 401
    assert acting.post("/v1/tokens/grafana/revoke").status_code == 404
    assert acting.post("/v1/tokens", json={"name": "grafana", "role": "ping"}).status_code == 201


def test_a_name_is_given_once(acting: Client) -> None:
    assert acting.post("/v1/tokens", json={"name": "a", "role": "read"}).status_code == 201
    answer = acting.post("/v1/tokens", json={"name": "a", "role": "read"})
    assert (answer.status_code, "revoke a" in answer.json()["hint"]) == (409, True)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": "a"},
        {"role": "read"},
        {"name": "", "role": "read"},
        {"name": " a", "role": "read"},
        {"name": "a\n", "role": "read"},
        {"name": "a" * 101, "role": "read"},
        {"name": "a", "role": "root"},
        {"name": "a", "role": "read", "lifetime": "5"},
        {"name": "a", "role": "read", "lifetime": "0s"},
        {"name": "a", "role": "read", "lifetime": "999999d"},
    ],
)
def test_what_is_no_token_is_refused(acting: Client, body: dict[str, str]) -> None:
    assert acting.post("/v1/tokens", json=body).status_code == 422
    assert acting.get("/v1/tokens").json()["tokens"] == []


def test_a_token_expires(acting: Client, faces: Faces, over_tcp: Over) -> None:
    client = over_tcp(**bearer(faces, Role.READ, lifetime=timedelta(hours=1)))
    assert client.get("/v1/generations").status_code == 200
    faces.rig.clock.turn(minutes=59)
    assert client.get("/v1/generations").status_code == 200
    faces.rig.clock.turn(minutes=1)
    assert client.get("/v1/generations").status_code == 401
    assert [one["live"] for one in acting.get("/v1/tokens").json()["tokens"]] == [False]


def test_no_secret_is_kept(faces: Faces, over_tcp: Over, store: Any) -> None:
    _, secret = faces.gate.create("a", Role.READ, author="test")
    assert over_tcp(Authorization=f"Bearer {secret}").get("/v1/runs").status_code == 200
    with faces.rig.store.read() as tx:
        (digest,) = tx.tokens.all()
    assert len(digest) == 64
    files = store._database._path.parent.iterdir()
    assert not any(secret.encode() in file.read_bytes() for file in files if file.is_file())


def test_another_node_hears_of_it_within_seconds(faces: Faces, over_tcp: Over) -> None:
    from scheduler.engine.gate import TokenGate

    other = TokenGate(faces.rig.store, faces.rig.clock, faces.rig.bus)
    client = over_tcp(**bearer(faces, Role.READ, "a"))
    assert client.get("/v1/generations").status_code == 200
    other.revoke("a", author="test")
    faces.rig.clock.turn(seconds=6)
    assert client.get("/v1/generations").status_code == 401


def test_without_the_database_those_who_are_known_stay_known(faces: Faces, over_tcp: Over) -> None:
    client = over_tcp(**bearer(faces, Role.READ))
    assert client.get("/v1/effective").status_code == 200
    faces.rig.store.away = True
    faces.rig.clock.turn(hours=1)
    assert client.get("/v1/effective").status_code == 200
    assert over_tcp(Authorization="Bearer sched_x").get("/v1/effective").status_code == 401
    with pytest.raises(Unavailable):
        faces.gate.create("b", Role.READ, author="test")


def test_it_is_known_when_a_token_was_used(acting: Client, faces: Faces, over_tcp: Over) -> None:
    client = over_tcp(**bearer(faces, Role.READ))
    assert acting.get("/v1/tokens").json()["tokens"][0]["used_at"] is None
    for _ in range(2):
        client.get("/v1/runs")
        faces.rig.clock.turn(seconds=10)
    assert acting.get("/v1/tokens").json()["tokens"][0]["used_at"] is not None


# ------------------------------------------------------------ browsers


def cookie_of(answer: Any) -> dict[str, str]:
    return {"Cookie": answer.headers["set-cookie"].partition(";")[0]}


def sign_in(client: Client, secret: str) -> Any:
    return client.post("/signin", data={"token": secret})


def test_a_browser_signs_in_with_a_token(faces: Faces, over_tcp: Over) -> None:
    browser = over_tcp()
    _, secret = faces.gate.create("ana", Role.OPERATE, author="test")
    answer = sign_in(browser, secret)
    assert answer.status_code == 200
    flags = answer.headers["set-cookie"].lower()
    assert all(flag in flags for flag in ("httponly", "samesite=strict", "path=/", "max-age=43200"))
    assert secret not in answer.headers["set-cookie"]
    cookie = cookie_of(answer)
    assert browser.get("/v1/generations", headers=cookie).status_code == 200
    origin = {"Origin": "http://localhost"}
    assert browser.post("/v1/jobs/ticket/runs", json={"payload": 1}, headers=cookie | origin).status_code == 202
    assert faces.rig.runs("ticket")[0].author == "web:ana"


@pytest.mark.parametrize("origin", [{}, {"Origin": "null"}, {"Origin": "https://evil.example"}, {"Origin": ""}])
def test_a_page_of_another_origin_cannot_act(faces: Faces, over_tcp: Over, origin: dict[str, str]) -> None:
    browser = over_tcp()
    _, secret = faces.gate.create("ana", Role.OPERATE, author="test")
    cookie = cookie_of(sign_in(browser, secret))
    answer = browser.post("/v1/jobs/ticket/runs", json={"payload": 1}, headers=cookie | origin)
    assert answer.status_code == 403
    assert faces.rig.runs("ticket") == []


def test_a_wrong_token_signs_nobody_in(over_tcp: Over) -> None:
    many = over_tcp().post("/signin", data={f"field{number}": "x" for number in range(20)})
    assert (many.status_code, "set-cookie" in many.headers) == (400, False)
    for data in ({"token": "sched_wrong"}, {"token": ""}, {"token": "\xff"}, {}):
        answer = over_tcp().post("/signin", data=data)
        assert answer.status_code == 401
        assert "set-cookie" not in answer.headers


def test_a_session_ends_with_its_token_by_signing_out_and_by_itself(faces: Faces, over_tcp: Over) -> None:
    browser = over_tcp()
    _, secret = faces.gate.create("ana", Role.READ, author="test")
    first, second, third = (cookie_of(sign_in(browser, secret)) for _ in range(3))
    assert browser.post("/signout", headers=first | {"Origin": "http://localhost"}).status_code == 200
    assert browser.get("/v1/generations", headers=first).status_code == 401
    assert browser.get("/v1/generations", headers=second).status_code == 200
    faces.rig.clock.turn(hours=12)
    assert browser.get("/v1/generations", headers=second).status_code == 401
    fourth = cookie_of(sign_in(browser, secret))
    assert browser.get("/v1/generations", headers=fourth).status_code == 200
    faces.gate.revoke("ana", author="test")
    assert browser.get("/v1/generations", headers=fourth).status_code == 401
    assert browser.get("/v1/generations", headers=third).status_code == 401


def test_a_session_does_not_outlive_its_token(faces: Faces, over_tcp: Over) -> None:
    browser = over_tcp()
    _, secret = faces.gate.create("ana", Role.READ, author="test", lifetime=timedelta(hours=1))
    cookie = cookie_of(sign_in(browser, secret))
    assert browser.get("/v1/generations", headers=cookie).status_code == 200
    faces.rig.clock.turn(hours=1)
    assert browser.get("/v1/generations", headers=cookie).status_code == 401


def test_a_session_makes_no_sessions(faces: Faces, over_tcp: Over) -> None:
    browser = over_tcp()
    _, secret = faces.gate.create("ana", Role.READ, author="test")
    cookie = cookie_of(sign_in(browser, secret))["Cookie"].partition("=")[2]
    assert sign_in(browser, cookie).status_code == 401


def test_a_link_signs_in_once_and_for_ten_minutes(acting: Client, faces: Faces, over_tcp: Over) -> None:
    browser = over_tcp()
    path = acting.post("/v1/sign-in-links").json()["path"]
    answer = browser.get(path)
    assert answer.status_code == 200
    assert browser.get("/v1/configuration", headers=cookie_of(answer)).status_code == 200
    again = browser.get(path)
    assert (again.status_code, "set-cookie" in again.headers) == (401, False)
    path = acting.post("/v1/sign-in-links").json()["path"]
    faces.rig.clock.turn(minutes=11)
    assert browser.get(path).status_code == 401


def test_a_name_cannot_write_html(faces: Faces, over_tcp: Over) -> None:
    _, secret = faces.gate.create("<script>x</script>", Role.READ, author="test")
    answer = sign_in(over_tcp(), secret)
    assert "<script>" not in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]
