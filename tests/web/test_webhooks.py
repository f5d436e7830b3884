"""Webhooks on real sockets: what is stored, what is answered, what a stranger learns."""

from __future__ import annotations

import json
import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from scheduler.core.errors import DatabaseAway, NotFound, SchedulerError
from scheduler.core.event import Via
from scheduler.core.preset import Answer, EventFields, Handshake
from scheduler.core.secret import Secret
from scheduler.core.signature import Incoming, Refusal
from scheduler.web import connection, door, webhooks
from scheduler.web.reception import Reception
from tests.web.hooks import SECRET, Answered, Hooks, ask, body_of, request, signature, source


@contextmanager
def asked(hooks: Hooks, *requests: bytes) -> Iterator[list[Answered]]:
    with hooks.open() as address:
        yield [ask(address, one) for one in requests]


def one(hooks: Hooks, sent: bytes) -> Answered:
    with asked(hooks, sent) as (answer,):
        return answer


def test_an_event_is_stored_and_its_sender_told() -> None:
    hooks = Hooks()
    body = body_of("e1", occurred_at=1790000000)
    with asked(hooks, request(body), request(body)) as (first, second):
        assert (first.status, first.json) == (202, {"event": "e1", "duplicate": False})
        assert (second.status, second.json) == (202, {"event": "e1", "duplicate": True})
    (event,) = hooks.inbox.events.values()
    assert (event.source, event.id, event.type, event.subject) == ("payments", "e1", "order.paid", "o1")
    assert (event.via, event.body, event.content_type) == (Via.WEBHOOK, body, "application/json")
    assert event.occurred_at is not None
    assert event.occurred_at.timestamp() == 1790000000
    assert (event.received_at, event.vouched_by, event.problems) == (hooks.now, "PAYMENTS_SECRET", ())
    assert hooks.said == [("payments", "stored"), ("payments", "duplicate")]
    assert hooks.served == [("/webhooks/{source}", "POST", 202)] * 2


def test_the_bytes_on_the_wire_are_verified_and_kept() -> None:
    hooks = Hooks()
    body = b'{ "event_id" :"e1",  "n": 1.10, "text": "\\u001B \xe2\x9d\xa4" }\r\n'
    assert one(hooks, request(body)).status == 202
    assert [event.body for event in hooks.inbox.events.values()] == [body]


def test_only_headers_that_fields_are_read_from_are_kept() -> None:
    hooks = Hooks(source(event=EventFields("header:X-Event-Id", type="header:X-Kind || header:X-Type")))
    sent = request(b"{}", {"X-Event-Id": "7", "X-Type": "paid", "Authorization": "Bearer something"})
    assert one(hooks, sent).status == 202
    (event,) = hooks.inbox.events.values()
    assert (event.id, event.type, event.headers) == ("7", "paid", (("x-event-id", "7"), ("x-type", "paid")))


@pytest.mark.parametrize(
    ("answer", "status", "body", "kind"),
    [
        (Answer(200, "[accepted]", "text/plain; charset=utf-8"), 200, b"[accepted]", "text/plain; charset=utf-8"),
        (Answer(200, ""), 200, b"", None),
        (Answer(204, "not sent"), 204, b"", None),
        (Answer(200), 200, b'{"event":"e1","duplicate":false}', "application/json"),
    ],
)
def test_a_provider_hears_what_it_wants_to_hear(answer: Answer, status: int, body: bytes, kind: str | None) -> None:
    got = one(Hooks(source(answer=answer)), request(body_of()))
    assert (got.status, got.body, got.headers.get("content-type")) == (status, body, kind)


def test_a_handshake_is_verified_and_answered_and_not_stored() -> None:
    shake = Handshake("url_verification", "type", "url_verification", echo="challenge")
    hooks = Hooks(source(handshakes=(shake,)))
    body = json.dumps({"type": "url_verification", "challenge": "3eZ\ud800", "event_id": "x"}).encode()
    with asked(hooks, request(body), request(body, signed=False), request(body_of())) as (known, stranger, event):
        assert (known.status, known.body) == (200, b"3eZ?")
        assert known.headers["content-type"] == "text/plain; charset=utf-8"
        assert (stranger.status, event.status) == (401, 202)
    assert [event for _, event in hooks.inbox.events] == ["e1"]


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_probe_is_answered_without_a_row(method: str) -> None:
    hooks = Hooks()
    assert one(hooks, request(b"", method=method)).status == 200
    assert one(hooks, request(b"", method=method, path="/webhooks/other")).status == 404
    assert (hooks.inbox.events, hooks.inbox.rejects) == ({}, [])


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS"])
def test_other_methods_are_not_taken(method: str) -> None:
    hooks = Hooks()
    got = one(hooks, request(body_of(), method=method))
    assert (got.status, got.headers["allow"]) == (405, "POST, GET, HEAD")
    assert hooks.inbox.events == {}


