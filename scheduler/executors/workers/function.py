"""Finding and calling the function that a job names (inside a call worker)."""

from __future__ import annotations

import difflib
import importlib
import inspect
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import ModuleType
from typing import Any

from scheduler.executors.attempts.values import RESULT_LIMIT, parse, to_json

_OURS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_SETTLED = tuple(
    {os.path.join(path, "") for path in (*sysconfig.get_paths().values(), _OURS) if path and path != sys.prefix}
)

Stamp = tuple[int, int]


class NotCallable(Exception):
    """There is no such function, or it cannot be called like this; the text says what to do."""


def find(name: str) -> Callable[..., Any]:
    """The function behind `package.module:function` or `…:Class.method`."""
    module_name, _, path = name.partition(":")
    if module_name not in sys.modules:
        importlib.invalidate_caches()
    try:
        target: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and (module_name + ".").startswith(error.name + "."):
            raise NotCallable(
                f"call: there is no module {error.name}; looked in the work directory {os.getcwd()} and in the "
                "packages installed beside schedulerd; correct `call:` or set `workdir:`"
            ) from None
        raise
    for part in path.split("."):
        if not hasattr(target, part):
            names = [one for one in dir(target) if not one.startswith("_")]
            close = difflib.get_close_matches(part, names, 1)
            hint = f"did you mean {close[0]}?" if close else f"define it in {_file(module_name)}"
            raise NotCallable(f"call: {module_name} has no {path}; {hint}")
        target = getattr(target, part)
    if not callable(target):
        raise NotCallable(f"call: {name} is no function: its type is {type(target).__name__}")
    found: Callable[..., Any] = target
    return found


def call(function: Callable[..., Any], payload: object, has_payload: bool, arguments: Mapping[str, Any]) -> object:
    """Its result as a JSON value. The payload is its first argument; a run without payload leaves it out unless the
    function requires it. NotCallable for wrong arguments and for results that are no JSON."""
    given = _given(function, payload, has_payload, arguments)
    result = function(*given, **arguments)
    if inspect.iscoroutine(result):
        import asyncio  # Half of what starting a worker would cost, and few functions need it.

        result = asyncio.run(result)
    try:
        data = to_json(result)
    except (TypeError, ValueError) as error:
        raise NotCallable(
            f"call: the result cannot be kept: {error}; return None or plain dicts, lists, texts and numbers"
        ) from None
    if len(data) > RESULT_LIMIT:
        raise NotCallable(
            f"call: the result takes {len(data):,} bytes, at most {RESULT_LIMIT:,} are kept; store it elsewhere"
        )
    return parse(data)


def _given(
    function: Callable[..., Any], payload: object, has_payload: bool, arguments: Mapping[str, Any]
) -> tuple[object, ...]:
    try:
        signature = _signature(function)
    except (TypeError, ValueError):
        return (payload,) if has_payload else ()
    choices: tuple[tuple[object, ...], ...] = ((payload,),) if has_payload else ((), (payload,))
    problem: TypeError | None = None
    for choice in choices:
        try:
            signature.bind(*choice, **arguments)
            return choice
        except TypeError as error:
            problem = problem or error
    what = "the payload and `with:`" if has_payload else "`with:`"
    raise NotCallable(f"call: {getattr(function, '__name__', 'it')}{signature} cannot be called with {what}: {problem}")


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    """To find it out takes longer than to call most functions."""
    try:
        hash(function)
    except TypeError:
        return inspect.signature(function)
    return _known_signature(function)


_known_signature = lru_cache(maxsize=64)(inspect.signature)


def own_traceback(error: BaseException) -> str:
    """The traceback without the frames of this package at its top."""
    rest = error.__traceback__
    while rest is not None and rest.tb_frame.f_code.co_filename.startswith(os.path.dirname(__file__)):
        rest = rest.tb_next
    return "".join(traceback.format_exception(type(error), error, rest or error.__traceback__))


class SourceStamps:
    """Change stamps of the files behind imported modules that belong to jobs, not to installed packages."""

    def __init__(self) -> None:
        self._stamps: dict[str, Stamp] = {}
        self._seen: set[str] = set()
        self.extend()

    def extend(self) -> None:
        """Takes in what was imported since the last time."""
        fresh = sys.modules.keys() - self._seen
        self._seen |= fresh
        for name in fresh:
            module = sys.modules.get(name)
            path = getattr(module, "__file__", None) if isinstance(module, ModuleType) else None
            if isinstance(path, str) and path not in self._stamps and not path.startswith(_SETTLED):
                self._stamps[path] = _stamp_of(path)

    def stale(self) -> bool:
        """Whether one of the files has changed since it was imported."""
        return any(_stamp_of(path) != stamp for path, stamp in self._stamps.items())


def _stamp_of(path: str) -> Stamp:
    try:
        found = os.stat(path)
    except OSError:
        return (0, 0)
    return (found.st_mtime_ns, found.st_size)


def _file(module_name: str) -> str:
    return getattr(sys.modules.get(module_name), "__file__", None) or module_name
