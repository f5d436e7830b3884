"""`schedctl events`, `replay`, `send-test`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from structlog.testing import capture_logs

from scheduler.store.store import SqlStore
from tests.cli.screen import Screen
from tests.cli.test_completion import completed
from tests.faces import Faces, Served
from tests.web.hooks import SECRET, body_of, signature

TEXT = """
version: 1
sources:
  shop:
    signature: {scheme: hmac, header: X-Signature, prefix: "sha256=", secrets: [{file: SHOP}]}
    event: {id: event_id, type: event, subject: order_no}
  github: {preset: github, secrets: [{file: SHOP}]}
jobs:
  ticket: {on_event: {source: shop, types: ["order.*"]}, command: [x]}
  mail: {on_event: {source: shop}, command: [x]}
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    file = tmp_path / "shop"
    file.write_text(SECRET)
    return file


@pytest.fixture
def served(store: SqlStore, shop: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setenv("TZ", "Europe/Paris")
    with Faces(store, TEXT.replace("SHOP", str(shop))).served() as found:
        yield found


def post(served: Served, event_id: str, **more: str) -> int:
    body = body_of(event_id, **more)
    assert served.server.address is not None
    url = "http://{}:{}/webhooks/shop".format(*served.server.address)
    return httpx.post(url, content=body, headers={"X-Signature": signature(body)}, trust_env=False).status_code


def test_nothing_has_come(screen: Screen) -> None:
    assert screen("events") == []
    assert "no event has come" in screen.err
    assert screen.next == "schedctl events --rejected"
    assert screen.json("events") == []


def test_events_are_listed_with_what_became_of_them(screen: Screen, served: Served) -> None:
    assert post(served, "e1") == 202
    assert post(served, "e2", event="customer.new") == 202
    lines = screen("events")
    assert lines[0].split() == ["SOURCE", "EVENT", "TYPE", "SUBJECT", "RECEIVED", "(Europe/Paris)", "VIA", "RUNS"]
    assert lines[1].split()[:4] == ["shop", "e2", "customer.new", "o1"]
    assert lines[1].split()[-1] == "PENDING"
    assert lines[2].endswith("2 PENDING")
    assert screen.next == "schedctl events shop e2"
    assert screen("events", "--type", "order.*", "-o", "name") == ["shop/e1"]
    assert len(screen("events", "-n", "1")) == 2
    assert "there are more; -n 5 shows them" in screen.err
    assert screen("events", "--missed") == []
    assert len(screen("events", "--unhandled")) == 3
    assert screen("events", "--since", "nonsense") == []
    assert screen.code == 2


def test_one_event(screen: Screen, served: Served) -> None:
    post(served, "e1", note="é \u001b[31mred")
    text = "\n".join(screen("events", "shop", "e1"))
    assert "shop e1: order.paid" in text
    assert "ticket: PENDING, event" in text
    assert '"event_id": "e1"' in text
    assert "\u001b" not in text
    assert screen.next.startswith("schedctl runs ")
    assert screen.json("events", "shop", "e1")["size"] == len(body_of("e1", note="é \u001b[31mred"))
    assert screen("events", "shop", "none") == []
    assert screen.code == 4


def test_an_event_is_handed_out_once_more(screen: Screen, served: Served) -> None:
    post(served, "e1")
    post(served, "a/b")
    lines = screen("replay", "e1", "--job", "ticket", "--reason", "fixed")
    assert [line.split()[1] for line in lines] == ["ticket"]
    assert "shop e1: 1 run" in screen.err
    assert screen.next == f"schedctl logs -f {lines[0].split()[0][-8:]}"
    assert len(screen("replay", "shop/e1", "-o", "name")) == 2
    assert len(screen("replay", "a/b")) == 2
    assert len(screen("replay", "shop/a/b")) == 2
    assert screen("replay", "none") == []
    assert screen.code == 4
    assert [run.cause for run in screen.rig.runs("ticket")].count("replay") == 4


def test_refused_requests_are_seen_and_taken_after_all(screen: Screen, served: Served, shop: Path) -> None:
    shop.write_text("mistyped")
    with capture_logs():
        assert post(served, "e1") == 401
    screen.rig.inbox.tick(screen.rig.clock.now())
    lines = screen("events", "--rejected")
    assert lines[0].split()[0] == "SOURCE"
    assert "signature_mismatch" in lines[1]
    assert screen.next == "schedctl events shop --reverify"
    assert screen("events", "shop", "--reverify") == []
    assert screen.code == 1
    assert "1 request still refused: no secret" in screen.err
    shop.write_text(SECRET)
    assert screen("events", "shop", "--reverify") == ["e1: taken, 2 runs"]
    assert screen.code == 0
    assert screen("events", "shop", "--rejected") == []
    assert "no refused request is kept of shop" in screen.err
    assert screen("events", "--reverify") == []
    assert screen.code == 2


def test_a_test_is_sent(screen: Screen, tmp_path: Path) -> None:
    lines = screen("send-test", "shop", "--type", "order.test", "--subject", "o7")
    assert lines[0].endswith(": taken")
    assert [line.split()[1] for line in lines[1:]] == ["ticket", "mail"]
    assert screen.next == f"schedctl events shop {lines[0].split(':')[0]}"
    own = tmp_path / "own.json"
    own.write_text('{"event_id": "mine"}')
    assert screen("send-test", "shop", "--body", f"@{own}")[0] == "mine: taken"
    again = screen("send-test", "shop", "--body", f"@{own}")
    assert "it was there already" in again[0]
    assert screen("send-test", "github")[0].endswith(": taken")
    assert "it concerns no job" in screen.err
    assert screen("send-test", "shop", "--body", f"@{tmp_path}/none") == []
    assert screen.code == 2
    assert screen("send-test", "shap") == []
    assert screen.code == 4
    assert "github, shop" in screen.err


def test_events_are_completed(screen: Screen, served: Served) -> None:
    post(served, "e1")
    post(served, "other")
    assert completed(served, "replay shop/e") == ["shop/e1"]
    assert completed(None, "replay shop/e") == []
