"""Every kind of channel, through the process that sends, against a real server."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from scheduler.config.models.channel import ChannelModel
from scheduler.core.channel import Answer, Channel, Message
from scheduler.core.secret import Secret
from scheduler.observe.channels import couriers, order
from scheduler.observe.channels.couriers import ProcessCourier
from scheduler.observe.channels.registry import kinds
from tests.observe.channels.receiver import Receiver, receiver

MESSAGE = Message("✗ backup: MISSED", "Since Mon.\nType: schedctl logs x — 备份", {"job": "backup", "count": 1})
TOKEN = "sEcReT-t0ken-123"
Make = Callable[[str], Channel]


def by_http(url: str, **options: Any) -> Channel:
    return Channel("ops", "http", "", "", {"method": "POST", "url": url, **options})


def by_apprise(url: str) -> Channel:
    return Channel("ops", "apprise", "", "", {"url": url.replace("http://", "json://")})


MAKERS: dict[str, Make] = {"http": by_http, "apprise": by_apprise}


@pytest.fixture
def web() -> Iterator[Receiver]:
    with receiver() as found:
        yield found


@pytest.fixture(params=sorted(MAKERS))
def make(request: pytest.FixtureRequest) -> Make:
    return MAKERS[request.param]


def deliver(channel: Channel, *messages: Message, environ: dict[str, str] | None = None) -> list[Answer]:
    return ProcessCourier({**os.environ, **(environ or {})}).deliver(channel, messages or (MESSAGE,))


def test_every_kind_that_is_found_is_tried_here_and_can_be_written() -> None:
    assert kinds() == sorted(MAKERS)
    ways = ChannelModel(url="json://h"), ChannelModel(http={"url": "http://h"})  # type: ignore[arg-type]
    assert sorted(way.kind for way in ways) == kinds()


def test_a_message_arrives_whole_and_each_has_its_answer(make: Make, web: Receiver) -> None:
    answers = deliver(make(web.url("/hook")), MESSAGE, Message("✓ second", "x", {}))
    assert [answer.ok for answer in answers] == [True, True]
    assert [one.path.rstrip("/") for one in web.got] == ["/hook", "/hook"]
    first = web.got[0].json()
    assert first["title"] == MESSAGE.title
    assert MESSAGE.text in first.values()


@pytest.mark.parametrize(
    "answer",
    [
        (404, {}, b"no such hook"),
        (500, {}, b"oops"),
        (200, {}, b'{"errcode": 93000, "errmsg": "invalid webhook url"}'),
        (200, {}, b'{"code": 9499, "msg": "bad request"}'),
        (200, {}, b'{"ok": false, "error": "channel_not_found"}'),
    ],
)
def test_a_no_is_a_no_whatever_its_status_and_its_words_are_told(make: Make, web: Receiver, answer: Any) -> None:
    web.answers.append(answer)
    first, second = deliver(make(web.url("/hook")), MESSAGE, MESSAGE)
    assert not first.ok
    assert not first.silent
    assert first.said.startswith(str(answer[0]))
    assert second.ok


@pytest.mark.parametrize("body", [b"ok", b"", b"[1]", b'{"errcode": 0}', b'{"code": 200}', b'{"code": "x", "ok": 1}'])
def test_a_yes_is_a_yes_whatever_its_words(web: Receiver, body: bytes) -> None:
    web.answers.append((200, {}, body))
    assert deliver(by_http(web.url()))[0].ok


def test_a_channel_may_ask_for_patience(make: Make, web: Receiver) -> None:
    web.answers.append((429, {"Retry-After": "7"}, b"slow down"))
    (answer,) = deliver(make(web.url("/hook")))
    assert (answer.ok, answer.retry_after) == (False, timedelta(seconds=7))


def test_nobody_there_is_silent_and_the_rest_is_not_tried(make: Make) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        (answer,) = deliver(make(f"http://127.0.0.1:{port}/hook"), MESSAGE, MESSAGE)
    assert (answer.ok, answer.silent) == (False, True)
    assert "refused" in answer.said


def test_who_takes_and_does_not_answer_is_given_up(make: Make, web: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit of the process that sends cannot be changed from here; that of the daemon, which ends it, can."""
    monkeypatch.setattr(couriers, "STARTING", 4.0)
    monkeypatch.setattr(couriers, "_PARTS", 0.0)
    monkeypatch.setattr(couriers, "WITHIN", 0.5)
    web.hanging.clear()
    (answer,) = deliver(make(web.url("/hook")), MESSAGE, MESSAGE)
    assert (answer.ok, answer.silent, answer.said) == (False, True, "no answer within 0.5 s")
    assert order.WITHIN == 10.0


@pytest.mark.parametrize("answer", [(200, {}, b"fine"), (403, {}, f"token {TOKEN} is revoked".encode())])
def test_no_answer_shows_a_secret(make: Make, web: Receiver, answer: Any) -> None:
    web.answers.append(answer)
    url = web.url(f"/hook/{TOKEN}")
    channel = make(url)
    environ = {"URL": str(channel.options["url"]).replace("://", f"://user:{TOKEN}@") if make is by_apprise else url}
    hidden = Channel("ops", channel.kind, "", "", {"method": "POST"}, {"url": Secret(env="URL")})
    (said,) = deliver(hidden, environ=environ)
    assert len(web.got) == 1
    assert TOKEN not in said.said
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        away = environ["URL"].replace(str(web.port), str(free.getsockname()[1]))
        (said,) = deliver(hidden, environ={"URL": away})
    assert not said.ok
    assert TOKEN not in said.said


def test_a_missing_secret_is_told_by_its_name(make: Make) -> None:
    channel = Channel("ops", make("http://h").kind, "", "", {"method": "POST"}, {"url": Secret(env="NOT_THERE")})
    (answer,) = deliver(channel)
    assert (answer.ok, answer.silent) == (False, True)
    assert "NOT_THERE" in answer.said


def test_a_channel_gets_nothing_of_the_daemon_s_environment(web: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "")
    channel = by_http(web.url(), body="{{ title }}")
    assert deliver(channel, environ={"SCHEDULER_DATABASE_URL": "postgresql://u:p@h/d", "PYTHONPATH": "/nowhere"})[0].ok


def test_what_cannot_be_an_address_is_told(make: Make) -> None:
    channel = Channel("ops", make("http://h").kind, "", "", {"method": "POST"}, {"url": Secret(env="URL")})
    (answer,) = deliver(channel, environ={"URL": "no address"})
    assert not answer.ok
    assert "address" in answer.said
