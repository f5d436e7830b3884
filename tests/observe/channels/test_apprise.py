"""`url`: services that apprise knows, e-mail among them."""

from __future__ import annotations

import os
from email import message_from_string
from email.header import decode_header, make_header

from scheduler.core.channel import Answer, Channel, Message
from scheduler.observe.channels.couriers import ProcessCourier
from tests.observe.channels.receiver import mailbox, receiver

MESSAGE = Message("✗ backup: MISSED", "Since Mon.\nType: schedctl logs x", {})


def deliver(url: str, message: Message = MESSAGE) -> Answer:
    (answer,) = ProcessCourier(os.environ).deliver(Channel("ops", "apprise", "", "", {"url": url}), [message])
    return answer


def test_a_mail_arrives() -> None:
    with mailbox() as box:
        answer = deliver(f"mailto://127.0.0.1:{box.port}?from=sched@example.com&to=ops@example.com&mode=insecure")
        assert answer.ok, answer
        (mail,) = box.mails
    found = message_from_string(mail)
    assert str(make_header(decode_header(found["Subject"]))) == MESSAGE.title
    assert "ops@example.com" in found["To"]
    payload = (
        found.get_payload(decode=True) if not found.is_multipart() else found.get_payload(0).get_payload(decode=True)
    )  # type: ignore[union-attr]
    assert "schedctl logs x" in payload.decode()  # type: ignore[union-attr]


def test_a_mail_server_that_refuses_is_told() -> None:
    with mailbox() as box:
        box.refuses = True
        answer = deliver(f"mailto://127.0.0.1:{box.port}?from=sched@example.com&to=ops@example.com&mode=insecure")
    assert not answer.ok
    assert "550" in answer.said


def test_good_and_bad_news_look_different() -> None:
    with receiver() as web:
        deliver(web.url("/", "json"))
        deliver(web.url("/", "json"), Message("✓ backup: well again", "Since Mon.", {}))
        assert [one.json()["type"] for one in web.got] == ["failure", "success"]


def test_a_text_that_is_too_long_for_the_service_comes_in_parts_and_whole() -> None:
    lines = "\n".join(f"line {number} {'x' * 60}" for number in range(600))
    with receiver() as web:
        assert deliver(web.url("/", "json"), Message("✗ t", lines, {})).ok
        said = "\n".join(one.json()["message"] for one in web.got)
    assert len(web.got) > 1
    assert all(f"line {number} " in said for number in range(600))


def test_a_service_that_nobody_knows_is_told_without_its_address() -> None:
    answer = deliver("unheard://token1234567/x")
    assert not answer.ok
    assert "does not understand" in answer.said
    assert "token1234567" not in answer.said
