"""Which compensators there are: found, not listed. A compensator is one file; its name is the word in jobs.yaml.

A file is imported only for those who name it: one that is broken is an error of theirs alone.
"""

from __future__ import annotations

import difflib
import hashlib
import importlib
import importlib.util
import os
import re
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from compensators.common.options import Option, options_of, read
from scheduler.core.compensator import Compensator
from scheduler.core.errors import InvalidInput, refuse_all

_OWN = Path(__file__).parent
_SHAPE = "a dataclass with `kind`, `secret_options`, pages() and coverage()"

_lock = threading.Lock()
_modules: dict[Path, tuple[str, ModuleType]] = {}


def folders_of(setting: str | None) -> tuple[str, ...]:
    """The folders that SCHEDULER_PLUGINS names, separated by `:`."""
    return tuple(one for one in (setting or "").split(os.pathsep) if one)


def files(folders: Sequence[str] = ()) -> Mapping[str, tuple[Path, ...]]:
    """Every kind with the files that claim it, ours first; nothing is imported. Files whose name begins with `_` are
    none, tests that lie there neither; a folder that there is not has none."""
    found: dict[str, tuple[Path, ...]] = {}
    for folder in (_OWN, *map(Path, folders)):
        for path in sorted(folder.glob("*.py")):
            kind = path.stem
            other = kind.startswith(("_", "test_")) or (folder == _OWN and kind == "registry")
            if kind.isidentifier() and not other:
                found[kind] = (*found.get(kind, ()), path.absolute())
    return found


def load(kind: str, folders: Sequence[str] = ()) -> type[Compensator]:
    """The class of this kind. InvalidInput that names the file, the reason and the remedy: there is none, there are
    two, it cannot be imported, or it is no compensator. A file of a plug-in folder that was changed is read anew."""
    there = files(folders)
    if kind not in there:
        close = difflib.get_close_matches(kind, there, 1)
        hint = f"did you mean {close[0]}?" if close else f"there are {' '.join(sorted(there))}"
        if not folders:
            hint += "; SCHEDULER_PLUGINS names folders with further ones"
        raise InvalidInput(f"there is no compensator {kind}", hint=hint)
    path, *others = there[kind]
    if others:
        places = " and ".join(map(str, (path, *others)))
        raise InvalidInput(f"there are several compensators {kind}: {places}", hint="rename one of the files")
    try:
        module = _module(kind, path)
    except (Exception, SystemExit) as error:
        raise InvalidInput(
            f"{_where(path, error)}: the compensator cannot be imported: {type(error).__name__}: {error}",
            hint="correct the file",
        ) from None
    return _class(kind, path, module)


def discover(folders: Sequence[str] = ()) -> Mapping[str, type[Compensator]]:
    """Every compensator that can be loaded, by kind. Those that cannot are left out: `load` says why."""
    found: dict[str, type[Compensator]] = {}
    for kind in files(folders):
        try:
            found[kind] = load(kind, folders)
        except InvalidInput:
            continue
    return found


def options(kind: str, folders: Sequence[str] = ()) -> tuple[Option, ...]:
    """What may be written below `with:`. InvalidInput as for `load`."""
    return options_of(load(kind, folders))


def build(kind: str, written: Mapping[str, Any], event: Mapping[str, str], folders: Sequence[str] = ()) -> Compensator:
    """The compensator with these options, secrets as their values. `event`: the source's event fields by name
    (`id type occurred_at subject`), for options that are not written. InvalidInput as for `load`, and with
    `with.NAME` in front for an option that cannot be; its `others` tell of further ones."""
    found = load(kind, folders)
    given = read(found, written, event)
    wrong = list(given.wrong)
    try:
        made = found(**given.arguments)
    except InvalidInput as error:
        judged = [one for one in (error, *error.others) if re.split(r"[.:]", one.reason)[0] not in given.told]
        wrong.extend(InvalidInput(f"with.{one.reason}", hint=one.hint) for one in judged)
    except Exception as error:
        if not wrong:  # else it may be due to what was put in place of an option
            raise InvalidInput(f"with: {type(error).__name__}: {error}", hint="correct the options") from None
    refuse_all(wrong)
    return made


def _module(kind: str, path: Path) -> ModuleType:
    if path.parent == _OWN:
        return importlib.import_module(f"compensators.{kind}")
    with _lock:
        text = path.read_bytes()
        stamp = hashlib.sha256(text).hexdigest()[:16]
        known = _modules.get(path)
        if known is not None and known[0] == stamp:
            return known[1]
        name = f"schedulerd_plugins.{kind}_{stamp}"
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise ImportError(f"{path} cannot be imported")
        module = importlib.util.module_from_spec(spec)
        # Dataclasses and type hints look their module up there.
        sys.modules[name] = module
        try:
            exec(compile(text, str(path), "exec"), module.__dict__)  # noqa: S102  # not from stale bytecode
        except BaseException:
            del sys.modules[name]
            raise
        if known is not None:
            sys.modules.pop(known[1].__name__, None)
        _modules[path] = (stamp, module)
        return module


def _class(kind: str, path: Path, module: ModuleType) -> type[Compensator]:
    own: list[Any] = [
        one
        for one in vars(module).values()
        if isinstance(one, type) and one.__module__ == module.__name__ and isinstance(getattr(one, "kind", None), str)
    ]
    if not own:
        raise InvalidInput(f"{path} defines no compensator", hint=f"define {_SHAPE}, with kind = {kind!r}")
    found = next((one for one in own if one.kind == kind), None)
    if found is None:
        raise InvalidInput(
            f"{path}: its kind is {own[0].kind!r} and the file is named {kind}.py",
            hint=f"write kind = {kind!r}, or rename the file",
        )
    lacking = [one for one in ("pages", "coverage", "secret_options") if not hasattr(found, one)]
    if lacking or not hasattr(found, "__dataclass_fields__"):
        lack = f"it has no {lacking[0]}" if lacking else "it is no dataclass"
        raise InvalidInput(f"{path}: {found.__name__} is no compensator: {lack}", hint=f"define {_SHAPE}")
    try:
        options_of(found)
    except (InvalidInput, NameError) as error:
        raise InvalidInput(f"{path}: {error}", hint=f"correct the fields of {found.__name__}") from None
    return cast("type[Compensator]", found)


def _where(path: Path, error: BaseException) -> str:
    """The file, and the line of it that is to blame."""
    if isinstance(error, SyntaxError) and error.filename == str(path) and error.lineno:
        return f"{path}:{error.lineno}"
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    return str(path) if line is None else f"{path}:{line}"
