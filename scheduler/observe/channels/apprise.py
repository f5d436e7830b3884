"""`url`: whatever apprise knows: chats, e-mail, push services."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import apprise
import requests

from scheduler.core.channel import ADDRESS, Answer, Message
from scheduler.observe.channels.order import WITHIN, Target
from scheduler.observe.channels.verdict import verdict

_CONNECT = 5.0
_BETWEEN_PARTS = 1.0
_LEVELS = {"✗": apprise.NotifyType.FAILURE, "✓": apprise.NotifyType.SUCCESS}
_REASON = "Socket Exception: "
"""So apprise begins the line of its log that says why nobody could be reached."""

_ADDRESS = re.compile(r"[\w.+-]+://\S+")


def send(target: Target, message: Message) -> Answer:
    """What apprise made of it, and what the service said: apprise itself takes every 200 of some services for a yes."""
    address = str(target.value(ADDRESS)).strip()
    with _listening() as heard:
        service = apprise.Apprise.instantiate(address, suppress_exceptions=True)
        if service is None:
            return Answer(False, f"apprise does not understand the address: {heard.words()}")
        _set_up(service, address)
        kind = _LEVELS.get(message.title[:1], apprise.NotifyType.INFO)
        ok = bool(service.notify(body=message.text, title=message.title, notify_type=kind, body_format="text"))
    answer = heard.answer()
    if answer is not None and (ok or not answer.ok):
        return answer
    if ok:
        return Answer(True, "sent")
    return Answer(False, heard.words() or "apprise could not send it, and does not say why", silent=heard.unreached)


def _set_up(service: Any, address: str) -> None:
    """What the address says itself stays: how long to wait, what to do with a text that is too long for one message."""
    if "cto=" not in address:
        service.socket_connect_timeout = _CONNECT
    if "rto=" not in address:
        service.socket_read_timeout = WITHIN
    if "overflow=" not in address:
        service.overflow_mode = apprise.OverflowMode.SPLIT
    service.request_rate_per_sec = min(service.request_rate_per_sec, _BETWEEN_PARTS)


class _Heard(logging.Handler):
    """What apprise logged, and the answers to the requests that it made."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self._complaints: list[str] = []
        self._answers: list[Answer] = []
        self.unreached = False

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if record.levelno >= logging.WARNING:
            self._complaints.append(text)
        elif text.startswith(_REASON):
            self.unreached = True
            self._complaints.append(text.removeprefix(_REASON))

    def note(self, response: requests.Response) -> None:
        if not response.is_redirect:
            wait = response.headers.get("retry-after")
            self._answers.append(verdict(response.status_code, response.reason, response.content, wait))

    def answer(self) -> Answer | None:
        """The last no, else the last answer; None if apprise asked nobody by HTTP."""
        return next(
            (one for one in reversed(self._answers) if not one.ok), self._answers[-1] if self._answers else None
        )

    def words(self) -> str:
        said = " ".join(" ".join(self._complaints[-2:]).split())
        return _ADDRESS.sub("***", said)


_one_at_a_time = threading.Lock()


@contextmanager
def _listening() -> Iterator[_Heard]:
    """Around one message: a process of senders sends one after the other."""
    heard = _Heard()
    logger = logging.getLogger("apprise")
    plain = requests.Session.send

    def noted(self: requests.Session, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        response = plain(self, request, **options)
        heard.note(response)
        return response

    with _one_at_a_time:
        logger.addHandler(heard)
        logger.setLevel(logging.DEBUG)
        logger.propagate = False
        setattr(requests.Session, "send", noted)  # noqa: B010  # a method is replaced, which mypy would refuse
        try:
            yield heard
        finally:
            setattr(requests.Session, "send", plain)  # noqa: B010
            logger.removeHandler(heard)
