"""Secrets that cannot be read, of whatever is no job."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler.config.load import Loaded
from scheduler.config.problem import Path, Problem
from scheduler.config.secrets import missing
from scheduler.core.secret import Secret


def about_secret(
    loaded: Loaded, path: Path, secret: Secret, environ: Mapping[str, str] | None, until: str, *, elsewhere: bool
) -> Problem | None:
    """What is unwise about the secret that is named at `path`; None if nothing is. `until`: what is so until it can be
    read."""
    if secret.file is not None and not secret.file.startswith("/"):
        reason = f"`{secret.file}` is relative to the folder in which the daemon was started"
        return problem_at(loaded, path, reason, "write the whole path")
    why = None if elsewhere else missing(secret, environ)
    if why is None:
        return None
    hint = f"provide it where the daemon runs; until then {until}"
    return problem_at(loaded, path, f"the secret cannot be read on this machine: {why}", hint)


def problem_at(loaded: Loaded, path: Path, reason: str, hint: str) -> Problem:
    bundle = loaded.bundle
    file, (line, column) = bundle.place(path) or (bundle.source.shown(bundle.source.main), (0, 0))
    return Problem(file, line, column, path, reason, hint)
