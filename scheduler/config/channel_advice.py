"""What is unwise about channels."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from scheduler.config.channels import secret_paths
from scheduler.config.load import Loaded
from scheduler.config.problem import Path, Problem
from scheduler.config.secret_advice import about_secret, problem_at
from scheduler.core.channel import ADDRESS, Channel

_PASSWORD = re.compile(r"[a-z0-9]+://[^/?#@]*:[^/?#@]+@", re.IGNORECASE)
_TOKEN = re.compile(r"(?=[^/?&=]*[0-9])(?=[^/?&=]*[A-Za-z])[A-Za-z0-9_~-]{16,}")
_TELLING = "jsons:// xmls:// forms:// mailtos:// ntfys:// json:// xml:// form:// mailto:// ntfy:// http:// https://"
"""Addresses of one's own servers, whose host names may look like tokens."""


def about_channels(loaded: Loaded, environ: Mapping[str, str] | None, *, elsewhere: bool) -> Iterator[Problem]:
    """Their secrets: those that are missing, and those that seem to be written out."""
    for channel in loaded.configuration.channels.values():
        for path, name in secret_paths(loaded.bundle, channel):
            secret, until = channel.secrets[name], "nobody is told by this channel"
            found = about_secret(loaded, path, secret, environ, until, elsewhere=elsewhere)
            if found is not None:
                yield found
        if _holds_token(channel):
            below: Path = ("http", ADDRESS) if channel.kind == "http" else (ADDRESS,)
            reason = "the address seems to hold a token or password, which would be kept in the database with the file"
            yield problem_at(loaded, ("notify", channel.name, *below), reason, "write {env: NAME} or {file: PATH}")


def _holds_token(channel: Channel) -> bool:
    address = channel.options.get(ADDRESS)
    if not isinstance(address, str):
        return False
    own = address.partition("://")[0].casefold() + "://" in _TELLING.split()
    rest = re.sub(r"^[^/]*//[^/?#]*", "", address) if own else address
    return _PASSWORD.match(address) is not None or _TOKEN.search(rest) is not None
