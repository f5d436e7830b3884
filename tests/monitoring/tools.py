"""Prometheus and Alertmanager as Debian packages them, on free ports, with what monitoring/ ships, in a hurry."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.until import until

SHIPPED = Path(__file__).parents[2] / "monitoring"
REQUIRED = "TESTS_REQUIRE_PROMETHEUS"
HURRY = "2s"
"""What `for:` is in the tests; the rules are the shipped ones otherwise."""

_NAMES = {
    "prometheus": ("prometheus",),
    "promtool": ("promtool",),
    "alertmanager": ("prometheus-alertmanager", "alertmanager"),
    "amtool": ("amtool",),
}


def program(name: str) -> str:
    """Its path. Where it is not installed the test is skipped, or fails if REQUIRED says so."""
    for candidate in _NAMES[name]:
        found = shutil.which(candidate)
        if found is not None:
            return found
    why = f"{name} is not installed: apt-get install prometheus prometheus-alertmanager"
    if os.environ.get(REQUIRED):
        pytest.fail(f"{why} ({REQUIRED} is set)")
    pytest.skip(why)


def checked(*command: str, given: bytes | None = None) -> str:
    """What the program printed; it must be content."""
    done = subprocess.run(command, input=given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=90)
    printed = done.stdout.decode()
    assert done.returncode == 0, printed
    return printed


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


# ------------------------------------------------------------ who is told


@dataclass(frozen=True)
class Told:
    """One alert of one notification. `at`: seconds since 1970."""

    at: float
    receiver: str
    status: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]

    @property
    def name(self) -> str:
        return self.labels["alertname"]


class Receiver:
    """What Alertmanager sends to, on a port of its own."""

    def __init__(self) -> None:
        self.told: list[Told] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                at = time.time()
                receiver.told += [
                    Told(at, self.path.strip("/"), one["status"], one["labels"], one["annotations"])
                    for one in body["alerts"]
                ]
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def of(self, name: str, status: str | None = None, **labels: str) -> list[Told]:
        """In the order in which they came."""
        return [
            one
            for one in self.told
            if one.name == name and status in (None, one.status) and labels.items() <= one.labels.items()
        ]


# ------------------------------------------------------------ the two servers


@dataclass
class Monitoring:
    """A Prometheus that scrapes `targets` every second, and an Alertmanager that tells `receiver`."""

    url: str
    receiver: Receiver
    folder: Path
    logs: list[Path] = field(default_factory=list)

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The vector that the expression is now; `{}` labels and a value for a scalar."""
        result = self._ask("/api/v1/query?" + urllib.parse.urlencode({"query": expression}))
        if result["resultType"] == "scalar":
            return [{"metric": {}, "value": result["result"]}]
        found: list[dict[str, Any]] = result["result"]
        return found

    def value(self, expression: str) -> float | None:
        """Of the one series; None if there is none."""
        series = self.query(expression)
        assert len(series) <= 1, series
        return float(series[0]["value"][1]) if series else None

    def alerts(self, name: str, **labels: str) -> list[dict[str, Any]]:
        """Pending and firing."""
        found = self._ask("/api/v1/alerts")["alerts"]
        wanted = {"alertname": name, **labels}.items()
        return [one for one in found if wanted <= one["labels"].items()]

    def faults(self) -> list[str]:
        """Rules whose last evaluation failed."""
        groups = self._ask("/api/v1/rules")["groups"]
        return [f"{rule['name']}: {rule['lastError']}" for g in groups for rule in g["rules"] if rule.get("lastError")]

    def _ask(self, path: str) -> Any:
        try:
            with urllib.request.urlopen(self.url + path, timeout=20) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            with error:
                raise AssertionError(error.read().decode()) from None


@contextmanager
def monitoring(folder: Path, targets: Sequence[str]) -> Iterator[Monitoring]:
    """Started and ready; ended at the end."""
    server, router = program("prometheus"), program("alertmanager")
    folder.mkdir()
    receiver = Receiver()
    ports = free_port(), free_port()
    found = Monitoring(f"http://127.0.0.1:{ports[0]}", receiver, folder)
    _write(folder, targets, ports[1], receiver.url)
    commands = [
        [
            server,
            f"--config.file={folder}/prometheus.yml",
            f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address=127.0.0.1:{ports[0]}",
            # What is sent before it has found its Alertmanager is lost, and sent again only after a minute else.
            "--rules.alert.resend-delay=2s",
            "--log.level=warn",
        ],
        [
            router,
            f"--config.file={folder}/alertmanager.yml",
            f"--storage.path={folder}/silences",
            f"--web.listen-address=127.0.0.1:{ports[1]}",
            "--cluster.listen-address=",
            "--log.level=warn",
        ],
    ]
    processes = []
    try:
        for command in commands:
            log = folder / f"{Path(command[0]).name}.log"
            found.logs.append(log)
            with log.open("wb") as output:
                processes.append(subprocess.Popen(command, stdout=output, stderr=output, cwd=folder))
        until(lambda: all(_ready(port) for port in ports), 30)
        yield found
    finally:
        for process in processes:
            process.kill()
            process.wait()
        receiver.close()


def _ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/-/ready", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _write(folder: Path, targets: Sequence[str], router: int, receiver: str) -> None:
    """The shipped files with other addresses, and nobody waits."""
    rules = _shipped("rules.yml")
    for group in rules["groups"]:
        for rule in group["rules"]:
            if "for" in rule:
                rule["for"] = HURRY
    scraping = _shipped("prometheus.yml")
    scraping["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    scraping["scrape_configs"][0]["static_configs"] = [{"targets": list(targets)}]
    scraping["alerting"]["alertmanagers"][0]["static_configs"] = [{"targets": [f"127.0.0.1:{router}"]}]
    routing = _shipped("alertmanager.yml")
    routing["route"] |= {"group_wait": "0s", "group_interval": "1s"}
    for one in routing["receivers"]:
        for hook in one.get("webhook_configs", []):
            hook["url"] = f"{receiver}/{one['name']}"
    for name, content in (("rules", rules), ("prometheus", scraping), ("alertmanager", routing)):
        (folder / f"{name}.yml").write_text(yaml.safe_dump(content, sort_keys=False))


def _shipped(name: str) -> Any:
    return yaml.safe_load((SHIPPED / name).read_text())