REFUSED = [
    (request(body_of(), signed=False), 401, Refusal.SIGNATURE_MISSING),
    (request(body_of(), {"X-Signature": "sha256=00"}), 401, Refusal.SIGNATURE_MALFORMED),
    (request(body_of(), {"X-Signature": signature(b"another")}), 401, Refusal.SIGNATURE_MISMATCH),
    (request(body_of(), {"X-Signature": signature(body_of(), "another")}), 401, Refusal.SIGNATURE_MISMATCH),
    (request(b"{}"), 400, Refusal.EVENT_ID_MISSING),
    (request(b""), 400, Refusal.BODY_MALFORMED),
    (request(b'{"event_id": [1]}'), 400, Refusal.EVENT_ID_MALFORMED),
    (request(b"<event/>", {"Content-Type": "application/xml"}), 415, Refusal.BODY_MALFORMED),
    (request(body_of(), {"Content-Encoding": "gzip"}), 415, Refusal.BODY_MALFORMED),
    (request(b'{"event_id": "1", "n": NaN}'), 400, Refusal.BODY_MALFORMED),
]


@pytest.mark.parametrize(("sent", "status", "reason"), REFUSED)
def test_what_is_refused_is_kept_and_the_reason_stays_here(sent: bytes, status: int, reason: Refusal) -> None:
    hooks = Hooks()
    got = one(hooks, sent)
    assert (got.status, got.headers["content-type"]) == (status, "application/problem+json")
    assert set(got.json) == {"title", "status", "detail"}
    assert str(reason) not in str(got.json)
    assert SECRET not in str(got.json)
    (reject,) = hooks.inbox.rejects
    assert (reject.reason, reject.source, reject.at) == (reason, "payments", hooks.now)
    assert hooks.said == [("payments", str(reason))]
    assert hooks.inbox.events == {}


def test_all_unsigned_requests_are_answered_alike() -> None:
    """Nobody learns from the answer how near a forged signature was."""
    answers = {one(Hooks(), sent).body for sent, status, _ in REFUSED if status == 401}
    assert len(answers) == 1


def test_no_credential_is_kept_with_a_refused_request() -> None:
    hooks = Hooks(source("lab", scheme="gitlab", options={}, event=EventFields("header:Idempotency-Key")))
    secret = {"X-Gitlab-Token": "glsoat-1", "Authorization": "Basic eA==", "Cookie": "a=b", "X-Other": "1"}
    assert one(hooks, request(b"{}", secret, path="/webhooks/lab")).status == 401
    (reject,) = hooks.inbox.rejects
    names = {name for name, _ in reject.headers}
    assert "x-other" in names
    assert names.isdisjoint({"x-gitlab-token", "authorization", "cookie"})


def test_a_signature_in_the_authorization_header_is_kept() -> None:
    hooks = Hooks(source(options={"header": "Authorization", "prefix": "HMAC "}))
    assert one(hooks, request(body_of(), {"Authorization": "HMAC " + "0" * 64})).status == 401
    assert ("authorization", "HMAC " + "0" * 64) in hooks.inbox.rejects[0].headers


@pytest.mark.parametrize("chunked", [0, 100])
def test_a_body_has_its_limit(chunked: int) -> None:
    hooks = Hooks(source(max_body=1000))
    fits, large = body_of(pad="x" * (1000 - len(body_of(pad="")))), b"x" * 1001
    assert len(fits) == 1000
    with asked(hooks, request(fits, chunked=chunked), request(large, chunked=chunked)) as (good, bad):
        assert (good.status, bad.status) == (202, 413)
    assert hooks.said[1:] == [("payments", "too_large")]
    assert hooks.inbox.rejects == []


def test_a_large_body_is_judged_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[str] = []
    judge = Reception.judge

    def noted(reception: Reception, incoming: Incoming, now: datetime) -> Any:
        threads.append(threading.current_thread().name)
        return judge(reception, incoming, now)

    monkeypatch.setattr(Reception, "judge", noted)
    hooks = Hooks()
    large = body_of("large", pad="x" * (webhooks.LARGE + 1))
    with asked(hooks, request(body_of()), request(large), request(large, signed=False)) as answers:
        assert [answer.status for answer in answers] == [202, 202, 401]
    assert threads[0] == "web-tcp"
    assert "web-tcp" not in threads[1:]


