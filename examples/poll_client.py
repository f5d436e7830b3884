"""Asks for a run over HTTP and waits for its end, by polling as one should. Needs nothing but Python.

    SCHEDULERD_TOKEN_FILE=token  python examples/poll_client.py JOB ['{"order": 17}'] [http://127.0.0.1:8780]

- It looks every 5 seconds, give or take one: a thousand clients that were started together do not stay together.
- A request that is not answered within 5 seconds has failed.
- After a failure it waits 1, 2, 4, 8 … up to 60 seconds, longer if the server says so (Retry-After).
- After 5 failures in a row it gives up and says why. The run goes on without it.
- The Idempotency-Key makes it safe to ask again when nobody knows whether the first request arrived.

Exit status: 0 if the run completed, 1 if it did not, 2 if what was asked for is wrong, 3 if the server is not reached.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

EVERY, JITTER = 5.0, 1.0
TIMEOUT = 5.0
LONGEST_PAUSE = 60.0
PATIENCE = 5
FINAL = ("COMPLETED", "FAILED", "CANCELED", "SKIPPED")


class GivenUp(Exception):
    """The server was not reached so many times in a row."""


class Wrong(Exception):
    """The server understood and refused: asking again would not help."""


class Client:
    """`sleep` and `random` are parameters for tests."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        timeout: float = TIMEOUT,
        sleep: Callable[[float], None] = time.sleep,
        uniform: Callable[[float, float], float] = random.uniform,
        say: Callable[[str], None] = lambda text: print(text, file=sys.stderr),
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise Wrong(f"{url} is no address: write http://127.0.0.1:8780")
        self._url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._timeout = timeout
        self._sleep = sleep
        self._uniform = uniform
        self._say = say

    def start(self, job: str, payload: Any = None, key: str | None = None) -> str:
        """The id of the run. Safe to repeat with the same `key`."""
        headers = {"Idempotency-Key": key or str(uuid.uuid4()), "Content-Type": "application/json"}
        answer = self._ask("POST", f"/v1/jobs/{quote(job, safe='')}/runs", {"payload": payload}, headers)
        place = answer["queue_position"]
        self._say(f"run {answer['run_id']}: {answer['status']}" + ("" if place is None else f", {place} before it"))
        return str(answer["run_id"])

    def wait(self, run: str) -> str:
        """The final status."""
        shown = None
        while True:
            state = self._ask("GET", f"/v1/runs/{run}/status")
            if state != shown:
                progress = "" if state["progress"] is None else f" {state['progress']:g} %"
                self._say(f"{state['status']}{progress} {state['message'] or ''}".rstrip())
                shown = state
            if state["status"] in FINAL:
                return str(state["status"])
            self._sleep(EVERY + self._uniform(-JITTER, JITTER))

    def _ask(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        failures = 0
        while True:
            request = urllib.request.Request(  # noqa: S310 - the scheme was looked at
                self._url + path, data, {**self._headers, **(headers or {})}, method=method
            )
            try:
                with urllib.request.urlopen(request, timeout=self._timeout) as answer:  # noqa: S310
                    return json.loads(answer.read())
            except urllib.error.HTTPError as error:
                problem = _problem(error)
                if error.code < 500 and error.code not in (408, 429):
                    raise Wrong(problem) from None
                why, least = f"{error.code}: {problem}", _seconds(error.headers.get("Retry-After"))
            except (OSError, ValueError, http.client.HTTPException) as error:
                why, least = str(getattr(error, "reason", error)) or type(error).__name__, 0.0
            failures += 1
            if failures == PATIENCE:
                raise GivenUp(f"{self._url} failed {failures} times in a row, the last time with: {why}")
            pause = max(min(LONGEST_PAUSE, 2.0 ** (failures - 1)), least)
            self._say(f"{why}; trying again in {pause:g} s")
            self._sleep(pause)


def _problem(error: urllib.error.HTTPError) -> str:
    try:
        problem = json.loads(error.read())
        return str(problem["detail"]) + (f" ({problem['hint']})" if "hint" in problem else "")
    except (OSError, ValueError, KeyError, TypeError):
        return str(error.reason)


def _seconds(text: str | None) -> float:
    return float(text) if text is not None and text.isdigit() else 0.0


def main(arguments: list[str]) -> int:
    if not 1 <= len(arguments) <= 3 or arguments[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    defaults = ["", "null", "http://127.0.0.1:8780"]
    job, payload, url = arguments + defaults[len(arguments) :]
    file = os.environ.get("SCHEDULERD_TOKEN_FILE")
    token = Path(file).read_text().strip() if file else None
    try:
        carried = json.loads(payload)
    except ValueError as error:
        print(f"{payload} is not JSON: {error}", file=sys.stderr)
        return 2
    try:
        client = Client(url, token)
        status = client.wait(client.start(job, carried))
    except Wrong as error:
        print(f"refused: {error}", file=sys.stderr)
        return 2
    except GivenUp as error:
        print(f"given up: {error}", file=sys.stderr)
        return 3
    return 0 if status == "COMPLETED" else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
