"""Asking a provider over HTTP: patient with its limits, and no further than its own server."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import httpx

from scheduler.core.compensator import CursorExpired, Json, ListingFailed, Throttled
from scheduler.core.document import document_of
from scheduler.core.errors import InvalidInput
from scheduler.core.retry_after import http_date, wait
from scheduler.trust import trusted

LONGEST_WAIT = 60.0
"""Seconds that a call waits at most before it is repeated; who is told to wait longer gives up for this time."""
_TRIES = 5
_TIMEOUT = httpx.Timeout(60.0, connect=15.0)
_LARGEST = 64 << 20
_FORGOTTEN = (400, 404, 409, 410, 422)
_AGAIN = (408, 425, 500, 502, 503, 504)

Parameters = Iterable[tuple[str, str]]


class Declined(ListingFailed):
    """An answer 3xx or 4xx, which would be the same again. `status` is its code."""

    def __init__(self, why: str, status: int) -> None:
        super().__init__(why, final=True)
        self.status = status


@dataclass(frozen=True, slots=True)
class Reply:
    """`now`: the provider's clock (whole seconds) when it answered, None if it did not say. `next`: the address of the
    Link header's rel="next"."""

    document: Json = field(repr=False)
    now: datetime | None
    next: str | None


class Client:
    """One thread's connection to one provider. 5xx, 408, 425, broken connections and 429 are tried again: five times in
    all, after what Retry-After says (or twice as long each time), always a little longer, never shorter.

    Raises Declined, Throttled (429 to the last, or told to wait longer than a minute), ListingFailed. No text of an
    error has a query in it."""

    def __init__(
        self,
        headers: Mapping[str, str],
        *,
        basic: tuple[str, str] | None = None,
        pace: timedelta | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._http = httpx.Client(
            verify=trusted(),
            headers={"user-agent": "schedulerd", "accept": "application/json", **headers},
            auth=basic,
            timeout=_TIMEOUT,
            follow_redirects=False,
        )
        self._pace = 0.0 if pace is None else pace.total_seconds()
        self._sleep = sleep
        self._asked_at = -1e9
        self._calls = self._throttled = 0

    def close(self) -> None:
        self._http.close()

    def counts(self) -> tuple[int, int]:
        """Requests since this was asked last, and those among them that were answered 429."""
        found = self._calls, self._throttled
        self._calls = self._throttled = 0
        return found

    def get(self, url: str, parameters: Parameters = (), *, goes_on: bool = False) -> Reply:
        """`goes_on`: the address has a cursor in it, and a provider that declines it has forgotten that one:
        CursorExpired."""
        return self._ask(self._http.build_request("GET", url, params=_together(url, parameters)), goes_on)

    def post(self, url: str, document: Json, *, goes_on: bool = False) -> Reply:
        return self._ask(self._http.build_request("POST", url, json=document), goes_on)

    def _ask(self, request: httpx.Request, goes_on: bool) -> Reply:
        try:
            return self._patiently(request)
        except Declined as error:
            if goes_on and error.status in _FORGOTTEN:
                raise CursorExpired(str(error)) from None
            raise

    def _patiently(self, request: httpx.Request) -> Reply:
        for tries in range(1, _TRIES + 1):
            last = tries == _TRIES
            delay = float(2 ** (tries - 1))
            try:
                response, data = self._send(request)
            except httpx.HTTPError as error:
                if last or isinstance(error, httpx.UnsupportedProtocol):
                    raise ListingFailed(f"{_where(request)}: {_words(error)}") from None
            else:
                if response.is_success:
                    return _reply(request, response, data)
                delay = self._delay(request, response, data, delay, last=last)
            self._sleep(delay + random.uniform(0.05, 0.1 * delay + 0.1))  # noqa: S311  # spreads, hides nothing
        raise AssertionError("the last try returns or raises")

    def _send(self, request: httpx.Request) -> tuple[httpx.Response, bytes]:
        if self._pace:
            self._sleep(max(0.0, self._asked_at + self._pace - time.monotonic()))
            self._asked_at = time.monotonic()
        self._calls += 1
        response = self._http.send(request, stream=True)
        try:
            data = bytearray()
            for piece in response.iter_bytes():
                data += piece
                if len(data) > _LARGEST:
                    raise ListingFailed(f"{_where(request)} answered more than {_LARGEST:,} bytes; ask for less a page")
            return response, bytes(data)
        finally:
            response.close()

    def _delay(
        self, request: httpx.Request, response: httpx.Response, data: bytes, otherwise: float, *, last: bool
    ) -> float:
        """Seconds until the same may be asked again; raises if that makes no sense."""
        status = response.status_code
        told = _told(response)
        what = f"{_where(request)} answered {status} {response.reason_phrase}".rstrip()
        if status == 429 or (status == 403 and told is not None):
            self._throttled += 1
            if last or (told or 0.0) > LONGEST_WAIT:
                raise Throttled(f"{what}: it wants to be asked less often", told)
            return otherwise if told is None else told
        first = data[:200].decode("utf-8", "replace").strip().partition("\n")[0]
        said = f": {first}" if first else ""
        if status not in _AGAIN:
            raise Declined(f"{what}{said}{_remedy(request, response)}", status)
        if last or (told or 0.0) > LONGEST_WAIT:
            raise ListingFailed(f"{what}{said}")
        return max(otherwise, told or 0.0)


def _together(url: str, parameters: Parameters) -> httpx.QueryParams:
    """Those that the address has already, and these instead of those of the same name."""
    return httpx.QueryParams(httpx.URL(url).params).merge(httpx.QueryParams(tuple(parameters)))


def _reply(request: httpx.Request, response: httpx.Response, data: bytes) -> Reply:
    try:
        document = document_of(data)
    except InvalidInput:
        raise ListingFailed(f"{_where(request)} answered something that is not JSON") from None
    link = response.links.get("next", {}).get("url")
    return Reply(document, _clock(response), None if link is None else same_server(request.url, link))


def same_server(asked: httpx.URL | str, link: str) -> str:
    """The absolute address of a link in an answer. ListingFailed if it leads elsewhere: the key would go there too."""
    asked = httpx.URL(asked)
    try:
        target = asked.join(link)
    except httpx.InvalidURL:
        raise ListingFailed(f"{_shown(asked)} names a next page that is no address") from None
    if (target.scheme, target.host, target.port) != (asked.scheme, asked.host, asked.port):
        raise ListingFailed(f"{_shown(asked)} names a next page on another server: {_shown(target)}", final=True)
    return str(target)


def _told(response: httpx.Response) -> float | None:
    """Seconds that the provider wants us to wait."""
    now = http_date(response.headers.get("date")) or datetime.now(UTC)
    found = wait(response.headers.get("retry-after"), now)
    if found is None and response.headers.get("x-ratelimit-remaining") == "0":
        try:
            found = datetime.fromtimestamp(int(response.headers["x-ratelimit-reset"]), UTC) - now
        except (KeyError, ValueError, OverflowError, OSError):
            return None
    return None if found is None else max(0.0, found.total_seconds())


def _clock(response: httpx.Response) -> datetime | None:
    """`Date`, and what a cache says has passed since."""
    date = http_date(response.headers.get("date"))
    age = response.headers.get("age", "")
    if date is None or not (age.isascii() and age.isdigit() and len(age) < 9):
        return date
    return date + timedelta(seconds=int(age))


def _remedy(request: httpx.Request, response: httpx.Response) -> str:
    match response.status_code:
        case 401 | 403:
            return "; check the key in `with:`, and what it may read"
        case 404:
            return "; check the address in `with:`, and what the key may see"
        case status if 300 <= status < 400:
            return f"; write the address that it points to: {response.headers.get('location', '')[:200]}"
    return ""


def _words(error: httpx.HTTPError) -> str:
    match error:
        case httpx.ConnectTimeout():
            return "no connection within 15 seconds; is the address right and reachable from here?"
        case httpx.TimeoutException():
            return "no answer in time"
    return f"{type(error).__name__}: {error}".rstrip(": ")


def _where(request: httpx.Request) -> str:
    return f"{request.method} {_shown(request.url)}"


def _shown(url: httpx.URL) -> str:
    """Without user, password and query, which may be secrets."""
    port = "" if url.port is None else f":{url.port}"
    return f"{url.scheme}://{url.host}{port}{url.path}"
