"""jobs.yaml as people write it: a block per job."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator


def job(name: str, **keys: object) -> str:
    """One job; values are written as JSON, which YAML reads."""
    return "\n".join([f"  {name}:", *(f"    {key}: {json.dumps(value)}" for key, value in keys.items())])


def jobs_file(jobs: Iterable[str], queues: str = "", sources: str = "") -> str:
    """`queues` and `sources` in flow style, if there are any of its own."""
    blocks = list(jobs)
    head = ["defaults: {timezone: UTC}", *([f"queues: {queues}"] if queues else [])]
    head += [*([f"sources: {sources}"] if sources else []), "jobs:" if blocks else "jobs: {}"]
    return "\n".join([*head, *blocks]) + "\n"


def at(instant: float) -> str:
    """Six fields that name this second, once a year."""
    due = time.gmtime(instant)
    return f"{due.tm_sec} {due.tm_min} {due.tm_hour} {due.tm_mday} {due.tm_mon} *"


def far(number: int) -> str:
    """A minute of an hour that is at least one hour away."""
    return f"{number % 60} {(time.gmtime().tm_hour + 2) % 24} * * *"


def far_jobs(count: int) -> Iterator[str]:
    """`job-00000` and so on, which have nothing to do for an hour."""
    return (job(f"job-{number:05}", schedule=far(number), command=["/bin/true"]) for number in range(count))


EVERY_SECOND = "* * * * * *"
