"""What a request says: templates filled in (inside the process that sends it)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from jinja2 import StrictUndefined, Template, TemplateError, TemplateSyntaxError
from jinja2.sandbox import SandboxedEnvironment

_ENVIRONMENT = SandboxedEnvironment(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True)
_ENVIRONMENT.policies["json.dumps_kwargs"] = {"sort_keys": False}


# A stranger's text is one part of an address, whatever characters it has.
_ADDRESSES = SandboxedEnvironment(
    undefined=StrictUndefined, autoescape=False, finalize=lambda value: quote(str(value), safe="")
)


class BadTemplate(Exception):
    """The template cannot be filled in; the text says where and why."""


@lru_cache(maxsize=512)
def _compiled(template: str) -> Template:
    return _ENVIRONMENT.from_string(template)


@lru_cache(maxsize=512)
def _compiled_address(template: str) -> Template:
    return _ADDRESSES.from_string(template)


def render(template: str, names: Mapping[str, Any]) -> bytes:
    """The body in UTF-8. Unknown names are errors; the sandbox gives no way out of the given values."""
    return _filled("body", _compiled, template, names).encode("utf-8", "surrogateescape")


def filled_address(template: str, names: Mapping[str, Any]) -> str:
    """The same for an address: each value is percent-encoded, slashes too."""
    return _filled("url", _compiled_address, template, names)


def _filled(what: str, compiled: Callable[[str], Template], template: str, names: Mapping[str, Any]) -> str:
    try:
        return compiled(template).render(names)
    except TemplateSyntaxError as error:
        raise BadTemplate(f"{what}: line {error.lineno}: {error.message}; correct the template") from None
    except (TemplateError, RecursionError) as error:
        raise BadTemplate(f"{what}: {error}; there are {', '.join(sorted(names))}") from None
    except Exception as error:
        raise BadTemplate(f"{what}: {type(error).__name__}: {error}; correct the template") from None


def content_type(body: bytes) -> str:
    try:
        json.loads(body)
    except (ValueError, RecursionError):
        return "text/plain; charset=utf-8"
    return "application/json"
