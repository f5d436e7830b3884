"""Whether a secret could be read now. It is looked at, never kept."""

from __future__ import annotations

import os
from collections.abc import Mapping

from scheduler.core.job import Secret


def missing(secret: Secret, environ: Mapping[str, str] | None = None) -> str | None:
    """Why it could not be read here and now; None if it could."""
    if secret.env is not None:
        known = os.environ if environ is None else environ
        return None if secret.env in known else f"the variable `{secret.env}` is not defined"
    path = secret.file or ""
    try:
        with open(path, "rb"):
            return None
    except OSError as error:
        return f"the file {path} cannot be read: {error.strerror or error}"
