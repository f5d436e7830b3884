"""The schema as the code uses it, one family of tables a file; `migrations` makes it, a test compares the two on both
databases. A table that is not named here does not exist for a transfer, nor for that test."""

from scheduler.store.tables.attempt import attempts, outputs
from scheduler.store.tables.base import metadata
from scheduler.store.tables.configuration import generations, installation, queues
from scheduler.store.tables.history import skips, summaries
from scheduler.store.tables.job import acks, jobs, pauses, schedule_versions
from scheduler.store.tables.node import nodes
from scheduler.store.tables.run import (
    DEAD_LETTER,
    FAILED,
    IN_LINE,
    IS_PENDING,
    IS_RUNNING,
    PENDING,
    PENDING_OCCURRENCE,
    PENDING_OTHER,
    READY,
    WAITS_LOCK,
    WAITS_PAUSE,
    WAITS_TIME,
    locks,
    payloads,
    runs,
)
from scheduler.store.tables.token import tokens

__all__ = [
    "DEAD_LETTER",
    "FAILED",
    "IN_LINE",
    "IS_PENDING",
    "IS_RUNNING",
    "PENDING",
    "PENDING_OCCURRENCE",
    "PENDING_OTHER",
    "READY",
    "WAITS_LOCK",
    "WAITS_PAUSE",
    "WAITS_TIME",
    "acks",
    "attempts",
    "generations",
    "installation",
    "jobs",
    "locks",
    "metadata",
    "nodes",
    "outputs",
    "pauses",
    "payloads",
    "queues",
    "runs",
    "schedule_versions",
    "skips",
    "summaries",
    "tokens",
]