def test_an_endless_body_is_refused_while_it_comes() -> None:
    hooks = Hooks(source(max_body=1000))
    head = b"POST /webhooks/payments HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    with hooks.open() as address, socket.create_connection(address, timeout=10) as connected:
        connected.sendall(head + b"400\r\n" + b"x" * 1024 + b"\r\n")  # and nothing says that this was all
        assert connected.recv(65536).startswith(b"HTTP/1.1 413 ")


def test_a_large_announcement_is_refused_before_the_body_is_sent() -> None:
    sent = request(b"", {"Content-Length": "99999999999999999999", "Expect": "100-continue"})
    assert one(Hooks(), sent).status in (400, 413)
    assert one(Hooks(), request(b"", {"Content-Length": "2000000", "Expect": "100-continue"})).status == 413


def test_large_bodies_under_way_have_a_limit_in_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "MOST_HELD", 150_000)
    hooks = Hooks()
    part = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    head = b"POST /webhooks/payments HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    with hooks.open() as address, capture_logs():
        crowd = [socket.create_connection(address, timeout=10) for _ in range(3)]
        for connected in crowd:
            connected.sendall(head + part + part)
        turned_away = [connected for connected in crowd if _answered(connected)]
        assert len(turned_away) in (1, 2)
        assert ask(address, request(body_of())).status == 202  # A small one is always read.
        for connected in crowd:
            connected.close()
        assert ask(address, request(body_of("e2", pad="x" * 100_000))).status == 202


def _answered(connected: socket.socket) -> bool:
    connected.settimeout(1.0)
    try:
        return connected.recv(65536).startswith(b"HTTP/1.1 503 ")
    except TimeoutError:
        return False


def test_a_body_that_comes_in_drops_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "BODY_SECONDS", 0.3)
    monkeypatch.setattr(door, "LOOK", 0.05)
    hooks = Hooks()
    with hooks.open() as address, capture_logs():
        assert ask(address, request(body_of())[:-5]).status == 408
        assert ask(address, request(body_of())).status == 202
    assert len(hooks.inbox.events) == 1


def test_a_sender_that_hangs_up_leaves_nothing_behind(caplog: pytest.LogCaptureFixture) -> None:
    hooks = Hooks()
    with hooks.open() as address, caplog.at_level(logging.WARNING):
        for cut in (30, 150, len(request(body_of())) - 5):
            with socket.create_connection(address, timeout=10) as connected:
                connected.sendall(request(body_of())[:cut])
        assert ask(address, request(body_of("e2"))).status == 202
    assert [event for _, event in hooks.inbox.events] == ["e2"]
    assert caplog.records == []


def test_requests_on_one_connection_and_ahead_of_answers() -> None:
    hooks = Hooks()
    many = [request(body_of(f"e{which}"), {"Connection": "keep-alive"}) for which in range(5)]
    with hooks.open() as address, socket.create_connection(address, timeout=10) as connected:
        connected.sendall(b"".join(many) + request(body_of("last")))
        raw = b""
        while part := connected.recv(65536):
            raw += part
    assert raw.count(b"HTTP/1.1 202 Accepted\r\n") == 6
    assert raw.count(b"connection: close") == 1
    assert [event for _, event in hooks.inbox.events] == ["e0", "e1", "e2", "e3", "e4", "last"]


def test_who_sends_nothing_more_is_still_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    hooks, heard = Hooks(), threading.Event()
    submit, end = hooks.inbox.submit, connection.Connection.eof_received

    def hear(self: connection.Connection) -> bool:
        heard.set()
        return end(self)

    def store(*asked: Any) -> None:
        threading.Thread(target=lambda: heard.wait(10) and submit(*asked)).start()

    monkeypatch.setattr(connection.Connection, "eof_received", hear)
    monkeypatch.setattr(hooks.inbox, "submit", store)
    hooks.renew()
    with hooks.open() as address, socket.create_connection(address, timeout=10) as connected:
        connected.sendall(request(body_of(), {"Connection": "keep-alive"}))
        connected.shutdown(socket.SHUT_WR)
        raw = b""
        while part := connected.recv(65536):
            raw += part
    assert raw.startswith(b"HTTP/1.1 202 Accepted\r\n")
    assert b"connection: close\r\n" in raw


def test_many_connections_at_once() -> None:
    hooks = Hooks()
    with hooks.open() as address:
        crowd = [socket.create_connection(address, timeout=10) for _ in range(100)]
        for which, connected in enumerate(crowd):
            connected.sendall(request(body_of(f"e{which % 50}")))
        answers = [connected.recv(65536) for connected in crowd]
        for connected in crowd:
            connected.close()
    assert all(answer.startswith(b"HTTP/1.1 202 ") for answer in answers)
    assert len(hooks.inbox.events) == 50


