from __future__ import annotations

from contextlib import AbstractContextManager

from scheduler.core.errors import DatabaseAway, Unavailable
from scheduler.core.queries import DatabaseStatus, Queries
from scheduler.core.remark import Remark
from tests.engine.doubles import START
from tests.faces import Faces
from tests.web.client import Client, client_of


class Gone:
    """A database that is away."""

    def queries(self) -> AbstractContextManager[Queries]:
        raise DatabaseAway("the database does not answer", hint="wait")

    def db_status(self) -> DatabaseStatus:
        return DatabaseStatus("postgresql", "pg", None, None, None, None, "no answer", "wait", "pg_isready")


def test_healthz_says_the_process_is_there(reading: Client) -> None:
    assert reading.get("/healthz").json() == {"status": "ok", "version": "9.9"}


def test_readyz_gives_reasons(reading: Client, faces: Faces) -> None:
    assert reading.get("/readyz").status_code == 200
    faces.sick["loops"] = "no turn for 40 s"
    answer = reading.get("/readyz")
    assert answer.status_code == 503
    assert answer.json() == {"status": "not ready", "checks": {"loops": "no turn for 40 s", "database": "ok"}}


def test_a_check_that_breaks_is_not_ready(faces: Faces) -> None:
    def broken() -> str | None:
        raise ValueError("oops")

    with client_of(faces.with_backend(checks={"it": broken})) as client:
        answer = client.get("/readyz")
    assert answer.status_code == 503
    assert "ValueError: oops" in answer.json()["checks"]["it"]


def test_metrics_are_served_as_prometheus_wants_them(reading: Client) -> None:
    answer = reading.get("/metrics")
    assert answer.text == "# metrics\n"
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")


def test_without_the_database_health_and_metrics_answer_and_the_rest_says_why(faces: Faces) -> None:
    with client_of(faces.with_backend(readable=Gone())) as client:
        assert client.get("/healthz").status_code == 200
        assert client.get("/metrics").status_code == 200
        assert client.get("/v1/status").json()["ok"] is False
        for path in ("/v1/jobs", "/v1/runs", "/v1/nodes"):
            answer = client.get(path)
            assert answer.status_code == 503
            assert answer.headers["retry-after"] == "2"
            assert answer.json()["hint"] == "wait; what to look at: `schedctl db status`"
        found = client.get("/v1/database").json()
        assert (found["away"], found["look"], found["rows"]) == ("no answer", "pg_isready", None)


def test_what_else_is_away_is_not_looked_for_in_the_database(faces: Faces) -> None:
    def missing() -> None:
        raise Unavailable("no configuration is in force yet", hint="try again in a moment")

    with client_of(faces.with_backend(configuration=missing)) as client:
        answer = client.get("/v1/next")
    assert (answer.status_code, answer.json()["hint"]) == (503, "try again in a moment")


def test_status_of_a_healthy_daemon(acting: Client) -> None:
    status = acting.get("/v1/status").json()
    assert status["ok"] is True
    assert status["problems"] == []
    assert status["jobs"] == 4
    assert status["next_run_at"] == "2026-03-02T08:01:00Z"


def test_status_names_what_is_wrong_since_when_and_what_to_type(acting: Client, faces: Faces) -> None:
    from scheduler.core.model import FailReason
    from scheduler.core.outcome import Failed

    faces.rig.tick(minutes=1)
    faces.rig.executor.finish_all(Failed(FailReason.EXIT, "exit 1", exit_code=1))
    faces.rig.tick(seconds=1)
    (problem,) = acting.get("/v1/status").json()["problems"]
    assert (problem["kind"], problem["job"], problem["what"]) == ("failing", "minutely", "failed at its last run")
    assert problem["since"] == "2026-03-02T08:01:00Z"
    assert problem["last_line"] == "printed"
    assert problem["command"] == f"schedctl logs {problem['run_id'][-8:]}"
    faces.rig.clock.turn(minutes=15)
    assert [one["kind"] for one in acting.get("/v1/status").json()["problems"]] == ["missed"]


def test_status_tells_of_dead_letters_and_remarks(acting: Client, faces: Faces) -> None:
    from scheduler.core.model import FailReason
    from scheduler.core.outcome import Failed

    acting.post("/v1/jobs/ticket/runs", json={"payload": 1})
    faces.rig.tick()
    faces.rig.executor.finish_all(Failed(FailReason.EXIT, "exit 1", retryable=False))
    faces.rig.tick(seconds=1)
    faces.sick["database"] = "slow"  # The node tells itself what follows from what.
    faces.said.append(Remark("configuration", "the file was not taken", START, "schedctl reload"))
    status = acting.get("/v1/status").json()
    assert status["ok"] is False
    assert status["dead_letters"] == 1
    kinds = [problem["kind"] for problem in status["problems"]]
    assert kinds == ["daemon", "failing"]
    of_daemon = [(one["about"], one["what"], one["since"], one["command"]) for one in status["problems"][:1]]
    assert of_daemon == [
        ("configuration", "the file was not taken", "2026-03-02T08:00:00Z", "schedctl reload"),
    ]
    what = "failed at its last run; 1 dead letter (schedctl dead-letters list --job ticket)"
    assert status["problems"][1]["what"] == what
    letters = acting.get("/v1/dead-letters").json()["entries"]
    assert [letter["payload"] for letter in letters] == [1]


def test_a_check_that_a_remark_is_about_is_not_told_twice(acting: Client, faces: Faces) -> None:
    faces.sick["database"] = "the database does not answer: disk is full"
    faces.said.append(Remark("database", "disk is full (worker waits for it)", START, "schedctl db status"))
    status = acting.get("/v1/status").json()
    assert [one["what"] for one in status["problems"]] == ["disk is full (worker waits for it)"]
    assert status["checks"]["database"] == "the database does not answer: disk is full"


def test_every_answer_is_heard_of_by_its_declared_path(faces: Faces) -> None:
    heard: list[tuple[str, str, int]] = []

    def served(route: str, method: str, status: int, seconds: float) -> None:
        assert 0 <= seconds < 60
        heard.append((route, method, status))

    def broken() -> bytes:
        raise ValueError("oops")

    with client_of(faces.with_backend(served=served, metrics=broken)) as client:
        client.get("/v1/jobs/report")
        client.request("HEAD", "/v1/jobs/report")
        client.get("/v1/jobs/nobody")
        client.get("/v1/jobs/report?nonsense=1")
        client.get("/../etc/passwd")
        client.request("DELETE", "/v1/jobs/report")
        assert client.get("/metrics").status_code == 500
    assert heard == [
        ("/v1/jobs/{name}", "GET", 200),
        ("/v1/jobs/{name}", "GET", 200),
        ("/v1/jobs/{name}", "GET", 404),
        ("/v1/jobs/{name}", "GET", 422),
        ("other", "other", 404),
        ("other", "other", 405),
        ("/metrics", "GET", 500),
    ]
