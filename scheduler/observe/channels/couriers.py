"""The daemon's side of sending: a process per order, which is ended when a channel falls silent."""

from __future__ import annotations

import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import IO
from urllib.parse import unquote

from scheduler.config.secrets import read_secret
from scheduler.core.channel import ADDRESS, Answer, Channel, Message
from scheduler.core.errors import InvalidInput
from scheduler.core.masking import Masks
from scheduler.observe.channels.order import WITHIN, answer_of, order_of

STARTING = 20.0
"""Seconds that the process has to load what it sends with, on a busy machine."""
_PARTS = 10.0
"""Further seconds for a message that a service gets in several parts."""
_PASSED_ON = ("PATH", "LANG", "LC_ALL", "HOME", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
_SHORTEST_PART = 4


class ProcessCourier:
    """Delivers from any thread. The secrets of a channel are read for each order, and are in no answer."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._processes: set[subprocess.Popen[str]] = set()

    def deliver(self, channel: Channel, messages: Sequence[Message]) -> list[Answer]:
        """In their order, one answer each; what comes after a channel fell silent is not tried and has no answer."""
        try:
            secrets = {
                name: read_secret(f"{name} of channel {channel.name}", one, self._environ)
                for name, one in channel.secrets.items()
            }
        except InvalidInput as error:
            return [Answer(False, str(error), silent=True)]
        masks = Masks(_hidden(channel, secrets))
        order = json.dumps(order_of(channel, secrets, list(messages)))
        return [
            Answer(one.ok, masks.text(one.said), one.silent, one.retry_after) for one in self._ask(order, len(messages))
        ]

    def close(self) -> None:
        """Ends what is being sent."""
        for process in list(self._processes):
            _end(process)

    def _ask(self, order: str, count: int) -> list[Answer]:
        names = (*_PASSED_ON, *_PROXIES, *map(str.lower, _PROXIES))
        environment = {name: self._environ[name] for name in names if name in self._environ}
        try:
            process = subprocess.Popen(
                [sys.executable, "-I", "-m", "scheduler.observe.channels"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env=environment,
                encoding="utf-8",
                process_group=0,
            )
        except OSError as error:
            return [Answer(False, f"no process can be started: {error.strerror or error}", silent=True)]
        self._processes.add(process)
        try:
            return list(_answers(process, order, count))
        finally:
            self._processes.discard(process)
            _end(process)
            process.wait()
            for pipe in (process.stdin, process.stdout):
                _close(pipe)


def _answers(process: subprocess.Popen[str], order: str, count: int) -> Iterator[Answer]:
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_talk, args=(process, order, lines), name="courier", daemon=True).start()
    limit = time.monotonic() + STARTING + WITHIN + _PARTS
    for _ in range(count):
        try:
            line = lines.get(timeout=max(0.0, limit - time.monotonic()))
        except queue.Empty:
            yield Answer(False, f"no answer within {WITHIN:g} s", silent=True)
            return
        if not line:
            yield Answer(False, "the process that sends ended before it was done", silent=True)
            return
        answer = answer_of(json.loads(line))
        yield answer
        if answer.silent:
            return
        limit = time.monotonic() + WITHIN + _PARTS


def _talk(process: subprocess.Popen[str], order: str, lines: queue.SimpleQueue[str]) -> None:
    """Hands over the order and what comes back; "" when nothing more will."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(order + "\n")
        process.stdin.flush()
        for line in process.stdout:
            lines.put(line)
    except (OSError, ValueError):
        pass  # It was ended.
    lines.put("")


def _end(process: subprocess.Popen[str]) -> None:
    """With all that it started: who else holds the pipe would keep its reader waiting. Nobody has waited for it yet, so
    that the number is still its own."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _close(pipe: IO[str] | None) -> None:
    try:
        if pipe is not None:
            pipe.close()
    except (OSError, ValueError):
        return


def _hidden(channel: Channel, secrets: Mapping[str, str]) -> list[str]:
    """What no answer may show: the secrets as they are and without their prefix, and each part of the address, of which
    only its service knows which one is the token."""
    found = [*secrets.values()]
    found += [secrets[name].removeprefix(one.prefix) for name, one in channel.secrets.items() if one.prefix]
    address = secrets.get(ADDRESS) or str(channel.options.get(ADDRESS, ""))
    _, _, rest = address.partition("://")
    if channel.kind == "http":  # The host of a URL is no secret, and says which server it was.
        host = re.split("[/?#]", rest, maxsplit=1)[0].rpartition("@")[2]
        rest = rest.replace(host, "", 1)
    parts = [part for part in re.split(r"[/:@?&=,]", rest) if len(part) >= _SHORTEST_PART]
    return [*found, address, *parts, *(unquote(part) for part in parts)]
