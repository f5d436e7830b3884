"""`/v1/events`: from a webhook to its runs, and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from scheduler.signatures.registry import presets
from tests.faces import Faces
from tests.web.client import Client, client_of
from tests.web.hooks import SECRET, body_of, signature

TEXT = """
version: 1
sources:
  shop:
    signature: {scheme: hmac, header: X-Signature, prefix: "sha256=", secrets: [{file: SHOP}]}
    event: {id: event_id, type: event, occurred_at: at.seconds, subject: order_no}
  bank:
    signature: {scheme: hmac, header: X-Signature, prefix: "sha256=", secrets: [{env: BANK_SECRET}]}
    event: {id: event_id}
  odd:
    signature: {scheme: hmac, header: X-Signature, prefix: "sha256=", secrets: [{file: SHOP}]}
    event: {id: "items[0].id", type: "header:X-Kind"}
  head:
    signature: {scheme: hmac, header: X-Signature, prefix: "sha256=", secrets: [{file: SHOP}]}
    event: {id: "header:X-Id"}
jobs:
  ticket: {on_event: {source: shop, types: ["order.*"]}, command: [x]}
  mail: {on_event: {source: shop}, command: [x]}
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """The file with the secret of the shop."""
    file = tmp_path / "shop"
    file.write_text(SECRET)
    return file


@pytest.fixture
def faces(store: object, shop: Path) -> Faces:
    faces = Faces(store, TEXT.replace("SHOP", str(shop)))
    faces.environ["BANK_SECRET"] = SECRET
    return faces


def post(
    client: Client, event: str, source: str = "shop", secret: str = SECRET, event_type: str = "", **more: Any
) -> int:
    body = body_of(event, **({"event": event_type} if event_type else {}), **more)
    headers = {"X-Signature": signature(body, secret), "Content-Type": "application/json"}
    return client.post(f"/webhooks/{source}", content=body, headers=headers).status_code


def listed(client: Client, query: str = "") -> list[str]:
    return [one["id"] for one in client.get(f"/v1/events{query}").json()["events"]]


def test_an_event_and_its_runs(acting: Client, shop: Path) -> None:
    assert post(acting, "e1", at={"seconds": 1772438400}) == 202
    assert post(acting, "e1", at={"seconds": 1772438400}) == 202
    (event,) = acting.get("/v1/events").json()["events"]
    assert (event["source"], event["event_type"], event["subject"]) == ("shop", "order.paid", "o1")
    assert (event["via"], event["duplicates"], event["missed"]) == ("webhook", 1, False)
    assert event["occurred_at"] == "2026-03-02T08:00:00Z"
    assert event["vouched_by"] == str(shop)
    assert [(run["job"], run["status"], run["cause"]) for run in event["runs"]] == [
        ("ticket", "PENDING", "event"),
        ("mail", "PENDING", "event"),
    ]
    detail = acting.get("/v1/events/shop/e1").json()
    assert detail["body"].encode() == body_of("e1", at={"seconds": 1772438400})
    assert (detail["size"], detail["body_base64"]) == (len(detail["body"]), None)
    assert detail["runs"] == event["runs"]


def test_lists_and_filters(acting: Client) -> None:
    for number in range(3):
        post(acting, f"e{number}", event_type="order.paid" if number else "customer.new")
    post(acting, "b1", "bank")
    assert listed(acting) == ["b1", "e2", "e1", "e0"]
    assert listed(acting, "?source=shop&type=order.*") == ["e2", "e1"]
    assert listed(acting, "?via=scan") == []
    assert listed(acting, "?via=scan,webhook&unhandled=true") == ["e2", "e1", "e0"]
    first = acting.get("/v1/events?limit=3").json()
    assert listed(acting, f"?limit=3&cursor={first['cursor']}") == ["e0"]
    assert acting.get("/v1/events?cursor=x").status_code == 422
    assert acting.get("/v1/events?sorce=shop").status_code == 422


@pytest.mark.parametrize("event", ["with/slash", "with space", "é", "a?b#c", "replay", "%41"])
def test_any_id_has_an_address(acting: Client, event: str) -> None:
    post(acting, event)
    path = quote(event, safe="") if event != "replay" else "%72eplay"
    assert acting.get(f"/v1/events/shop/{path}").json()["id"] == event
    assert acting.post(f"/v1/events/shop/{path}/replay").status_code == 202


