"""A small provider of events over HTTP, as hostile as its faults say: `python -m scheduler.testing.provider --help`.

It lists in five ways (see `lists`), signs and sends webhooks, and knows the truth: `facts.all()` against what arrived.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import socket
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from compensators.common.options import docs_of
from scheduler.core.durations import format_duration, parse_duration
from scheduler.core.errors import InvalidInput
from scheduler.testing.dialects import DIALECTS, SECRET
from scheduler.testing.facts import Facts
from scheduler.testing.faults import CALM, HOSTILE, Faults, Luck
from scheduler.testing.lists import Lists
from scheduler.testing.sender import Sender, plan

KEY = "key_not_a_secret_of_anybody"
LISTS = {
    "plain": "/events",
    "stripe": "/v1/events",
    "github": "/repos/shop/orders/hooks/1/deliveries",
    "shopify": "/admin/api/2026-01/orders.json",
}
"""Where the list lies that fits to each form of webhooks."""
MOST_EVENTS = 10_000.0
"""Events a second that can be asked for."""


def wall_clock() -> datetime:
    return datetime.now(UTC)


class Provider:
    """Listens on 127.0.0.1 from `start` to `close` (or inside `with`). `dialect` is the form of its webhooks:
    `plain stripe github shopify`; its lists are there in every form."""

    def __init__(
        self,
        faults: Faults = CALM,
        *,
        seed: int = 1,
        dialect: str = "plain",
        key: str = KEY,
        secret: str = SECRET,
        clock: Callable[[], datetime] = wall_clock,
        port: int = 0,
    ) -> None:
        self.faults = faults
        self.luck = Luck(seed)
        self.dialect = DIALECTS[dialect]
        self.key = key
        self.secret = secret
        self.facts = Facts(faults, self.luck, clock)
        self.lists = Lists(self.facts, faults, self.luck, key)
        self._server = _Listening(("127.0.0.1", port), _handler(self.lists))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def start(self) -> Provider:
        self._thread.start()
        return self

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def __enter__(self) -> Provider:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def use(self, faults: Faults) -> None:
        """Other faults from now on, for the lists; what happened stays."""
        self.lists.faults = faults

    def sender(self, url: str) -> Sender:
        """Of this provider's webhooks, to this address."""
        return Sender(url, self.dialect, self.secret)

    def send_all(self, url: str) -> Sender:
        """Everything that happened until now and is to be sent, in the order of its time, without waiting for it."""
        sender = self.sender(url)
        for one in plan(self.facts.all(), self.faults, self.luck):
            sender.send(one.fact, now=self.facts.now())
        sender.close()
        return sender

    def live(self, url: str, *, rate: float, until: Callable[[], bool]) -> Sender:
        """`rate` events a second happen and are sent, until `until` says so. What is delayed comes when it is due, or
        not any more. Blocks."""
        sender = self.sender(url)
        self.feed(sender, rate=rate, until=until)
        return sender

    def feed(self, sender: Sender, *, rate: float, until: Callable[[], bool]) -> None:
        """The same with a sender that others look at meanwhile; it is closed at the end."""
        waiting = plan([], self.faults, self.luck)
        began, made = time.monotonic(), 0
        while not until():
            while made < (time.monotonic() - began) * rate:
                fact = self.facts.add(self.facts.now())
                waiting = sorted([*waiting, *plan([fact], self.faults, self.luck)])
                made += 1
            while waiting and waiting[0].due <= self.facts.now():
                sender.send(waiting.pop(0).fact, now=self.facts.now())
            time.sleep(0.5 / rate)
        sender.close()


