"""Any bytes in: a clean 4xx, never a 500, and nothing happens by accident."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler.web.enqueue import BATCH_LIMIT
from scheduler.web.inputs import BODY_LIMIT
from tests.faces import Faces
from tests.web.client import Client

POSTS = (
    "/v1/jobs/ticket/runs",
    "/v1/jobs/ticket/pause",
    "/v1/jobs/ticket/resume",
    "/v1/pause",
    "/v1/resume",
    "/v1/reload",
    "/v1/runs/ticket/cancel",
    "/v1/runs/ticket/retry",
)
GETS = ("/v1/jobs", "/v1/jobs/ticket", "/v1/runs", "/v1/runs/ticket", "/v1/next", "/v1/audit", "/v1/dead-letters")
LONG = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    database=None,
)

MALFORMED = [
    b"{",
    b"[]",
    b"null",
    b'"text"',
    b"\xff\xfe\x00",
    b'{"reason": "\xff"}',
    b'{"reason": "\\ud800"}',
    b'{"payload": NaN}',
    b'{"payload": 1e999}',
    b'{"payload": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    b'{"payload": ' + b'{"a":' * 200 + b"1" + b"}" * 200 + b"}",
    b'{"payload": ' + b"1" * 5000 + b"}",
    b"\x00" * 10,
    "{\u3000}".encode(),
]


@pytest.fixture
def untouched(acting: Client, faces: Faces) -> Iterator[None]:
    yield
    assert faces.rig.runs() == []


@pytest.mark.parametrize("body", MALFORMED, ids=range(len(MALFORMED)))
@pytest.mark.usefixtures("untouched")
def test_malformed_bodies(acting: Client, body: bytes) -> None:
    for path in POSTS:
        answer = acting.post(path, content=body)
        assert answer.status_code in (400, 422), (path, answer.text)
        assert answer.json()["detail"]


@pytest.mark.parametrize(
    ("path", "body", "word"),
    [
        ("/v1/jobs/ticket/runs", {"paylod": 1}, "did you mean `payload`"),
        ("/v1/jobs/ticket/runs", {"reason": 1}, "`reason` must be text"),
        ("/v1/jobs/ticket/runs", {"reason": "x" * 3000}, "at most 2000"),
        ("/v1/jobs/ticket/runs", {"if_busy": "maybe"}, "refuse, queue or replace"),
        ("/v1/jobs/ticket/pause", {"until": "soon"}, "2026-03-08T07:00:00Z"),
        ("/v1/jobs/ticket/pause", {"until": "2026-03-08"}, "no instant"),
        ("/v1/jobs/ticket/pause", {"until": "0001-01-01T00:00:00+14:00"}, "no instant"),
        ("/v1/jobs/ticket/resume", {"x": 1, "y": 2}, "unknown fields `x`, `y`"),
        ("/v1/pause", {"jobs": "ticket"}, "must be a list"),
        ("/v1/pause", {"jobs": []}, "must be a list"),
        ("/v1/pause", {"jobs": [1]}, "must be a list"),
        ("/v1/pause", {"jobs": ["a"] * 10_001}, "at most 10000"),
        ("/v1/reload", {"dry_run": "yes"}, "true or false"),
    ],
)
@pytest.mark.usefixtures("untouched")
def test_wrong_fields_are_named(acting: Client, path: str, body: Any, word: str) -> None:
    answer = acting.post(path, json=body)
    assert answer.status_code == 422
    assert word in answer.text


@pytest.mark.usefixtures("untouched")
def test_a_large_body_is_refused_before_it_is_read(acting: Client) -> None:
    body = json.dumps({"payload": "x" * BODY_LIMIT}).encode()
    assert acting.post("/v1/jobs/ticket/runs", content=body).status_code == 413

    async def chunks(size: int) -> Any:
        for _ in range(40):
            yield b" " * (size // 32)

    assert acting.post("/v1/reload", content=chunks(BODY_LIMIT)).status_code == 413
    assert acting.post("/v1/jobs/ticket/runs", content=chunks(BATCH_LIMIT)).status_code == 413
    many = json.dumps({"runs": [{"payload": {"a": "x" * BODY_LIMIT}}]}).encode()
    assert acting.post("/v1/jobs/ticket/runs", content=many).status_code == 413


NOBODY = ("a\x00b", "\n", "x" * 10_000, "\ud800", "%2e%2e%2f", "日本", "'; DROP TABLE runs")


@pytest.mark.parametrize("name", NOBODY, ids=range(len(NOBODY)))
@pytest.mark.usefixtures("untouched")
def test_names_that_nobody_has(acting: Client, name: str) -> None:
    part = quote(name.encode("utf-8", "surrogatepass"), safe="")
    for path in (f"/v1/jobs/{part}", f"/v1/runs/{part}", f"/v1/runs/{part}/log"):
        assert acting.get(path).status_code == 404
    for path in (f"/v1/jobs/{part}/runs", f"/v1/runs/{part}/cancel", f"/v1/jobs/{part}/pause"):
        assert acting.post(path).status_code == 404


@pytest.mark.parametrize("key", ["", "x" * 256, "a\tb"])
@pytest.mark.usefixtures("untouched")
def test_idempotency_keys_are_short_and_printable(acting: Client, key: str) -> None:
    assert acting.post("/v1/jobs/ticket/runs", headers={"Idempotency-Key": key}).status_code == 422


@LONG
@given(path=st.sampled_from(POSTS), body=st.binary(max_size=200))
def test_any_bytes_as_body(acting: Client, path: str, body: bytes) -> None:
    assert acting.post(path, content=body).status_code < 500


FIELDS = ("payload", "reason", "if_busy", "until", "jobs", "dry_run", "drop_pending", "if_hash")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@LONG
@given(path=st.sampled_from(POSTS), body=st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=3))
def test_any_values_in_known_fields(acting: Client, path: str, body: dict[str, Any]) -> None:
    assert acting.post(path, content=json.dumps(body).encode()).status_code < 500


NAMES = ("job", "status", "cause", "since", "until", "limit", "cursor", "q", "state", "count", "from", "wait", "next")


@LONG
@given(
    path=st.sampled_from(GETS),
    query=st.dictionaries(st.sampled_from(NAMES), st.text(max_size=30) | st.binary(max_size=30), max_size=3),
)
def test_any_values_in_queries(acting: Client, path: str, query: dict[str, Any]) -> None:
    parts = []
    for name, value in query.items():
        raw = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
        parts.append(f"{name}={quote(raw, safe='')}")
    assert acting.get(f"{path}?{'&'.join(parts)}").status_code < 500


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=1001",
        "limit=-1",
        "limit=1e3",
        "limit=٣",
        "limit=99999999999999999999999",
        "since=yesterday",
        "since=2026-02-30T00:00:00Z",
        "status=DONE",
        "skips=maybe",
        "cursor=%00",
        "statsu=failed",
    ],
)
def test_wrong_queries_are_told(acting: Client, query: str) -> None:
    assert acting.get(f"/v1/runs?{query}").status_code in (404, 422)
