"""`http`: the request as it was written."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from scheduler.core.channel import Answer, Channel, Message
from scheduler.core.secret import Secret
from scheduler.observe.channels.couriers import ProcessCourier
from tests.observe.channels.receiver import Receiver, receiver

MESSAGE = Message('✗ "a"', "line 1\nline 2", {"job": "a", "items": [{"job": "a"}]})


@pytest.fixture
def web() -> Iterator[Receiver]:
    with receiver() as found:
        yield found


def deliver(web: Receiver, secrets: dict[str, Secret] | None = None, **options: object) -> Answer:
    written = {"method": "POST", "url": web.url("/x?y=1"), **options}
    channel = Channel("ops", "http", "", "", written, secrets or {})
    (answer,) = ProcessCourier({**os.environ, "TOKEN": "abcd1234"}).deliver(channel, [MESSAGE])
    return answer


def test_without_a_template_everything_is_sent_as_json(web: Receiver) -> None:
    assert deliver(web).ok
    (got,) = web.got
    assert got.json() == {"title": MESSAGE.title, "text": MESSAGE.text, **MESSAGE.names}
    assert (got.path, got.headers["content-type"], got.headers["user-agent"]) == (
        "/x?y=1",
        "application/json",
        "schedulerd",
    )


def test_a_template_makes_the_body_and_headers_may_be_secret(web: Receiver) -> None:
    secrets = {"headers.Authorization": Secret(env="TOKEN", prefix="Bearer ")}
    body = '{"msg": {{ (title ~ "\\n" ~ text) | tojson }}}'
    assert deliver(web, secrets, body=body, headers={"X-A": "b"}, method="PUT").ok
    (got,) = web.got
    assert got.json() == {"msg": f"{MESSAGE.title}\n{MESSAGE.text}"}
    assert (got.headers["authorization"], got.headers["x-a"]) == ("Bearer abcd1234", "b")


def test_a_plain_text_is_sent_as_one(web: Receiver) -> None:
    assert deliver(web, body="{{ title }}").ok
    assert web.got[0].headers["content-type"] == "text/plain; charset=utf-8"
    assert deliver(web, body="{{ title }}", headers={"content-type": "text/x"}).ok
    assert web.got[1].headers["content-type"] == "text/x"


def test_a_template_that_cannot_be_filled_in_is_told_and_nothing_is_sent(web: Receiver) -> None:
    answer = deliver(web, body="{{ nope }}")
    assert (answer.ok, answer.silent) == (False, False)
    assert "'nope' is undefined" in answer.said
    assert "().__class__" not in deliver(web, body="{{ ().__class__ }}").said or not web.got
    assert web.got == []


def test_a_webhook_that_moved_is_told_and_not_followed(web: Receiver) -> None:
    web.answers.append((302, {"Location": web.url("/elsewhere")}, b""))
    answer = deliver(web)
    assert not answer.ok
    assert answer.said.startswith("302")
    assert len(web.got) == 1


def test_an_answer_without_end_is_not_read_to_its_end(web: Receiver) -> None:
    web.answers.append((200, {}, b"x" * 1_000_000))
    answer = deliver(web)
    assert answer.ok
    assert len(answer.said) < 300
