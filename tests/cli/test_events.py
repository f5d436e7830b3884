"""`schedctl events`, `replay`, `send-test`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from structlog.testing import capture_logs

from scheduler.cli import refused as refused_screen
from scheduler.engine import refused
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


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refused_screen, "AGAIN", 2)


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


def test_all_refused_requests_are_verified_again(screen: Screen, served: Served, shop: Path, few: None) -> None:
    shop.write_text("mistyped")
    with capture_logs():
        for number in range(5):
            assert post(served, f"e{number}") == 401
    assert len(screen("events", "shop", "--rejected", "-n", "2")) == 3
    assert "these are the newest of 5 that are kept; -n 10 shows more" in screen.err
    assert "dropped" not in screen.err
    shop.write_text(SECRET)
    assert screen("events", "shop", "--reverify", "-n", "1") == ["e0: taken, 2 runs"]
    assert screen("events", "shop", "--reverify") == [f"e{number}: taken, 2 runs" for number in (1, 2, 3, 4)]
    assert "2 of 4 looked at" in screen.err
    assert "4 requests taken" in screen.err
    assert screen("events", "shop", "--reverify") == []
    assert screen.code == 0


def test_older_refused_requests_that_were_dropped_are_told_of(
    screen: Screen, served: Served, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refused, "KEEP", 1)
    shop.write_text("mistyped")
    with capture_logs():
        for number in range(3):
            post(served, f"e{number}")
    assert len(screen("events", "--rejected")) == 2
    assert "too many came: 2 requests from before " in screen.err
    shop.write_text(SECRET)
    assert screen("events", "shop", "--reverify") == ["e2: taken, 2 runs"]
    screen("events", "--rejected")
    assert "too many came: 2 requests from before " in screen.err


def test_a_source_that_there_is_not_is_no_empty_list(screen: Screen) -> None:
    for more in ([], ["--rejected"], ["--reverify"], ["--missed"]):
        assert screen("events", "shap", *more) == []
        assert screen.code == 4, more
        assert "did you mean shop?" in screen.err


@pytest.mark.parametrize(
    "words",
    [
        ["--missed", "--rejected"],
        ["--rejected", "--reverify", "shop"],
        ["shop", "--rejected", "--since", "1h"],
        ["shop", "--reverify", "--type", "a.*"],
        ["shop", "e1", "--unhandled"],
        ["shop", "e1", "--rejected"],
    ],
)
def test_options_of_which_one_would_be_ignored_are_refused(screen: Screen, words: list[str]) -> None:
    assert screen("events", *words) == []
    assert screen.code == 2
    assert "leave out one of them" in screen.err


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
    assert "did you mean shop?" in screen.err


def test_events_are_completed(screen: Screen, served: Served) -> None:
    post(served, "e1")
    post(served, "other")
    assert completed(served, "replay shop/e") == ["shop/e1"]
    assert completed(None, "replay shop/e") == []


@pytest.fixture
def paused(store: SqlStore, shop: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setenv("TZ", "Europe/Paris")
    text = TEXT.replace("  shop:\n", "  shop:\n    paused: true\n").replace("SHOP", str(shop))
    with Faces(store, text).served() as found:
        yield found


def test_a_source_that_is_paused_is_seen_wherever_one_looks(paused: Served, capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(paused, capsys)
    assert "source shop is paused" in screen("status")
    screen("send-test", "shop")
    assert "it is held: shop is `paused`" in screen.err
    assert "concerns no job" not in screen.err
    assert "source shop is paused: 1 event held" in screen("status")
    assert screen.json("status")["paused_sources"] == [{"source": "shop", "held": 1}]
    assert [row.endswith("source paused") for row in screen("list")] == [False, True, True]
    assert screen("list", "--paused", "-o", "name") == ["mail", "ticket"]
    assert "its source is paused" in "\n".join(screen("describe", "mail"))
    assert "held: its source is paused" in screen("events", "--unhandled")[1]


def test_what_is_taken_while_its_source_is_paused_is_held(
    paused: Served, capsys: pytest.CaptureFixture[str], shop: Path
) -> None:
    screen = Screen(paused, capsys)
    shop.write_text("mistyped")
    with capture_logs():
        assert post(paused, "e1") == 401
    shop.write_text(SECRET)
    assert screen("events", "shop", "--reverify") == ["e1: taken, held: its source is paused"]


def test_an_event_that_concerns_no_job_is_not_said_to_be_held(screen: Screen) -> None:
    screen("send-test", "github")
    assert "it concerns no job" in screen.err
    assert screen.json("status")["paused_sources"] == []


def test_a_reload_that_would_lose_what_is_held_says_so_and_what_to_do(
    paused: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    screen = Screen(paused, capsys)
    screen("send-test", "shop")
    whole = paused.rig.text
    paused.rig.text = whole.replace("  mail: {on_event: {source: shop}, command: [x]}\n", "")
    assert "    waiting: 1 held event (of a paused source; would become dead letters)" in screen("diff")
    assert "events are held while their source is `paused`: end that first" in screen.err
    assert "dropping them (1 dead letter) needs --drop-pending" in screen.err
    assert screen.next == "schedctl events --unhandled"
    screen("reload")
    assert (screen.code, "mail (1 held event)" in screen.err) == (5, True)
    screen("reload", "--drop-pending")
    assert screen.code == 0
    paused.rig.text = whole
    screen("reload")
    assert len(screen("dead-letters", "retry", "--job", "mail")) == 1
