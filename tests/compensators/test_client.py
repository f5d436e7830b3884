from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from compensators.common.client import LONGEST_WAIT, Client, Declined, same_server
from scheduler.core.compensator import CursorExpired, ListingFailed, Throttled
from tests.executors.server import Answers, Server, reply

KEY = "k3y"


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def client(waits: list[float]) -> Iterator[Client]:
    made = Client({"Authorization": f"Bearer {KEY}"}, sleep=waits.append)
    yield made
    made.close()


def closing(answers: Answers) -> Answers:
    """The server closes the connection after answers of handlers: it has to say so."""
    return Answers(answers.status, answers.body, {**answers.headers, "Connection": "close"})


def then(*answers: Answers) -> Callable[[Any], None]:
    """One after the other; the last again and again."""
    left = [closing(one) for one in answers]
    return lambda handler: reply(handler, left.pop(0) if len(left) > 1 else left[0])


def answered(status: int, **headers: str) -> Answers:
    return Answers(status, b'{"error": "x"}', {name.replace("_", "-"): value for name, value in headers.items()})


def test_what_comes_is_told_with_the_providers_clock(server: Server, client: Client) -> None:
    link = '</list?page=2>; rel="next", </list?page=9>; rel="last"'
    headers = {"Date": "Sun, 01 Mar 2026 12:00:00 GMT", "Age": "30", "Link": link}

    def handler(request: Any) -> None:
        request.send_response_only(200)
        for name, value in headers.items():
            request.send_header(name, value)
        request.send_header("Content-Length", "2")
        request.end_headers()
        request.wfile.write(b"[]")

    server.handlers["/list"] = handler
    found = client.get(f"{server.url}/list?a=1", [("b", "2 3"), ("c[]", "x"), ("c[]", "y")])
    assert found.document == []
    assert found.now == datetime(2026, 3, 1, 12, 0, 30, tzinfo=UTC)
    assert found.next == f"{server.url}/list?page=2"
    assert server.asked[0].path == "/list?a=1&b=2+3&c%5B%5D=x&c%5B%5D=y"
    assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"
    assert client.counts() == (1, 0)
    assert client.counts() == (0, 0)


@pytest.mark.parametrize(
    ("told", "least"), [("3", 3.0), ("0", 0.0), ("1.5", 2.0), ("Sun, 01 Mar 2026 12:00:09 GMT", 9.0), ("", 1.0)]
)
def test_a_limit_is_waited_for_and_never_shortened(
    server: Server, client: Client, waits: list[float], told: str, least: float
) -> None:
    limited = [True]

    def handler(request: Any) -> None:
        if not limited:
            reply(request, closing(Answers()))
            return
        limited.pop()
        request.send_response_only(429)
        request.send_header("Connection", "close")
        request.send_header("Date", "Sun, 01 Mar 2026 12:00:00 GMT")
        if told:
            request.send_header("Retry-After", told)
        request.send_header("Content-Length", "0")
        request.end_headers()

    server.handlers["/"] = handler
    client.get(f"{server.url}/")
    assert client.counts() == (2, 1)
    [waited] = waits
    assert least < waited <= least * 1.1 + 0.1 + 0.001


def test_waits_are_not_the_same_for_everybody(server: Server) -> None:
    seen: set[float] = set()
    for _ in range(5):
        waits: list[float] = []
        made = Client({}, sleep=waits.append)
        server.handlers["/"] = then(answered(429, Retry_After="10"), Answers())
        made.get(f"{server.url}/")
        made.close()
        seen |= set(waits)
    assert len(seen) == 5


def test_a_limit_to_the_last_is_told(server: Server, client: Client, waits: list[float]) -> None:
    server.handlers["/"] = then(answered(429, Retry_After="2"))
    with pytest.raises(Throttled) as error:
        client.get(f"{server.url}/")
    assert error.value.retry_after == 2.0
    assert client.counts() == (5, 5)
    assert len(waits) == 4


