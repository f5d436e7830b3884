"""The secrets of a run: read at the moment it starts, and hidden from what is kept of it."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler.config.secrets import read_secret
from scheduler.core.secret import Secret


def read_secrets(secrets: Mapping[str, Secret], environ: Mapping[str, str]) -> dict[str, str]:
    """All of them by name; the first that cannot be read raises InvalidInput."""
    return {name: read_secret(name, secret, environ) for name, secret in secrets.items()}


def to_hide(secrets: Mapping[str, Secret], values: Mapping[str, str]) -> list[str]:
    """What must not be shown of secrets that have these values: each as it is used, and without its prefix."""
    found = [values[name] for name in secrets]
    found += [values[name].removeprefix(secret.prefix) for name, secret in secrets.items() if secret.prefix]
    return found
