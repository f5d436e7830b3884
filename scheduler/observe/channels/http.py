"""`http`: one HTTP request per message. With the standard library: this process lives for one order, and a larger
library would take longer to load than the request to make."""

from __future__ import annotations

import http.client
import json
import socket
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, HTTPSHandler, OpenerDirector, Request, build_opener

from scheduler.core.channel import ADDRESS, Answer, Message
from scheduler.observe.channels.order import WITHIN, Target
from scheduler.observe.channels.verdict import LONGEST_BODY, verdict

_HEADER = "headers."


class _NotFollowed(HTTPRedirectHandler):
    """A webhook that moved is to be corrected where it is written."""

    def redirect_request(self, *_: Any) -> None:
        return None


def send(target: Target, message: Message) -> Answer:
    """The body is the filled template, or everything as JSON."""
    address = str(target.value(ADDRESS)).strip()
    headers = {"User-Agent": "schedulerd", "Content-Type": "application/json", **(target.value("headers") or {})}
    for name, value in target.secrets.items():
        if name.startswith(_HEADER):
            headers[name.removeprefix(_HEADER)] = value
    names = {**message.names, "title": message.title, "text": message.text}
    template = target.value("body")
    if template is None:
        body = json.dumps(names).encode()
    else:
        from scheduler.config.filling import BadTemplate, content_type, render

        try:
            body = render(template, names)
        except BadTemplate as error:
            return Answer(False, str(error))
        if not any(name.lower() == "content-type" for name in target.value("headers") or {}):
            headers["Content-Type"] = content_type(body)
    try:
        request = Request(address, body, headers, method=target.value("method"))  # noqa: S310 -- checked below
    except ValueError:
        return Answer(False, "its address is no URL")
    if request.type not in ("http", "https"):
        return Answer(False, "its address begins neither with http:// nor with https://")
    return _asked(_opener(request.type), request)


def _opener(scheme: str) -> OpenerDirector:
    if scheme == "http":
        return build_opener(_NotFollowed())
    from scheduler.trust import trusted

    return build_opener(_NotFollowed(), HTTPSHandler(context=trusted()))


def _asked(opener: OpenerDirector, request: Request) -> Answer:
    try:
        with opener.open(request, timeout=WITHIN) as answer:
            said = answer.read(LONGEST_BODY)
            return verdict(answer.status, answer.reason, said, answer.headers.get("Retry-After"))
    except HTTPError as error:
        with error:
            return verdict(error.code, error.reason, error.read(LONGEST_BODY), error.headers.get("Retry-After"))
    except TimeoutError:
        return _silent()
    except URLError as error:
        if isinstance(error.reason, TimeoutError):
            return _silent()
        return Answer(False, f"cannot be reached: {_words(error.reason)}", silent=True)
    except (OSError, http.client.HTTPException) as error:
        return Answer(False, f"the connection broke: {_words(error)}", silent=True)


def _silent() -> Answer:
    return Answer(False, f"no answer within {WITHIN:g} s", silent=True)


def _words(error: object) -> str:
    if isinstance(error, socket.gaierror):
        return "its name is not known"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return f"{type(error).__name__}: {error}"
