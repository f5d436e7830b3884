"""`http`: one HTTP request per message."""

from __future__ import annotations

import json

import httpx

from scheduler.config.filling import BadTemplate, content_type, render
from scheduler.core.channel import ADDRESS, Answer, Message
from scheduler.observe.channels.order import WITHIN, Target
from scheduler.observe.channels.verdict import LONGEST_BODY, verdict
from scheduler.trust import trusted

_HEADER = "headers."


def send(target: Target, message: Message) -> Answer:
    """The body is the filled template, or everything as JSON. Redirects are not followed: a webhook that moved is to be
    corrected where it is written."""
    names = {**message.names, "title": message.title, "text": message.text}
    template = target.value("body")
    try:
        body = json.dumps(names).encode() if template is None else render(template, names)
    except BadTemplate as error:
        return Answer(False, str(error))
    headers = httpx.Headers({"user-agent": "schedulerd", **(target.value("headers") or {})})
    for name, value in target.secrets.items():
        if name.startswith(_HEADER):
            headers[name.removeprefix(_HEADER)] = value
    headers.setdefault("content-type", content_type(body))
    address = str(target.value(ADDRESS)).strip()
    try:
        method = target.value("method")
        with httpx.stream(
            method, address, headers=headers, content=body, verify=trusted(), timeout=WITHIN, follow_redirects=False
        ) as answer:
            said = _beginning(answer)
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        return Answer(False, f"the address is no URL: {error}")
    except httpx.TimeoutException:
        return Answer(False, f"no answer within {WITHIN:g} s", silent=True)
    except httpx.TransportError as error:
        return Answer(False, f"cannot be reached: {error}", silent=True)
    return verdict(answer.status_code, answer.reason_phrase, said, answer.headers.get("retry-after"))


def _beginning(answer: httpx.Response) -> bytes:
    """Of its body: a server that never ends is not listened to for ever."""
    read = b""
    for piece in answer.iter_bytes():
        read += piece
        if len(read) > LONGEST_BODY:
            break
    return read