def test_an_event_is_handed_out_once_more(acting: Client) -> None:
    post(acting, "e1")
    answer = acting.post("/v1/events/shop/e1/replay", json={"jobs": ["ticket"], "reason": "fixed"})
    assert answer.status_code == 202
    shown = answer.json()
    assert (shown["source"], shown["event"], [one["job"] for one in shown["runs"]]) == ("shop", "e1", ["ticket"])
    runs = acting.get("/v1/events/shop/e1").json()["runs"]
    found = [(run["job"], run["cause"]) for run in runs]
    assert found == [
        ("ticket", "event"),
        ("mail", "event"),
        ("ticket", "replay"),
    ]
    run = acting.get(f"/v1/runs/{shown['runs'][0]['run_id']}").json()
    assert (run["author"], run["cause"]) == ("ana", "replay")
    assert acting.post("/v1/events/e1/replay").status_code == 202
    assert acting.post("/v1/events/none/replay").status_code == 404
    assert acting.post("/v1/events/shop/none/replay").status_code == 404
    assert acting.post("/v1/events/shop/e1/replay", json={"jobs": ["none"]}).status_code == 404


def test_an_id_of_several_sources_is_not_guessed(acting: Client) -> None:
    post(acting, "e1")
    post(acting, "e1", "bank")
    answer = acting.post("/v1/events/e1/replay")
    assert (answer.status_code, "bank, shop" in answer.json()["detail"]) == (409, True)


def test_refused_requests_are_taken_after_all(acting: Client, faces: Faces, shop: Path) -> None:
    """A mistyped secret loses nothing."""
    shop.write_text("mistyped")
    assert post(acting, "e1") == 401
    assert post(acting, "e2", secret="forged") == 401
    answer = acting.get("/v1/rejects?source=shop").json()
    assert (answer["kept"], answer["dropped"], answer["dropped_before"]) == (2, 0, None)
    found = answer["rejects"]
    assert [(one["reason"], one["size"]) for one in found] == [("signature_mismatch", len(body_of("e1")))] * 2
    assert f"no secret ({shop})" in found[0]["why"]
    assert found[0]["beginning"].encode() == body_of("e2")
    shop.write_text(SECRET)
    done = acting.post("/v1/sources/shop/reverify", json={"limit": 1}).json()
    assert [(one["event"], len(one["runs"])) for one in done["stored"]] == [("e1", 2)]
    assert done["refused"] == []
    done = acting.post("/v1/sources/shop/reverify", json={"after": done["after"]}).json()
    assert (done["stored"], done["after"]) == ([], None)
    assert [one["reason"] for one in done["refused"]] == ["signature_mismatch"]
    assert listed(acting) == ["e1"]
    assert len(acting.get("/v1/rejects").json()["rejects"]) == 1
    assert acting.post("/v1/sources/none/reverify").status_code == 404


FORM = "application/x-www-form-urlencoded"
MISTAKEN = "the body looks like JSON and was read as a form, as its Content-Type says; JSON is sent as application/json"


@pytest.mark.parametrize("note", ["plain", "é"], ids=["read as a form", "unreadable as one"])
def test_json_that_is_called_a_form_is_said_to_be(acting: Client, note: str) -> None:
    """As curl sends it with -d and nothing more."""
    body = json.dumps({"event_id": "e1", "note": note}, ensure_ascii=False).encode()
    headers = {"X-Signature": signature(body), "Content-Type": FORM}
    assert acting.post("/webhooks/shop", content=body, headers=headers).status_code == 400
    (found,) = acting.get("/v1/rejects").json()["rejects"]
    assert found["why"].endswith(f"; {MISTAKEN}")


def test_an_event_of_json_that_is_called_a_form_has_that_problem(acting: Client) -> None:
    for body, problems in ((b'\n [{"a": 1}]', [MISTAKEN]), (b"items=7", [])):
        headers = {"X-Signature": signature(body), "Content-Type": FORM, "X-Id": str(len(body))}
        assert acting.post("/webhooks/head", content=body, headers=headers).status_code == 202
        assert acting.get(f"/v1/events/head/{len(body)}").json()["problems"] == problems


def test_a_source_that_there_is_not(acting: Client) -> None:
    for path in ("/v1/events?source=shap", "/v1/rejects?source=shap"):
        answer = acting.get(path)
        assert (answer.status_code, answer.json()["hint"]) == (404, "did you mean shop?"), path
    assert acting.get("/v1/events?source=shop").json()["events"] == []


