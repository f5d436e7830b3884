"""What those without a token are told: names, times, states and counts, never what somebody wrote, printed or sent.

On a machine of several people every one of them reaches the daemon's TCP address. What a job prints and carries is its
owner's business. So everything that is not known to be harmless is left out, also what is added later.
"""

from __future__ import annotations

from typing import Any

from scheduler.core.model import FailReason, SkipReason

# fmt: off
SHOWN = frozenset({
    "about", "ahead", "at", "attempt", "attempts", "beat_at", "blocked_by", "burst", "cause", "checks",
    "clock_offset_s", "concurrency", "consecutive_failures", "count", "created_at", "cursor", "dead_letters",
    "deadline_at", "discarded_at", "duration_exact", "duration_s", "elapsed_s", "enabled", "entries", "exit_code",
    "external", "failures", "fence", "finished_at", "first", "flips", "from", "from_exact", "generation", "habits",
    "has_payload", "held", "holder_dead", "holder_job", "holder_run", "host", "id", "job", "jobs", "kind", "last",
    "last_failure_at", "last_skip", "last_success_at", "lease_s", "leaving_from", "local", "lock", "log_url",
    "longest_s", "lost", "name", "next", "next_run_at", "no_daemon", "node", "nodes", "not_before", "now", "number",
    "ok", "oldest_ready_at", "outcome", "p50_s", "p95_s", "pause", "paused", "paused_source", "paused_sources", "pid",
    "priority", "problem", "problems", "progress", "queue", "queues", "rate", "ready", "reason", "recent",
    "removed_at", "retried_by", "retry_of", "run_id", "running", "runs", "schedule", "scheduled_for", "seen_at",
    "severity", "short_id", "signal", "since", "slots", "source", "started_at", "state", "state_since", "states",
    "status", "status_url", "tags", "team", "time", "timezone", "tokens", "type", "until", "upcoming_pause", "utc",
    "version", "waiting", "waits_for", "was", "zone",
})
# fmt: on
"""Keys whose values may be seen by anybody; all others are null."""

WHOLE = frozenset({"checks", "states"})
"""Keys whose values are maps of words to words and numbers of ours."""

_REASONS = frozenset({*SkipReason, *FailReason})


def facts(content: Any) -> Any:
    """The same shape, with null for what is private."""
    if isinstance(content, dict):
        return {key: _shown(key, value) for key, value in content.items()}
    if isinstance(content, list):
        return [facts(one) for one in content]
    return content


def _shown(key: str, value: Any) -> Any:
    if key in WHOLE:
        return value
    if key == "reason" and value not in _REASONS:
        return None  # What somebody wrote who canceled or paused.
    return facts(value) if key in SHOWN else None