def test_more_than_the_rate_is_asked_to_come_back() -> None:
    hooks = Hooks(source(rate=0.01, burst=2))
    bad = request(body_of(), signed=False)
    with asked(hooks, bad, bad, bad, *(request(body_of(f"e{which}")) for which in range(3)), bad) as answers:
        # Only what is signed counts.
        assert [answer.status for answer in answers] == [401, 401, 401, 202, 202, 429, 429]
        assert 0 < int(answers[5].headers["retry-after"]) <= 100
    assert hooks.said[-1] == ("payments", "too_many")


@pytest.mark.parametrize("error", [DatabaseAway("no disk"), SchedulerError("a flaw"), RuntimeError("a flaw")])
def test_what_cannot_be_stored_may_be_sent_again(error: Exception) -> None:
    hooks = Hooks()
    hooks.inbox.error = error
    with capture_logs():
        got = one(hooks, request(body_of()))
    assert (got.status, got.headers["retry-after"]) == (503, "2")
    assert "no disk" not in str(got.json)
    hooks.inbox.error = None
    assert one(hooks, request(body_of())).json == {"event": "e1", "duplicate": False}


def test_a_source_that_is_gone_in_the_newest_generation() -> None:
    hooks = Hooks()
    hooks.inbox.error = NotFound("there is no source payments")
    assert one(hooks, request(body_of())).status == 404


def test_there_is_no_such_source() -> None:
    hooks = Hooks()
    for path in ("/webhooks/", "/webhooks/other", "/webhooks/payments/", "/webhooks/%00", "/webhooks/%F0%9F"):
        got = one(hooks, request(body_of(), path=path))
        assert (got.status, "hint" in got.json) == (404, False)
    assert set(hooks.said) == {("other", "unknown_source")}


def test_a_source_without_a_secret_asks_to_try_again_and_keeps_what_came() -> None:
    hooks = Hooks(source(secrets=(Secret(env="NOT_SET"),)))
    got = one(hooks, request(body_of()))
    assert (got.status, got.headers["retry-after"]) == (503, "2")
    (reject,) = hooks.inbox.rejects
    assert reject.reason is Refusal.SECRET_MISSING
    assert "NOT_SET" in reject.why


