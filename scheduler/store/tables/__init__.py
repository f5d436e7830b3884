"""The schema as the code uses it, one family of tables a file; `migrations` makes it, a test compares the two on both
databases. A table that is not named here does not exist for a transfer, nor for that test."""

from scheduler.store.tables.attempt import attempts, outputs
from scheduler.store.tables.base import indexes_of, metadata
from scheduler.store.tables.configuration import generations, installation, queues
from scheduler.store.tables.event import (
    CAME_BY_WEBHOOK,
    IS_FREE,
    IS_HELD,
    IS_MISSED,
    IS_UNDATED,
    RANKED_AT,
    event_bodies,
    events,
    forgotten,
    listings,
    rejects,
)
from scheduler.store.tables.history import skips, summaries
from scheduler.store.tables.job import IS_PRESENT, NOT_MISSED, acks, flips, jobs, pauses, schedule_versions
from scheduler.store.tables.node import nodes
from scheduler.store.tables.notification import IS_WAITING, channels, notifications
from scheduler.store.tables.ping import outgoing_pings
from scheduler.store.tables.run import (
    DEAD_LETTER,
    FAILED,
    IN_LINE,
    IS_ORDERED,
    IS_PENDING,
    IS_RUNNING,
    PENDING,
    PENDING_OCCURRENCE,
    PENDING_OTHER,
    READY,
    RUNNING,
    WAITS_LOCK,
    WAITS_PAUSE,
    WAITS_TIME,
    locks,
    payloads,
    runs,
)
from scheduler.store.tables.scan import scan_asides, scan_holes, scan_reports, scan_states
from scheduler.store.tables.token import tokens

__all__ = [
    "CAME_BY_WEBHOOK",
    "DEAD_LETTER",
    "FAILED",
    "IN_LINE",
    "IS_FREE",
    "IS_HELD",
    "IS_MISSED",
    "IS_ORDERED",
    "IS_PENDING",
    "IS_PRESENT",
    "IS_RUNNING",
    "IS_UNDATED",
    "IS_WAITING",
    "NOT_MISSED",
    "PENDING",
    "PENDING_OCCURRENCE",
    "PENDING_OTHER",
    "RANKED_AT",
    "READY",
    "RUNNING",
    "WAITS_LOCK",
    "WAITS_PAUSE",
    "WAITS_TIME",
    "acks",
    "attempts",
    "channels",
    "event_bodies",
    "events",
    "flips",
    "forgotten",
    "generations",
    "indexes_of",
    "installation",
    "jobs",
    "listings",
    "locks",
    "metadata",
    "nodes",
    "notifications",
    "outgoing_pings",
    "outputs",
    "pauses",
    "payloads",
    "queues",
    "rejects",
    "runs",
    "scan_asides",
    "scan_holes",
    "scan_reports",
    "scan_states",
    "schedule_versions",
    "skips",
    "summaries",
    "tokens",
]
