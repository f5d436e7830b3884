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
}
"""Words of other programs, and the verb that does it here."""

_IN_THE_FILE = frozenset({"add", "create", "new", "edit", "update", "set", "delete", "remove", "rm", "rename"})


def instead_of(word: str, verbs: Sequence[str]) -> str:
    """What to do instead of `word`, which is neither a verb nor an alias."""
    from difflib import get_close_matches

    if word in _IN_THE_FILE:
        return "jobs live in jobs.yaml: change it there, then `schedctl diff` and `schedctl reload`"
    if word == "version":
        return "it is `schedctl --version`"
    close = get_close_matches(word, [*verbs, *ALIASES], 1)
    if close:
        return f"did you mean `{ALIASES.get(close[0], close[0])}`?"
    return f"see `schedctl --help`; if it is a job: `{command_line('describe', word[:60])}`"
