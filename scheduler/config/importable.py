"""Whether `package.module:function` would be found, by looking at files: nothing of them is executed."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    ModuleSpec,
    SourceFileLoader,
    SourcelessFileLoader,
)
from pathlib import Path

from scheduler.config.suggest import suggestion

_LOADERS = (
    (ExtensionFileLoader, EXTENSION_SUFFIXES),
    (SourceFileLoader, SOURCE_SUFFIXES),
    (SourcelessFileLoader, BYTECODE_SUFFIXES),
)
_DYNAMIC = frozenset({"globals", "exec", "setattr", "vars"})
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def why_not_importable(function: str, roots: Sequence[str]) -> tuple[str, str] | None:
    """Reason and hint if a worker that searches `roots` before its own packages cannot find the function; None if it
    can, or if that cannot be told without running code."""
    module, _, path = function.partition(":")
    names = module.split(".")
    spec = _find_first(names[0], roots)
    if spec is None:
        return _no_module(names[0], roots)
    for index in range(1, len(names)):
        if spec.submodule_search_locations is None:
            if ".".join(names[: index + 1]) in sys.modules:
                return None  # as os.path, which os itself puts there
            return f"{'.'.join(names[:index])} is a module, not a package", "correct `call:`"
        spec = _find_in(".".join(names[: index + 1]), list(spec.submodule_search_locations))
        if spec is None:
            return _no_module(".".join(names[: index + 1]), roots)
    if spec.loader is None:
        return f"{module} is a folder without code", f"write {module}.MODULE:{path}"
    if not isinstance(spec.loader, SourceFileLoader) or spec.origin is None:
        return None
    return _why_not_defined(path.split(".")[0], spec.origin)


def _no_module(name: str, roots: Sequence[str]) -> tuple[str, str]:
    return f"there is no module {name}", f"looked in {', '.join(roots)} and in the packages installed beside schedulerd"


def _find_first(name: str, roots: Sequence[str]) -> ModuleSpec | None:
    found = _find_in(name, roots)
    if found is not None and found.loader is not None:
        return found
    try:
        return importlib.util.find_spec(name) or found
    except (ImportError, ValueError):
        return found


def _find_in(name: str, folders: Sequence[str]) -> ModuleSpec | None:
    """As the import system looks into folders; several without __init__.py make one package."""
    portions: list[str] = []
    for folder in folders:
        spec = FileFinder(folder, *_LOADERS).find_spec(name)
        if spec is None:
            continue
        if spec.loader is not None:
            return spec
        portions += spec.submodule_search_locations or ()
    if not portions:
        return None
    together = ModuleSpec(name, None, is_package=True)
    together.submodule_search_locations = portions
    return together


def _why_not_defined(name: str, file: str) -> tuple[str, str] | None:
    try:
        tree = ast.parse(Path(file).read_bytes(), file)
    except (SyntaxError, ValueError) as error:
        where = f"{file}:{error.lineno}" if isinstance(error, SyntaxError) and error.lineno else file
        return f"{where}: {getattr(error, 'msg', error)}", "correct the code"
    except (OSError, RecursionError, MemoryError):
        return None
    names: set[str] = set()
    for node in _executed(tree):
        if isinstance(node, ast.ImportFrom) and any(one.name == "*" for one in node.names):
            return None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _DYNAMIC:
            return None
        names.update(_bound_by(node))
    if name in names or "__getattr__" in names:
        return None
    near = suggestion(name, sorted(names))
    return f"{file} does not define `{name}`", f"did you mean `{near}`?" if near is not None else f"define it in {file}"


def _executed(node: ast.AST) -> Iterator[ast.AST]:
    """What runs when the module is imported: not what is inside functions and classes."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, _SCOPES):
            yield from _executed(child)


def _bound_by(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Import | ast.ImportFrom):
        for one in node.names:
            yield one.asname or one.name.partition(".")[0]
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
