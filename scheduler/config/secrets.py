"""Whether a secret could be read now. It is looked at, never kept."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping

from scheduler.core.secret import Secret


def missing(secret: Secret, environ: Mapping[str, str] | None = None) -> str | None:
    """Why it could not be read here and now; None if it could."""
    if secret.env is not None:
        known = os.environ if environ is None else environ
        return None if secret.env in known else f"the variable `{secret.env}` is not defined"
    path = secret.file or ""
    try:
        # A pipe without a writer would be waited for.
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError) as error:
        return f"the file {path} cannot be read: {getattr(error, 'strerror', None) or error}"
    folder = stat.S_ISDIR(os.fstat(file).st_mode)
    os.close(file)
    return f"{path} is a folder" if folder else None
