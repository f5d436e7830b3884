"""Reading secrets at the moment a run starts."""

from __future__ import annotations

import errno
import os
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


def read_secrets(secrets: Mapping[str, Secret], environ: Mapping[str, str]) -> dict[str, str]:
    """All of them by name; the first that cannot be read raises InvalidInput."""
    return {name: read_secret(name, secret, environ) for name, secret in secrets.items()}


def to_hide(secrets: Mapping[str, Secret], values: Mapping[str, str]) -> list[str]:
    """What must not be shown of secrets that have these values: each as it is used, and without its prefix."""
    found = [values[name] for name in secrets]
    found += [values[name].removeprefix(secret.prefix) for name, secret in secrets.items() if secret.prefix]
    return found


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
