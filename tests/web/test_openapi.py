"""The API is what its OpenAPI document says, whatever is thrown at it."""

from __future__ import annotations

import json
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from jsonschema import Draft202012Validator

from scheduler.core.access import Access, Role
from scheduler.web import app as web
from scheduler.web import webhook_answers
from scheduler.web.app import OPERATIONS
from scheduler.web.openapi import document
from tests.databases import Place
from tests.faces import Faces, Served
from tests.web.client import Client

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import schemathesis
    from schemathesis.checks import CheckFunction
    from schemathesis.generation.feedback import FeedbackSources
    from schemathesis.pytest._test_builder import build_operation_test
    from schemathesis.specs.openapi.checks import positive_data_acceptance

DOCUMENT = document(OPERATIONS, "9.9", web.BESIDE)
BETWEEN_FIELDS = {
    "/v1/jobs/{name}/runs",
    "/v1/jobs/{name}/pause",
    "/v1/jobs/{name}/backfill",
    "/v1/pause",
    "/v1/dead-letters/retry",
    "/v1/dead-letters/discard",
    "/v1/audit",
}
"""What is taken there depends on several fields, or on the time: no schema says it."""
BESIDE = {
    f"{method} {path}"
    for path in ("/webhooks/{source}", "/ping/{key}/{job}", "/ping/{key}/{job}/{what}")
    for method in ("GET", "POST")
}
"""Served beside the operations."""
TEXT = """
version: 1
defaults: {timezone: UTC}
queues: {api: {rate: 60000/m, burst: 1000}}
jobs:
  hourly: {schedule: "0 * * * *", command: [x]}
  ticket: {command: [x]}
"""


def to_try(found: dict[str, Any]) -> dict[str, Any]:
    """Without streams, which do not end, and for somebody who may do everything."""
    paths = {path: dict(methods) for path, methods in found["paths"].items() if not path.endswith("stream")}
    for methods in paths.values():
        for method, one in methods.items():
            methods[method] = {key: value for key, value in one.items() if key != "security"}
    return {**found, "paths": paths}


schema = schemathesis.openapi.from_dict(to_try(DOCUMENT))
# What is wrong and larger than what is read is told to be too large.
_REJECTION = schema.config.checks.negative_data_rejection
_REJECTION.expected_statuses = [*_REJECTION.expected_statuses, "413"]


@pytest.fixture(scope="module")
def served(sqlite_template: Path) -> Iterator[Served]:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "scheduler.db").write_bytes(sqlite_template.read_bytes())
        with Place("sqlite", "", Path(folder)).opened_hastily() as store:
            faces = Faces(store, TEXT)
            for number in range(3):
                faces.rig.desk.run_now("ticket", author="me", payload=number, has_payload=True)
                faces.rig.tick(minutes=30)
                faces.rig.finish()
            with faces.served() as found:
                yield found


@pytest.fixture(scope="module")
def token(served: Served) -> str:
    return served.faces.gate.create("fuzzer", Role.OPERATE, author="test")[1]


TRIED = {found.label: found for found in (result.ok() for result in schema.get_all_operations())}
OFTEN = settings(
    max_examples=20,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.filter_too_much],
)


# `@schema.parametrize()` gives all of them one id, of which xdist runs one; and each worker would make all cases.
@pytest.mark.parametrize("label", TRIED)
@pytest.mark.timeout(300)
def test_whatever_is_thrown_at_it(label: str, served: Served, token: str) -> None:
    assert served.server.address is not None
    address = "http://{}:{}".format(*served.server.address)
    excluded: list[CheckFunction] = [positive_data_acceptance] if TRIED[label].path in BETWEEN_FIELDS else []
    tried = []

    def throw(case: schemathesis.Case) -> None:
        tried.append(case)
        case.call_and_validate(base_url=address, headers={"Authorization": f"Bearer {token}"}, excluded_checks=excluded)

    build_operation_test(
        config=schema.config,
        operation=TRIED[label],
        test_func=throw,
        given_kwargs={},
        feedback=FeedbackSources(),
        explicit_settings=OFTEN,
    )()
    assert tried


def test_all_operations_are_tried() -> None:
    paths = [operation for operation in OPERATIONS if not operation.path.endswith("stream")]
    assert set(TRIED) == {f"{operation.method} {operation.path}" for operation in paths} | BESIDE


def test_the_document_is_served_and_says_what_there_is(reading: Client) -> None:
    served = reading.get("/openapi.json").json()
    assert served == json.loads(json.dumps(DOCUMENT))
    assert served["openapi"].startswith("3.1")
    assert {f"{method.upper()} {path}" for path, one in served["paths"].items() for method in one} == {
        f"{operation.method} {operation.path}" for operation in OPERATIONS
    } | BESIDE


def test_all_answers_to_senders_of_webhooks_are_described() -> None:
    described = DOCUMENT["paths"]["/webhooks/{source}"]["post"]["responses"]
    assert set(described) == {"200", "202", *(str(status) for status in webhook_answers._DETAILS)}


def test_every_operation_is_described() -> None:
    names = set()
    for path, methods in DOCUMENT["paths"].items():
        for method, one in methods.items():
            names.add(one["operationId"])
            assert 5 < len(one["summary"]) < 110, (method, path, one["summary"])
            assert "?" not in one["summary"]
            assert all(parameter.get("description") or parameter["in"] == "path" for parameter in one["parameters"])
    assert len(names) == len(OPERATIONS) + len(BESIDE)


def test_what_needs_a_token_says_so() -> None:
    for operation in OPERATIONS:
        security = DOCUMENT["paths"][operation.path][operation.method.lower()].get("security")
        assert (security == [{"token": []}]) == (operation.access in (Access.READ, Access.OPERATE)), operation.path


def test_all_schemas_are_schemas_and_lead_somewhere() -> None:
    text = json.dumps(DOCUMENT)
    for name in DOCUMENT["components"]["schemas"]:
        Draft202012Validator.check_schema(DOCUMENT["components"]["schemas"][name])
        assert f'"#/components/schemas/{name}"' in text, f"nobody uses {name}"
    for part in text.split('"$ref": "#/components/schemas/')[1:]:
        assert part.partition('"')[0] in DOCUMENT["components"]["schemas"]
