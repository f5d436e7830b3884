"""Unknown keys: what was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Collection

# What other schedulers call it → what it is called here.
_ELSEWHERE = {
    "cron": "schedule",
    "crontab": "schedule",
    "schedules": "schedule",
    "every": "schedule",
    "interval": "schedule",
    "at": "schedule",
    "when": "schedule",
    "tz": "timezone",
    "zone": "timezone",
    "timezone": "timezone",
    "concurrencypolicy": "overlap",
    "concurrency": "overlap",
    "allowoverlap": "overlap",
    "cmd": "command",
    "run": "command",
    "exec": "command",
    "script": "command",
    "shell": "command",
    "args": "command",
    "retry": "retries",
    "maxretries": "retries",
    "attempts": "retries",
    "backofflimit": "retries",
    "suspend": "enabled",
    "suspended": "enabled",
    "paused": "enabled",
    "disabled": "enabled",
    "dependson": "after",
    "needs": "after",
    "startingdeadlineseconds": "catch_up_window",
    "misfire": "catch_up",
    "catchup": "catch_up",
    "cwd": "workdir",
    "workingdirectory": "workdir",
    "directory": "workdir",
    "dir": "workdir",
    "environment": "env",
    "envvars": "env",
    "activedeadlineseconds": "timeout",
    "timelimit": "timeout",
    "desc": "description",
    "comment": "description",
    "mutex": "lock",
    "owner": "team",
    "labels": "tags",
    "input": "stdin",
    "runas": "user",
    "url": "http",
    "webhook": "http",
    "function": "call",
    "python": "call",
    "retention": "keep",
    "history": "keep",
    "notifications": "notify",
    "alert": "notify",
    "alerts": "notify",
    "onfailure": "notify",
    "emailonfailure": "notify",
    "channels": "notify",
}


def suggestion(word: str, known: Collection[str]) -> str | None:
    """The known word that was probably meant, or None."""
    plain = word.casefold().replace("-", "").replace("_", "").replace(" ", "")
    for one in known:
        if one.replace("_", "") == plain:
            return one
    meant = _ELSEWHERE.get(plain)
    if meant in known:
        return meant
    near = difflib.get_close_matches(word.casefold()[:60], known, n=1, cutoff=0.6)
    return near[0] if near else None


def did_you_mean(word: str, known: Collection[str]) -> str:
    """The remedy for an unknown word: the one that was meant, or all there are."""
    meant = suggestion(word, known)
    if meant is not None:
        return f"did you mean `{meant}`?"
    return f"known are {', '.join(sorted(known))}" if known else "remove it"
