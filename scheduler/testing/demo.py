"""Webhooks that get lost, and scans that find their events: `python -m scheduler.testing.demo`, or `make demo`.

A daemon of its own in a temporary folder, a hostile provider, and a balance at the end. What is counted comes from the
provider's own list and from the file that the handlers write; the daemon is not asked.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from scheduler.core.durations import parse_duration
from scheduler.testing.balance import Balance, Handled
from scheduler.testing.faults import Faults
from scheduler.testing.provider import Provider
from scheduler.testing.sender import Sender

PATIENCE = 90.0
"""Seconds after the last event until all must have been handled."""
START = 60.0
"""Seconds that the daemon may need to start."""
HANDLER = """printf '%s\\n' "$(cat "$SCHED_PAYLOAD_FILE")" >> "$1" """


HEAD = f"{'time':>6}{'happened':>11}{'never sent':>13}{'received':>11}{'found by scan':>16}{'handled':>10}"


class DemoFailed(Exception):
    """There is nothing to count: the daemon did not start, or has died."""


@dataclass(frozen=True, slots=True)
class Plan:
    """`length` and `every`, the time from scan to scan, are in seconds; `rate` is events a second."""

    length: float
    every: int
    rate: float
    faults: Faults
    seed: int = 1
    patience: float = PATIENCE


def faults(length: float, drop: float) -> Faults:
    """Of a provider that loses this share of its webhooks, and more besides. What is late is so late that a scan is
    first."""
    return Faults(
        drop=drop,
        duplicate=0.1,
        delay=0.1,
        delay_by=timedelta(seconds=length / 3),
        lag=timedelta(seconds=1),
        throttle=0.05,
        outage=0.03,
        expire=0.02,
        poison=0.01,
        clock=timedelta(seconds=7),
    )


def jobs(provider: str, handled: Path, every: int) -> str:
    """The jobs.yaml: a source, what handles its events, and a scan every so many seconds. JSON is YAML."""
    options = {
        "url": f"{provider}/events",
        "bearer": {"env": "DEMO_KEY"},
        "items": "data",
        "cursor": "next",
        "order": "newest_first",
        "from_param": "from",
        "until_param": "until",
        "reaches_back": "30d",
    }
    signature = {"scheme": "hmac", "header": "X-Signature", "prefix": "sha256="}
    event = {"id": "event_id", "type": "event", "occurred_at": "occurred_at", "subject": "order_no"}
    source = {"signature": signature, "secrets": [{"env": "DEMO_SECRET"}], "event": event}
    compensate = {
        "source": "demo",
        "compensator": "http_list",
        "settle": "2s",
        "margin": "20s",
        "first_window": "1h",
        "with": options,
    }
    scan = {"schedule": f"*/{every} * * * * *", "timezone": "UTC", "retries": ["1s"] * 5, "compensate": compensate}
    handler = {"on_event": "demo", "command": ["/bin/sh", "-c", HANDLER, "handler", str(handled)]}
    return json.dumps({"sources": {"demo": source}, "jobs": {"handle": handler, "scan": scan}}, indent=1)


@contextmanager
def daemon(folder: Path, secrets: dict[str, str]) -> Iterator[str]:
    """A schedulerd that runs what lies in this folder until the end of the block; its address."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("SCHEDULER_")}
    log = folder / "log"
    line = [sys.executable, "-m", "scheduler.daemon", "--config", "jobs.yaml", "--state-dir", "state"]
    line += ["--listen", "127.0.0.1:0", "--log-format", "json"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            line, cwd=folder, env=clean | secrets, stdout=output, stderr=output, stdin=subprocess.DEVNULL
        )
    try:
        yield _address(process, log)
        if process.poll() is not None:
            raise DemoFailed(f"the daemon has ended by itself, with {process.returncode}:\n{_tail(log)}")
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    def started() -> list[str]:
        if process.poll() is not None:
            raise DemoFailed(f"the daemon did not start:\n{_tail(log)}")
        lines = log.read_text("utf-8", "replace").splitlines()
        return [json.loads(line)["http"] for line in lines if '"started"' in line and line.endswith("}")]

    if not _wait(started, START):
        raise DemoFailed(f"the daemon did not start within {START:.0f} s:\n{_tail(log)}")
    return started()[0]


