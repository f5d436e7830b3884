"""The body of a request: a template filled in, or the payload (inside an http worker)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from jinja2 import StrictUndefined, Template, TemplateError, TemplateSyntaxError
from jinja2.sandbox import SandboxedEnvironment

_ENVIRONMENT = SandboxedEnvironment(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True)
_ENVIRONMENT.policies["json.dumps_kwargs"] = {"sort_keys": False}


class BadTemplate(Exception):
    """The template cannot be filled in; the text says where and why."""


@lru_cache(maxsize=512)
def _compiled(template: str) -> Template:
    return _ENVIRONMENT.from_string(template)


def render(template: str, names: Mapping[str, Any]) -> bytes:
    """The body in UTF-8. Unknown names are errors; the sandbox gives no way out of the given values."""
    try:
        return _compiled(template).render(names).encode("utf-8", "surrogateescape")
    except TemplateSyntaxError as error:
        raise BadTemplate(f"body: line {error.lineno}: {error.message}; correct the template") from None
    except (TemplateError, RecursionError) as error:
        raise BadTemplate(f"body: {error}; there are {', '.join(sorted(names))}") from None
    except Exception as error:
        raise BadTemplate(f"body: {type(error).__name__}: {error}; correct the template") from None


def content_type(body: bytes) -> str:
    try:
        json.loads(body)
    except (ValueError, RecursionError):
        return "text/plain; charset=utf-8"
    return "application/json"
