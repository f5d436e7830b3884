"""What is allowed but commonly regretted: one warning each, at its place in the file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from itertools import islice, pairwise
from typing import Any

from scheduler.config.load import Loaded
from scheduler.config.problem import Path, Problem, in_order
from scheduler.config.secrets import missing
from scheduler.config.written import duration_text
from scheduler.core.explain import warnings as surprises
from scheduler.core.job import Job, Leftovers, Secret
from scheduler.core.lifecycle import wait_before

_DETACHING = re.compile(r"(?:^|[;&|\s(])(nohup|setsid|disown|daemonize)(?=$|[;&|\s)])")
_BACKGROUND = re.compile(r"(?<![&>|<])&\s*$")
_VARIABLE = re.compile(r"\$(?:[A-Za-z_]\w*|\{[A-Za-z_]\w*\})")
_OPERATORS = frozenset({"|", "||", "&&", ";", ">", ">>", "<", "2>&1", "2>", "&"})
_GAPS_SEEN = 50

Warning = tuple[Path, str, str]  # noqa: A001
"""Path below the job, reason, hint."""


def advise(loaded: Loaded, now: datetime, environ: Mapping[str, str] | None = None) -> list[Problem]:
    """All warnings, by place. Changes of the clock are those of the year after `now`; secrets are looked for here."""
    found: list[Problem] = []
    bundle = loaded.bundle
    for job in loaded.configuration.jobs.values():
        for path, reason, hint in _about(loaded, job, now, environ):
            key = str(path[0]) if path else ""
            origin = bundle.origin(job.name, key) or ("jobs", job.name)
            whole = (*origin, *path[1:]) if path else origin
            file, (line, column) = bundle.place(whole) or (bundle.source.shown(bundle.source.main), (0, 0))
            found.append(Problem(file, line, column, whole, reason, hint, job.name))
    return list(in_order(found))


def _about(loaded: Loaded, job: Job, now: datetime, environ: Mapping[str, str] | None) -> Iterator[Warning]:
    for path, secret in loaded.secrets.get(job.name, {}).items():
        yield from _about_secret(path, secret, environ)
    if job.schedule is not None:
        for sentence in surprises(job.schedule, now):
            yield ("schedule",), sentence, "look at it with: schedctl next " + job.name
    if job.action.kind == "command":
        yield from _about_command(job)
        yield from _about_comment(loaded, job)
    for name, text in job.child.env.items():
        if _VARIABLE.search(text):
            yield ("env", name), f"`{text[:60]}` is taken as it is: nothing is replaced in `env`", "write the value out"
    yield from _about_grace(loaded, job, now)


def _about_secret(path: Path, secret: Secret, environ: Mapping[str, str] | None) -> Iterator[Warning]:
    why = missing(secret, environ)
    if why is not None:
        hint = "provide it where the daemon runs; the job fails until then"
        yield path, f"the secret cannot be read: {why}", hint
    elif secret.file is not None and not secret.file.startswith("/"):
        reason = f"`{secret.file}` is relative to the folder in which the daemon was started"
        yield path, reason, "write the whole path"


def _about_command(job: Job) -> Iterator[Warning]:
    command = job.action.options["command"]
    text = command if isinstance(command, str) else " ".join(command)
    if job.leftovers is Leftovers.END:
        found = _DETACHING.search(text)
        keep = "drop it; to keep such processes: overlap: allow and leftovers: keep"
        if found is not None:
            yield ("command",), f"`{found[1]}` does not help: what a run leaves behind is ended with it", keep
        elif isinstance(command, str) and _BACKGROUND.search(command):
            yield ("command",), "a trailing `&`: what a run leaves behind is ended with it", keep
    if isinstance(command, list) and not re.search(r"(?:^|/)(?:ba|da|z|k)?sh$|(?:^|/)env$", command[0]):
        for index, word in enumerate(command):
            found = _VARIABLE.search(word)
            if found is not None:
                reason = f"a list is executed as it is: `{found[0]}` is not replaced"
                yield ("command", index), reason, "write the command as one text to have a shell"
            elif word in _OPERATORS:
                reason = f"a list is executed as it is: `{word}` is an argument like any other"
                yield ("command", index), reason, "write the command as one text to have a shell"


def _about_comment(loaded: Loaded, job: Job) -> Iterator[Warning]:
    """`command: echo a #b` runs `echo a`."""
    if loaded.bundle.trees[("jobs", job.name)].places.comment_behind(("jobs", job.name, "command")):
        reason = "everything behind ` #` is a comment and not part of the command"
        yield ("command",), reason, "put the command in quotes if it belongs to it"


def _about_grace(loaded: Loaded, job: Job, now: datetime) -> Iterator[Warning]:
    own: Any = loaded.bundle.sections["jobs"][job.name]
    if job.schedule is None or not job.watch.heartbeat:
        return
    if own.get("grace") is not None:
        instants = islice(job.schedule.between(now, now + timedelta(days=400)), _GAPS_SEEN)
        gap = min((later - earlier for earlier, later in pairwise(instants)), default=None)
        if gap is not None and job.watch.grace > gap:
            reason = (
                f"grace {duration_text(job.watch.grace)} is longer than the {duration_text(gap)} between occurrences"
            )
            yield (
                ("grace",),
                reason,
                "a miss is told only after the next one was due; write a shorter grace if it matters",
            )
    if own.get("timeout") is not None:
        longest = job.timeout * (job.retries.limit + 1)
        for failure in range(1, job.retries.limit + 1):
            longest += wait_before(job.retries, failure) or timedelta()
        if job.watch.grace < longest:
            reason = (
                f"a run may take {duration_text(longest)} with its retries, but is reported as missed after "
                f"{duration_text(job.watch.grace)} (grace)"
            )
            yield ("timeout",), reason, "raise `grace` if such a run is still in time"