def _wait(condition: Callable[[], object], seconds: float) -> bool:
    """Whether it came true in this time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def _tail(log: Path) -> str:
    return "\n".join(log.read_text("utf-8", "replace").splitlines()[-10:])


def run(plan: Plan, folder: Path, say: Callable[[str], None]) -> Balance:
    """Lets events happen, waits until all were handled or patience is over, and counts. Takes `length` seconds and some
    more. DemoFailed if the daemon does not live through it."""
    file = folder / "handled.jsonl"
    with Provider(plan.faults, seed=plan.seed) as provider:
        (folder / "jobs.yaml").write_text(jobs(provider.url, file, plan.every), "utf-8")
        with daemon(folder, {"DEMO_KEY": provider.key, "DEMO_SECRET": provider.secret}) as address:
            sender = provider.sender(f"{address}/webhooks/demo")

            def count() -> Balance:
                events = [one.id for one in provider.facts.all()]
                return Balance.of(events, dict(sender.sent), set(sender.accepted), Handled.read(file))

            began = time.monotonic()
            say(f"To look in:\n  schedctl events --missed --socket {folder}/state/schedctl.sock\n")
            say(HEAD)
            with _feeding(provider, sender, plan.rate):
                while (left := plan.length - (time.monotonic() - began)) > 0:
                    time.sleep(min(5.0, left))
                    say(_line(time.monotonic() - began, count()))
            _wait(lambda: not count().unaccounted, plan.patience)
            # What would be handled twice would be so by the next scans.
            time.sleep(2 * plan.every)
            say(_line(time.monotonic() - began, count()))
        return count()


@contextmanager
def _feeding(provider: Provider, sender: Sender, rate: float) -> Iterator[None]:
    """Events happen during the block."""
    over = threading.Event()
    options = {"rate": rate, "until": over.is_set}
    thread = threading.Thread(target=provider.feed, args=(sender,), kwargs=options)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _line(seconds: float, now: Balance) -> str:
    at = f"{seconds:.0f}s"
    handled = now.by_webhook + now.by_scan
    return f"{at:>6}{now.happened:>11}{now.never_sent:>13}{now.received:>11}{now.by_scan:>16}{handled:>10}"


def main(arguments: list[str] | None = None) -> int:
    """Runs a daemon and a provider that loses a third of its webhooks, and counts what became of its events. Exit 1 if
    one is unaccounted for or was handled twice, 2 if there was nothing to count."""
    parser = argparse.ArgumentParser(prog="python -m scheduler.testing.demo", description=main.__doc__)
    parser.add_argument("--for", dest="length", type=parse_duration, default=timedelta(minutes=1), help="as 90s (1m)")
    parser.add_argument("--rate", type=float, default=10.0, help="events a second (10)")
    parser.add_argument("--drop", type=float, default=1 / 3, help="share of webhooks that are never sent (a third)")
    parser.add_argument("--every", type=int, default=5, help="seconds from scan to scan (5)")
    parser.add_argument("--seed", type=int, default=1, help="of the misfortune (1)")
    parser.add_argument("--folder", type=Path, help="an empty one, kept afterwards (one of its own, removed)")
    given = parser.parse_args(arguments)
    length = given.length.total_seconds()
    plan = Plan(length, given.every, given.rate, faults(length, given.drop), given.seed)
    with _folder(given.folder) as folder:
        print(f"For {length:.0f} s {given.rate:g} events a second happen at a provider. Of their webhooks it sends")
        print(f"{given.drop:.0%} not at all, some twice, some late. A scan asks for its list every {given.every} s;")
        print("the list is late, its clock is 7 s fast, and some calls fail.")
        try:
            balance = run(plan, folder, lambda line: print(line, flush=True))
        except DemoFailed as failure:
            print(f"✗ {failure}", file=sys.stderr)
            return 2
        except KeyboardInterrupt:
            return 130
        print("\n" + "\n".join(balance.lines()))
        if not balance.good and given.folder is None:
            print("--folder keeps everything, to look into it")
        return 0 if balance.good else 1


@contextmanager
def _folder(given: Path | None) -> Iterator[Path]:
    if given is not None:
        given.mkdir(parents=True, exist_ok=True)
        yield given.absolute()
        return
    with tempfile.TemporaryDirectory(prefix="schedulerd-demo-") as made:
        yield Path(made)


if __name__ == "__main__":
    # Else the daemon would outlive us.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
