from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from tests.faces import Faces
from tests.web.client import Client, client_of


@pytest.mark.parametrize("host", ["localhost", "localhost:8780", "127.0.0.1:80", "[::1]:8780", "LocalHost"])
def test_reading_by_this_machines_names(reading: Client, host: str) -> None:
    assert reading.get("/v1/jobs", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "::1", "", "localhost:x", "10.0.0.1"],
)
def test_another_name_is_refused_whatever_is_asked(reading: Client, host: str) -> None:
    for path in ("/v1/jobs", "/metrics", "/nowhere"):
        answer = reading.get(path, headers={"Host": host})
        assert answer.status_code == 403
        assert "localhost" in answer.json()["detail"]


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"])
def test_acting_over_tcp_is_refused(reading: Client, faces: Faces, method: str) -> None:
    answer = reading.request(method, "/v1/jobs/ticket/runs")
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert "Unix socket" in answer.json()["hint"]
    assert faces.rig.runs() == []


def test_the_socket_needs_no_particular_host(acting: Client) -> None:
    assert acting.post("/v1/jobs/ticket/runs", headers={"Host": "whatever"}).status_code == 202


def test_no_page_of_another_origin_may_read(reading: Client) -> None:
    answer = reading.get("/v1/jobs", headers={"Origin": "https://evil.example"})
    assert not [name for name in answer.headers if name.lower().startswith("access-control")]


def test_an_exception_inside_is_a_problem_not_a_hung_up_phone(faces: Faces) -> None:
    def broken() -> bytes:
        raise RuntimeError("secret detail")

    with client_of(faces.with_backend(metrics=broken)) as client, capture_logs() as logs:
        answer = client.get("/metrics")
    assert [(one["event"], one["route"]) for one in logs] == [("request_failed", "/metrics")]
    assert answer.status_code == 500
    assert answer.json()["detail"] == "RuntimeError inside the daemon"
    assert "secret" not in answer.text


def test_unknown_pages_and_methods_are_problems(acting: Client) -> None:
    missing = acting.get("/v2/jobs")
    assert (missing.status_code, missing.headers["content-type"]) == (404, "application/problem+json")
    wrong = acting.post("/v1/jobs")
    assert (wrong.status_code, wrong.headers["content-type"]) == (405, "application/problem+json")
    assert "GET" in wrong.headers["allow"]