def test_a_made_up_event_is_taken_as_if_it_had_come(acting: Client) -> None:
    answer = acting.post("/v1/sources/shop/test", json={"type": "order.test", "subject": "o7"})
    assert answer.status_code == 202
    shown = answer.json()
    assert (shown["duplicate"], [one["job"] for one in shown["runs"]]) == (False, ["ticket", "mail"])
    event = acting.get(f"/v1/events/shop/{shown['event']}").json()
    assert (event["event_type"], event["subject"], event["problems"]) == ("order.test", "o7", [])
    assert event["occurred_at"] is not None
    assert event["vouched_by"] == "send-test"
    assert SECRET not in answer.text + str(event)
    usual = acting.post("/v1/sources/shop/test").json()
    assert acting.get(f"/v1/events/shop/{usual['event']}").json()["event_type"] == "order.test"
    own = acting.post("/v1/sources/shop/test", json={"body": '{"event_id": "mine"}'}).json()
    assert own["event"] == "mine"


def test_what_cannot_be_made_up_is_said(acting: Client, shop: Path) -> None:
    answer = acting.post("/v1/sources/odd/test")
    assert (answer.status_code, "items[0].id" in answer.json()["detail"]) == (409, True)
    assert acting.post("/v1/sources/odd/test", json={"body": '{"items": [{"id": 7}]}'}).json()["event"] == "7"
    assert acting.post("/v1/sources/shop/test", json={"body": "no JSON"}).status_code == 409
    assert acting.post("/v1/sources/none/test").status_code == 404
    shop.write_text("")
    assert acting.post("/v1/sources/shop/test").status_code == 409
    shop.unlink()
    answer = acting.post("/v1/sources/shop/test")
    assert (answer.status_code, str(shop) in answer.json()["detail"]) == (409, True)


@pytest.mark.parametrize("preset", sorted(presets()))
def test_every_preset_can_be_tried(store: object, preset: str) -> None:
    secrets = {"adyen": "44782def" * 8, "standard": "whsec_" + "a2" * 16}
    text = f"sources:\n  it: {{preset: {preset}, secrets: [{{env: S}}], url: 'https://example.com/webhooks/it'}}\n"
    faces = Faces(store, "version: 1\n" + text + "jobs: {all: {on_event: {source: it}, command: [x]}}\n")
    faces.environ["S"] = secrets.get(preset, "a-secret-nobody-knows")
    with client_of(faces.apps()[1]) as client:
        answer = client.post("/v1/sources/it/test")
        assert answer.status_code == 202, answer.text
        assert [one["job"] for one in answer.json()["runs"]] == ["all"]
        assert faces.environ["S"] not in answer.text


def test_who_may_do_what(faces: Faces, reading: Client, acting: Client) -> None:
    post(acting, "e1")
    for path in ("/v1/events", "/v1/events/shop/e1", "/v1/rejects"):
        assert reading.get(path).status_code == 401
    for path in ("/v1/events/e1/replay", "/v1/sources/shop/reverify", "/v1/sources/shop/test"):
        assert reading.post(path).status_code == 401
    assert post(reading, "e2") == 202  # A sender's signature is enough.


def test_a_source_whose_secret_cannot_be_read_is_a_problem(acting: Client, faces: Faces, shop: Path) -> None:
    def problems() -> list[Any]:
        return [one for one in acting.get("/v1/status").json()["problems"] if one["kind"] == "source"]

    assert problems() == []
    shop.unlink()
    faces.backend.receptions.find("shop").secrets.changed()  # type: ignore[union-attr]
    (one,) = [one for one in problems() if one["about"] == "shop"]
    assert str(shop) in one["what"]
    assert one["command"] == "schedctl events shop --rejected"


def test_a_clock_that_is_wrong_is_a_problem_until_a_request_is_in_time(acting: Client, faces: Faces) -> None:
    """Whoever signed it is no stranger: what is refused for its time alone would be lost."""
    reception = faces.backend.receptions.find("shop")
    assert reception is not None
    reception.out_of_time = (faces.rig.clock.now(), "signed, but 7m ago by this machine's clock")
    (one,) = acting.get("/v1/status").json()["problems"]
    assert (one["about"], "7m ago" in one["what"], one["since"]) == ("shop", True, "2026-03-02T08:00:00Z")
    assert post(acting, "e1") == 202
    assert acting.get("/v1/status").json()["problems"] == []