class _Listening(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Who asks may go away."""


def _handler(lists: Lists) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:  # named so by its base class
            parts = urlsplit(self.path)
            query = dict(parse_qsl(parts.query, keep_blank_values=True))
            self._answer(parts.path, query)

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
            self._answer(urlsplit(self.path).path, {name: str(value) for name, value in _flat(body)})

        def _answer(self, path: str, query: dict[str, str]) -> None:
            reply = lists.answer(path, query, {name.lower(): value for name, value in self.headers.items()})
            if reply.status == 0:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            data = json.dumps(reply.document).encode()
            self.send_response_only(reply.status)
            for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """`lists.log` has what was asked."""

    return Handler


def _flat(document: Any) -> list[tuple[str, Any]]:
    """The leaves of nested objects by their own names."""
    found: list[tuple[str, Any]] = []
    for name, value in document.items():
        found += _flat(value) if isinstance(value, dict) else [(name, value)]
    return found


def main(arguments: list[str] | None = None) -> int:
    """Lets events happen and sends them for a while, serves the lists until it is interrupted, and prints the truth."""
    parser = argparse.ArgumentParser(prog="python -m scheduler.testing.provider", description=main.__doc__)
    parser.add_argument("--webhook", metavar="URL", required=True, help="where webhooks go")
    parser.add_argument("--dialect", choices=sorted(DIALECTS), default="plain", help="form of the webhooks (plain)")
    parser.add_argument("--secret", default=SECRET, help="signs the webhooks (%(default)s)")
    parser.add_argument("--key", default=KEY, help="what the lists ask for (%(default)s)")
    parser.add_argument("--port", type=int, default=0, help="of the lists (a free one)")
    parser.add_argument("--rate", type=_rate, metavar="NUMBER", default=20.0, help="events a second (20)")
    minute = timedelta(minutes=1)
    parser.add_argument("--for", dest="length", type=_duration, metavar="DURATION", default=minute, help="as 90s (1m)")
    parser.add_argument("--seed", type=int, default=1, help="another one is another misfortune (1)")
    faults = parser.add_argument_group("faults", "A SHARE is between 0 and 1, a DURATION is as 90s, 15m or 1h30m.")
    docs = docs_of(Faults)
    for one in dataclasses.fields(Faults):
        default = getattr(HOSTILE, one.name)
        option = f"--{one.name.replace('_', '-')}"
        kind, unit, shown = _kind(one.name, default)
        faults.add_argument(option, type=kind, metavar=unit, default=default, help=f"{docs[one.name]} ({shown})")
    given = parser.parse_args(arguments)
    chosen = Faults(**{one.name: getattr(given, one.name) for one in dataclasses.fields(Faults)})
    made = Provider(chosen, seed=given.seed, dialect=given.dialect, key=given.key, secret=given.secret, port=given.port)
    with contextlib.suppress(KeyboardInterrupt):
        _tell(made, given)
    return 0


def _kind(name: str, default: Any) -> tuple[Callable[[str], Any], str, str]:
    """How an option is read, what stands for its value in the help, and how its default is written."""
    if isinstance(default, timedelta):
        return _duration, "DURATION", format_duration(default)
    if name == "keeps":
        return _duration, "DURATION", "for ever"
    return (_share, "SHARE", f"{default:g}") if isinstance(default, float) else (str, "TEXT", str(default))


def _duration(text: str) -> timedelta:
    try:
        return parse_duration(text)
    except InvalidInput as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _share(text: str) -> float:
    """NaN is none."""
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share; write a number between 0 and 1: 0.3")
    return share


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0 < rate <= MOST_EVENTS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a rate; write a number of events a second, as 0.5 or 20")
    return rate


def _tell(made: Provider, given: argparse.Namespace) -> None:
    with made as provider:
        print(f"lists at {provider.url}{LISTS[given.dialect]}, webhooks to {given.webhook}", flush=True)
        end = time.monotonic() + given.length.total_seconds()
        sender = provider.live(given.webhook, rate=given.rate, until=lambda: time.monotonic() > end)
        facts = provider.facts.all()
        answers = ", ".join(f"{count} × {status or 'none'}" for status, count in sorted(sender.statuses.items()))
        print(f"{len(facts)} events; webhooks for {len(sender.accepted)} were accepted; answers: {answers}", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    sys.exit(main())
