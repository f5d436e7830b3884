"""What people type first in place of a verb, and what they are told."""

from __future__ import annotations

from collections.abc import Sequence

from scheduler.cli.text import command_line

ALIASES = {
    "trigger": "run-now",
    "run": "run-now",
    "start": "run-now",
    "execute": "run-now",
    "ls": "list",
    "get": "list",
    "jobs": "list",
    "ps": "list",
    "top": "list",
    "log": "logs",
    "tail": "logs",
    "output": "logs",
    "history": "runs",
    "executions": "runs",
    "kill": "cancel",
    "stop": "cancel",
    "abort": "cancel",
    "terminate": "cancel",
    "rerun": "retry",
    "restart": "retry",
    "again": "retry",
    "event": "events",
    "inbox": "events",
    "webhooks": "events",
    "redeliver": "replay",
    "resend": "replay",
    "discard": "dead-letters",
    "dlq": "dead-letters",
    "letters": "dead-letters",
    "unpause": "resume",
    "enable": "resume",
    "continue": "resume",
    "suspend": "pause",
    "disable": "pause",
    "hold": "pause",
    "skip": "pause",
    "info": "describe",
    "why": "describe",
    "inspect": "describe",
    "validate": "check",
    "lint": "check",
    "test": "check",
    "plan": "diff",
    "apply": "reload",
    "deploy": "reload",
    "when": "next",
    "schedule": "next",
    "timers": "next",
    "health": "status",
    "doctor": "status",
    "crontab": "import-crontab",
    "import": "import-crontab",
    "tokens": "token",
    "database": "db",
    "cluster": "nodes",
    "silence": "ack",
    "acknowledge": "ack",
    "channels": "notify",
    "notifications": "notify",
}
"""Words of other programs, and the verb that does it here."""

_ELSEWHERE = {
    "version": "it is `schedctl --version`",
    "watch": "it is an option of `list`, `runs` and `status`: `schedctl list --watch`",
    "sources": "`schedctl show` shows what jobs.yaml says, `schedctl events` what came",
    "secrets": "jobs.yaml says where they are; `schedctl check` says which cannot be read",
    "metrics": "Prometheus reads them over HTTP: /metrics at the address of SCHEDULER_LISTEN",
    "drain": "a daemon that gets TERM (systemctl stop schedulerd) waits for its runs and ends",
    "shutdown": "a daemon that gets TERM (systemctl stop schedulerd) waits for its runs and ends",
}
"""What no verb does, and how it is done. None falls to a verb that only looks like it: `drain` is near to `retry`."""

_IN_THE_FILE = frozenset({"add", "create", "new", "edit", "update", "set", "delete", "remove", "rm", "rename"})


def instead_of(word: str, verbs: Sequence[str]) -> str:
    """What to do instead of `word`, which is neither a verb nor an alias."""
    from difflib import get_close_matches

    if word in _IN_THE_FILE:
        return "jobs live in jobs.yaml: change it there, then `schedctl diff` and `schedctl reload`"
    if word in _ELSEWHERE:
        return _ELSEWHERE[word]
    close = get_close_matches(word, [*verbs, *ALIASES], 1)
    if close:
        return f"did you mean `{ALIASES.get(close[0], close[0])}`?"
    return f"see `schedctl --help`; if it is a job: `{command_line('describe', word[:60])}`"
