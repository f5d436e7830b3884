"""One ping over HTTP, as healthchecks and its kind take it (their "Pinging API")."""

from __future__ import annotations

import http.client
import re
import socket
from datetime import UTC, datetime
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit
from urllib.request import Request, urlopen

from scheduler.core.masking import SHORTEST, Masks
from scheduler.core.ping import FAIL, START, TIMEOUT, Answer
from scheduler.core.retry_after import http_date, wait

_ANSWER = 200
"""Bytes of an answer that are looked at: healthchecks answers with a few words."""


class Sender:
    """`agent`: how it introduces itself."""

    def __init__(self, agent: str, timeout: float = TIMEOUT) -> None:
        self._agent = agent
        self._timeout = timeout

    def __call__(self, url: str, body: bytes) -> Answer:
        """POST; 2xx means that it was taken. Raises nothing, and says the URL nowhere, also where the other side
        repeats it."""
        headers = {"User-Agent": self._agent, "Content-Type": "text/plain; charset=utf-8"}
        try:
            request = Request(url, data=body, headers=headers, method="POST")  # noqa: S310 -- http or https, checked
            with urlopen(request, timeout=self._timeout) as response:  # noqa: S310
                response.read(_ANSWER)
                return Answer(limit=_limit(response.headers.get("Ping-Body-Limit")))
        except HTTPError as error:
            with error:
                return _refused(error, _masks(url))
        except TimeoutError:
            return self._silent()
        except URLError as error:
            if isinstance(error.reason, TimeoutError):
                return self._silent()
            return Answer(f"it cannot be reached: {_words(error.reason)}")
        except (OSError, http.client.HTTPException) as error:
            return Answer(f"the connection broke: {_words(error)}")
        except ValueError:
            return Answer("its URL is not one")

    def _silent(self) -> Answer:
        return Answer(f"no answer within {self._timeout:g} s")


def _refused(error: HTTPError, masks: Masks) -> Answer:
    try:
        said = masks.hide(error.read(_ANSWER))
    except (OSError, http.client.HTTPException):
        said = b""
    # It may have been cut in the middle of what is to be hidden.
    begun = masks.begun(said)
    text = (said[:-begun] if begun >= SHORTEST else said).decode("utf-8", "replace")
    line = "".join(letter if letter.isprintable() else " " for letter in text).strip()
    now = http_date(error.headers.get("Date")) or datetime.now(UTC)
    words = f"it answered {error.code}" + (f": {line}" if line and "<" not in line else "")
    return Answer(words, not_sooner=wait(error.headers.get("Retry-After"), now))


def _masks(url: str) -> Masks:
    """Whoever knows the path can silence the alarm, and only the service knows which part of it is the secret. Its host
    is none, nor is the word that was put behind it."""
    parts = urlsplit(url)
    user = parts.netloc.rpartition("@")[0]
    path = f"{parts.path}?{parts.query}" if parts.query else parts.path
    pieces = [one for one in re.split("[/:@?&=,]", f"{user}/{path}") if one not in (START, FAIL)]
    return Masks([url, path, parts.path, *pieces, *map(unquote, pieces)])


def _words(error: object) -> str:
    if isinstance(error, socket.gaierror):
        return "its name is not known"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__


def _limit(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 10 else None