def test_who_is_told_to_wait_long_comes_back_another_time(server: Server, client: Client, waits: list[float]) -> None:
    server.handlers["/"] = then(answered(429, Retry_After=str(int(LONGEST_WAIT) + 1)))
    with pytest.raises(Throttled) as error:
        client.get(f"{server.url}/")
    assert error.value.retry_after == LONGEST_WAIT + 1
    assert not waits


def test_githubs_limit_is_one_although_it_says_forbidden(server: Server, client: Client, waits: list[float]) -> None:
    later = str(int((datetime.now(UTC) + timedelta(seconds=2000)).timestamp()))
    server.handlers["/"] = then(answered(403, X_RateLimit_Remaining="0", X_RateLimit_Reset=later))
    with pytest.raises(Throttled) as error:
        client.get(f"{server.url}/")
    assert error.value.retry_after is not None
    assert 1900 < error.value.retry_after < 2010


@pytest.mark.parametrize("status", [500, 502, 503, 408, 425])
def test_what_may_pass_is_tried_again(server: Server, client: Client, waits: list[float], status: int) -> None:
    server.handlers["/"] = then(answered(status), answered(status), Answers())
    assert client.get(f"{server.url}/").document == {}
    assert [round(one) for one in waits] == [1, 2]


def test_what_does_not_pass_is_no_empty_list(server: Server, client: Client, waits: list[float]) -> None:
    server.handlers["/"] = then(answered(503))
    with pytest.raises(ListingFailed, match="answered 503 Service Unavailable") as error:
        client.get(f"{server.url}/?secret=x")
    assert not error.value.final
    assert "secret" not in str(error.value)
    assert len(waits) == 4


def test_nobody_there(client: Client) -> None:
    with pytest.raises(ListingFailed, match=r"GET http://127.0.0.1:1/list: ConnectError") as error:
        client.get("http://127.0.0.1:1/list", [("key", "hidden")])
    assert not error.value.final
    assert "hidden" not in str(error.value)


@pytest.mark.parametrize(
    ("status", "remedy"),
    [
        (401, "check the key"),
        (403, "check the key"),
        (404, "check the address"),
        (400, "{"),
        (302, "write the address"),
    ],
)
def test_what_would_be_the_same_again_is_final(server: Server, client: Client, status: int, remedy: str) -> None:
    server.handlers["/"] = then(answered(status, Location="https://elsewhere.example/"))
    with pytest.raises(Declined, match=remedy) as error:
        client.get(f"{server.url}/")
    assert error.value.final
    assert error.value.status == status
    assert client.counts() == (1, 0)


@pytest.mark.parametrize(("status", "forgotten"), [(400, True), (404, True), (410, True), (422, True), (401, False)])
def test_a_cursor_that_is_declined_is_forgotten(server: Server, client: Client, status: int, forgotten: bool) -> None:
    server.handlers["/"] = then(answered(status))
    with pytest.raises(CursorExpired if forgotten else Declined):
        client.get(f"{server.url}/", goes_on=True)


def test_what_is_not_json(server: Server, client: Client) -> None:
    server.answers["/"] = Answers(200, b"<html>please sign in</html>")
    with pytest.raises(ListingFailed, match="answered something that is not JSON"):
        client.get(f"{server.url}/")


def test_a_posted_document(server: Server, client: Client) -> None:
    client.post(f"{server.url}/search", {"limit": 5})
    assert server.asked[0].method == "POST"
    assert json.loads(server.asked[0].body) == {"limit": 5}


def test_calls_keep_their_pace(server: Server) -> None:
    waits: list[float] = []
    made = Client({}, pace=timedelta(seconds=100), sleep=waits.append)
    made.get(f"{server.url}/")
    made.get(f"{server.url}/")
    made.close()
    assert waits[0] == 0.0
    assert 90 < waits[1] <= 100


@pytest.mark.parametrize(
    "link", ["https://evil.example/list", "//evil.example/list", "http://api.example:81/", "ftp:x"]
)
def test_a_next_page_elsewhere_does_not_get_the_key(link: str) -> None:
    with pytest.raises(ListingFailed, match="on another server"):
        same_server("http://api.example/list", link)
    assert same_server("http://api.example/list?a=1", "/list?a=2") == "http://api.example/list?a=2"
