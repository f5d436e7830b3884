"""What people and machines do to bodies, secrets and addresses between a provider and us."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

from scheduler.signatures.common.recipe import binary

_LARGEST = 4 * 1024 * 1024
"""Bytes of a body that is written anew in other forms; larger ones are only tried with other line ends."""
_PREFIXES = ("whsec_", "whpk_", "sha256=", "Bearer ")


def bodies(body: bytes) -> Iterator[tuple[str, bytes]]:
    """Other forms of the body, each with words that follow "signed it"; only those that differ from it."""
    seen = {body}
    for what, make in _BYTES:
        made = make(body)
        if made not in seen:
            seen.add(made)
            yield what, made
    for what, made in _rewritten(body):
        if made not in seen:
            seen.add(made)
            yield what, made


_BYTES: tuple[tuple[str, Callable[[bytes], bytes]], ...] = (
    ("with a newline at its end", lambda body: body + b"\n"),
    ("with CR LF at its end", lambda body: body + b"\r\n"),
    ("without the newline at its end", lambda body: body.removesuffix(b"\n").removesuffix(b"\r")),
    ("without the blanks around it", lambda body: body.strip()),
    ("with CR LF as line ends", lambda body: body.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")),
    ("with LF as line ends", lambda body: body.replace(b"\r\n", b"\n")),
    ("without the byte order mark before it", lambda body: body.removeprefix(b"\xef\xbb\xbf")),
)


def _rewritten(body: bytes) -> Iterator[tuple[str, bytes]]:
    if len(body) > _LARGEST:
        return
    try:
        document = json.loads(body)
        for what, options in _FORMS:
            for letters, ascii_only in (("", False), (", other letters than ASCII escaped", True)):
                text = json.dumps(document, ensure_ascii=ascii_only, **options)
                yield f"as {what} JSON{letters}", text.encode("utf-8", "surrogatepass")
                # As GitHub writes them.
                upper = _ESCAPE.sub(lambda one: f"\\u{one[1].upper()}", text)
                yield f"as {what} JSON{letters}, escapes in capitals", upper.encode("utf-8", "surrogatepass")
    except (ValueError, RecursionError):
        return


_ESCAPE = re.compile(r"(?<!\\)\\u([0-9a-f]{4})")
_COMPACT = (",", ":")
_FORMS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("compact", {"separators": _COMPACT}),
    ("spaced", {}),
    ("compact, sorted", {"separators": _COMPACT, "sort_keys": True}),
    ("spaced, sorted", {"sort_keys": True}),
    ("indented (2)", {"indent": 2}),
    ("indented (4)", {"indent": 4}),
)


def keys(secret: str) -> Iterator[tuple[str, bytes]]:
    """Keys that a secret may stand for, each with words that follow the secret's name."""
    bare = secret.strip()
    texts = [("as it is written", secret), ("without the blanks around it", bare)]
    if len(bare) > 1 and bare[0] == bare[-1] and bare[0] in "'\"":
        texts.append(("without the quotes around it", bare[1:-1]))
    texts += [(f"without {one.strip()} before it", bare.removeprefix(one)) for one in _PREFIXES if bare.startswith(one)]
    for what, text in list(dict.fromkeys(texts)):
        if text:
            yield what, text.encode("utf-8", "replace")
        for encoding in ("base64", "hex"):
            key = binary(text, encoding)
            if key is not None:
                yield f"{what}, read as {encoding}", key


def addresses(url: str) -> Iterator[str]:
    """Addresses that are easily taken for this one."""
    head, mark, query = url.partition("?")
    slashed = head.removesuffix("/") if head.endswith("/") else f"{head}/"
    other = {"http": "https", "https": "http"}.get(urlsplit(head).scheme if "://" in head else "", "")
    yield slashed + mark + query
    if other:
        for one in (head, slashed):
            yield f"{other}://{one.partition('://')[2]}{mark}{query}"
    if mark:
        yield head
