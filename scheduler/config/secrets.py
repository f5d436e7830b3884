"""Secrets at the places that the file names: read when they are needed, and looked for before."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping

from scheduler.core.errors import InvalidInput
from scheduler.core.secret import Secret

_LARGEST = 64 * 1024


def read_secret(name: str, secret: Secret, environ: Mapping[str, str]) -> str:
    """Its value, one trailing newline of a file removed, `prefix` in front. InvalidInput names what is missing,
    never a value."""
    if secret.env is not None:
        value = environ.get(secret.env)
        if value is None:
            raise InvalidInput(
                f"secret {name}: the daemon's environment has no variable {secret.env}",
                hint=f"set {secret.env} where schedulerd is started and restart it, or use file: PATH",
            )
    else:
        assert secret.file is not None
        value = _read_file(name, secret.file)
    if "\0" in value:
        raise InvalidInput(f"secret {name}: its value contains a NUL byte", hint="store it as text")
    return secret.prefix + value


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


def _read_file(name: str, path: str) -> str:
    try:
        # A FIFO without a writer would otherwise hold up the loop that starts runs.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        if error.errno == errno.ENOENT:
            hint = "create it, or correct `file:`"
        else:
            hint = "the daemon's user must be able to read it"
        raise InvalidInput(f"secret {name}: cannot read {path}: {os.strerror(error.errno or 0)}", hint=hint) from None
    if data is None or len(data) > _LARGEST:
        raise InvalidInput(f"secret {name}: {path} is no text of at most 64 KiB", hint="check `file:`")
    text = data.decode("utf-8", "surrogateescape")
    return text.removesuffix("\n").removesuffix("\r")
