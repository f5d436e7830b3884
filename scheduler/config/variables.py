"""`${NAME}` where it is not replaced, and secrets where they would be kept: both are easily written by habit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from scheduler.config.actions.registry import discover
from scheduler.config.codes import Remark
from scheduler.config.interpolation import REFERENCE, REPLACED
from scheduler.config.load import Loaded
from scheduler.config.problem import Path
from scheduler.core.job import Job

_ANY_VARIABLE = re.compile(r"\$(?:[A-Za-z_]\w*|\{[A-Za-z_]\w*\})")
_SECRET_NAME = re.compile(r"TOKEN|SECRET|PASSW(?:OR)?D|PASSPHRASE|CREDENTIAL|KEY(?![A-Z])")
_SECRET_VARIABLE = re.compile(
    r"(?:TOKEN|SECRET|PASSW(?:OR)?D|PASSPHRASE|(?:API|ACCESS|SECRET|PRIVATE|AUTH)_?KEY)$", re.IGNORECASE
)
_SECRET_HEADER = re.compile(r"(?:proxy-)?authorization|cookie", re.IGNORECASE)
_WITH = ("compensate", "with")
_KEPT = "is kept in the database and shown by the API"
_HEADER = "headers: {Authorization: {env: NAME, prefix: 'Bearer '}} is read when the run starts and never kept"


def about_variables(loaded: Loaded, job: Job) -> Iterator[Remark]:
    for name, text in job.child.env.items():
        if _ANY_VARIABLE.search(text):
            reason = f"`{text[:60]}` is taken as it is: nothing is replaced in `env`"
            hint = f"write the value out, or let the daemon's environment give it: secrets: {{{name}: {{env: NAME}}}}"
            yield Remark(("env", name), "not-replaced", reason, hint)
        elif text and not text.startswith("/") and _SECRET_VARIABLE.search(name):
            hint = f"write secrets: {{{name}: {{env: NAME}}}} or {{file: PATH}}: read when the run starts, never kept"
            yield Remark(("env", name), "secret-in-text", f"`{name}` {_KEPT}, if it is a secret", hint)
    kind = job.action.kind
    options = discover().get(kind)
    replaced = {("workdir",), ("heartbeat", "ping_url")} | {
        (kind, *path) for path in (() if options is None else options.replaced)
    }
    for path, text in _texts(_written(loaded, job)):
        # The shell's own variables are its business, and env was looked at above.
        if path[0] in ("command", "env"):
            continue
        if any(path[: len(one)] == one for one in replaced):
            yield from _about_filled(path, text)
            if path[:2] == _WITH and "${" not in text and (part := _kept_part(path, text)) is not None:
                hint = "write {env: NAME} or {file: PATH} instead: read when the scan starts, never kept"
                yield Remark(path, "secret-in-text", f"{part} {_KEPT}", hint)
        elif found := REFERENCE.search(text):
            hint = "write the value out; a secret is {env: NAME} where one may stand"
            yield Remark(path, "not-replaced", f"`{found[0]}` is taken as it is: {REPLACED}", hint)
        elif path[:2] == ("http", "headers") and text and _is_secret_header(str(path[-1])):
            hint = "write {env: NAME} or {file: PATH} instead: read when the run starts, never kept"
            yield Remark(path, "secret-in-text", f"the header `{path[-1]}` {_KEPT}", hint)


def _written(loaded: Loaded, job: Job) -> dict[str, Any]:
    sections = loaded.bundle.sections
    return {**sections["defaults"], **sections["jobs"][job.name]}


def _texts(value: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Every text inside a value, with its path; not those that name a secret."""
    if isinstance(value, str):
        if "$" in value or "://" in value or path[:2] in (("http", "headers"), _WITH):
            yield path, value
    elif isinstance(value, dict):
        if len(path) > 1 and ("env" in value or "file" in value):
            return
        for key, one in value.items():
            yield from _texts(one, (*path, key))
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield from _texts(one, (*path, index))


def _about_filled(path: Path, text: str) -> Iterator[Remark]:
    """One warning per text is enough: the first reason that is found."""
    url = path[-1] == "url"
    hint = _HEADER if url else "give it in `secrets`, which is read when the run starts and never kept"
    for name in REFERENCE.findall(text):
        if looks_secret(name):
            yield Remark(path, "secret-in-text", f"the value of `${{{name}}}` {_KEPT}", hint)
            return
    if url:
        part = _secret_part(text)
        if part is not None:
            yield Remark(path, "secret-in-text", f"{part} {_KEPT}", hint)


def _kept_part(path: Path, text: str) -> str | None:
    """What of an option of a compensator is a secret, in words."""
    if path[-1] != "url" and "://" in text:
        return _secret_part(text)
    return f"`{path[-1]}`" if text and _is_secret_header(str(path[-1])) else None


def _secret_part(url: str) -> str | None:
    """What of a URL is a secret, in words."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    user, at, _ = parts.netloc.rpartition("@")
    if at and (":" in user or "${" in user):
        return "the password before the @"
    for pair in parts.query.split("&"):
        name, _, value = pair.partition("=")
        if value and looks_secret(name):
            return f"the parameter `{name}`"
    return None


def looks_secret(name: str) -> bool:
    """Whether a variable or parameter of this name usually holds a secret."""
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper()
    return _SECRET_NAME.search(plain) is not None


def _is_secret_header(name: str) -> bool:
    return _SECRET_HEADER.fullmatch(name) is not None or looks_secret(name)