def test_a_secret_file_that_changes_counts_at_once(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("the old one\n")
    hooks = Hooks(source(secrets=(Secret(file=str(file)),)))
    with hooks.open() as address:
        new = {"X-Signature": signature(body_of(), "the new one")}
        assert ask(address, request(body_of(), new)).status == 401
        (tmp_path / "next").write_text("the new one\n")
        (tmp_path / "next").rename(file)
        assert ask(address, request(body_of(), new)).status == 202


def test_a_page_in_a_browser_cannot_use_a_source_that_trusts_the_network() -> None:
    hooks = Hooks(source(scheme="none", options={"trust": "network"}, secrets=()))
    with asked(hooks, request(body_of(), {"Origin": "https://evil.example"}), request(body_of())) as (page, sender):
        assert (page.status, sender.status) == (401, 202)


def test_a_time_that_is_signed_is_judged_by_this_clock() -> None:
    signed = source(options={"header": "X-Signature", "timestamp": "header:X-Time", "template": "{timestamp}.{body}"})
    hooks = Hooks(signed)
    seconds = str(int(hooks.now.timestamp()))
    code = signature(f"{seconds}.".encode() + body_of()).removeprefix("sha256=")
    sent = request(body_of(), {"X-Signature": code, "X-Time": seconds})
    assert one(hooks, sent).status == 202
    for away in (timedelta(minutes=6), timedelta(minutes=-6)):
        hooks.now += away
        assert one(hooks, sent).status == 401
        hooks.now -= away
    assert [reject.reason for reject in hooks.inbox.rejects] == ["timestamp_too_old", "timestamp_too_new"]


def test_a_kept_request_is_judged_again_with_the_time_at_which_it_came() -> None:
    signed = source(options={"header": "X-Signature", "timestamp": "header:X-Time", "template": "{timestamp}.{body}"})
    hooks = Hooks(signed)
    hooks.environ["PAYMENTS_SECRET"] = "mistyped"
    seconds = str(int(hooks.now.timestamp()))
    code = signature(f"{seconds}.".encode() + body_of()).removeprefix("sha256=")
    assert one(hooks, request(body_of(), {"X-Signature": code, "X-Time": seconds})).status == 401
    (reject,) = hooks.inbox.rejects
    later = hooks.now + timedelta(days=2)
    reception = hooks.receptions.find("payments")
    assert reception is not None
    assert getattr(reception.judge_again(reject, later), "reason", None) is Refusal.SIGNATURE_MISMATCH

    repaired = Hooks(signed)
    found: Any = repaired.receptions.find("payments")
    event = found.judge_again(reject, later)
    assert (event.id, event.received_at, event.body) == ("e1", later, body_of())


def test_a_reload_counts_for_the_next_request_and_unchanged_sources_keep_their_bucket() -> None:
    hooks = Hooks(source(rate=0.01))
    with hooks.open() as address:
        assert ask(address, request(body_of())).status == 202
        hooks.sources = {"payments": source(rate=0.01)}
        assert ask(address, request(body_of())).status == 429
        hooks.sources = {"payments": source()}
        assert ask(address, request(body_of())).status == 202
        hooks.sources = {}
        assert ask(address, request(body_of())).status == 404


def test_refusals_are_said_once_a_minute() -> None:
    hooks = Hooks()
    with capture_logs() as logs, asked(hooks, *[request(body_of(), signed=False)] * 20):
        pass
    assert len(logs) == 1
    assert (logs[0]["event"], logs[0]["source"]) == ("webhook_refused", "payments")
    assert SECRET not in str(logs)


def test_that_all_are_refused_is_said_until_one_is_taken() -> None:
    """A secret that was changed on one side only: its sender is refused, and every job waits in vain."""
    hooks = Hooks(source())
    reception = hooks.receptions.find("payments")
    assert reception is not None
    since = hooks.now
    for refused in range(4):
        assert len(reception.trouble()) == (refused >= 3)
        assert one(hooks, request(body_of(), signed=False)).status == 401
        hooks.now += timedelta(seconds=1)
    ((when, what),) = reception.trouble()
    assert when == since
    assert what.startswith("4 requests were refused and none was taken since; the last: ")
    assert one(hooks, request(body_of())).status == 202
    assert reception.trouble() == []


def test_a_signed_request_out_of_time_is_remembered_until_one_is_taken() -> None:
    signed = source(options={"header": "X-Signature", "timestamp": "header:X-Time", "template": "{timestamp}.{body}"})
    hooks = Hooks(signed)
    seconds = str(int(hooks.now.timestamp()))
    code = signature(f"{seconds}.".encode() + body_of()).removeprefix("sha256=")
    sent = request(body_of(), {"X-Signature": code, "X-Time": seconds})
    reception = hooks.receptions.find("payments")
    assert reception is not None
    hooks.now += timedelta(minutes=6)
    assert one(hooks, sent).status == 401
    assert one(hooks, request(body_of(), signed=False)).status == 401
    ((since, what),) = reception.trouble()
    assert (since, "6m ago" in what) == (hooks.now, True)
    hooks.now -= timedelta(minutes=6)
    assert one(hooks, sent).status == 202
    assert reception.trouble() == []


@pytest.mark.parametrize(
    "sent",
    [
        request(body_of()),
        request(body_of(), signed=False),
        request(b"no JSON"),
        request(body_of(), path="/webhooks/nobody"),
        request(body_of(), {"Content-Length": "9999999"}),
        request(body_of(), method="PUT"),
        request(body_of(), method="HEAD"),
        request(body_of(), chunked=7),
    ],
)
def test_a_request_that_comes_whole_is_answered_as_any_other(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """It needs no task of its own (connection.AtHand)."""
    whole, other = Hooks(), Hooks()
    at_once = one(whole, sent)
    monkeypatch.setattr(webhooks.Webhooks, "at_hand", lambda *_: False)
    later = one(other, sent)
    assert (at_once.status, at_once.body) == (later.status, later.body)
    assert at_once.headers.keys() == later.headers.keys()
    assert (whole.said, whole.served) == (other.said, other.served)
    assert whole.inbox.events.keys() == other.inbox.events.keys()


def test_no_task_is_begun_for_a_request_that_comes_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    hooks = Hooks()
    monkeypatch.setattr(webhooks.Webhooks, "_answer", None)
    answer = one(hooks, request(body_of()))
    assert answer.json == {"event": "e1", "duplicate": False}


def test_what_fails_while_answers_are_made_is_an_answer_to_each(monkeypatch: pytest.MonkeyPatch) -> None:
    hooks = Hooks()
    monkeypatch.setattr(webhooks, "stored", None)
    with capture_logs() as entries, asked(hooks, request(body_of("e1")), request(body_of("e2"))) as answers:
        assert [answer.status for answer in answers] == [503, 503]
    assert [entry["event"] for entry in entries] == ["request_failed"] * 2
