"""What every executor is given when it is built."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler.core.children import Children
from scheduler.core.execution import Scanning
from scheduler.core.value_object import value_object
from scheduler.executors.attempts.records import AttemptRecords


@value_object
class Context:
    """`environ` is the daemon's environment (for secrets, never handed on), `slots` the runs at once on this node,
    `workdir` the absolute directory of jobs that name none, and what relative ones are relative to,
    `scanning` what becomes of lists of events (None: nobody asks for them here)."""

    children: Children
    records: AttemptRecords
    environ: Mapping[str, str]
    slots: int
    workdir: str
    scanning: Scanning | None = None
