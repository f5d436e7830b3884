"""One clear sentence for a start that failed.

An errno alone misleads (a missing interpreter is "no such file" about a file that is there), so the files
are looked at again. That can wait for a disk: call it from a worker thread, not from where events arrive.
"""

from __future__ import annotations

import errno
import os
import stat

from scheduler.core.children import ChildSpec
from scheduler.supervisor.events import SpawnFailed
from scheduler.supervisor.launch import BUSY_FOR


def explain(spec: ChildSpec, failure: SpawnFailed) -> str:
    """What is wrong with `spec`, given how its start failed; never raises."""
    if failure.stage == "refused":
        return f"not started: {failure.what}"
    if failure.stage == "cwd":
        return _about_directory(spec, failure)
    if failure.stage == "user":
        return f"cannot become user {spec.user.uid if spec.user else '?'}: {failure.what}"
    if failure.stage == "limits":
        return f"the limits cannot be set: {failure.what}"
    if failure.stage == "exec":
        return _about_program(spec, failure)
    return f"no process could be started: {failure.what}"


def _about_directory(spec: ChildSpec, failure: SpawnFailed) -> str:
    reasons = {
        errno.ENOENT: "does not exist",
        errno.ENOTDIR: "is not a directory",
        errno.EACCES: f"may not be entered by {_whom(spec)}",
    }
    return f"the work directory {spec.cwd} {reasons.get(failure.errno, f'cannot be entered: {failure.what}')}"


def _about_program(spec: ChildSpec, failure: SpawnFailed) -> str:
    name = spec.argv[0]
    path = _find(spec)
    if path is None and failure.errno == errno.ENOENT:
        if "/" in name:
            return f"command not found: there is no file {os.path.join(spec.cwd, name)}"
        return f"command not found: {name} is in no directory of PATH={spec.env.get('PATH', os.defpath)}"
    path = path or name
    if failure.errno == errno.ENOENT:
        return _about_interpreter(path)
    if failure.errno == errno.EACCES:
        return _about_permission(spec, path)
    if failure.errno == errno.ENOEXEC:
        return f"{path} is not a program for this machine and has no shebang (#!) line that names an interpreter"
    if failure.errno == errno.ETXTBSY:
        return f"{path} was still open for writing after {BUSY_FOR:g} s (text file busy)"
    if failure.errno == errno.E2BIG:
        return "command and environment are too large for this system; pass large data in a file"
    return f"{path} cannot be executed: {failure.what}"


def _about_interpreter(path: str) -> str:
    first = _first_bytes(path)
    if first.startswith(b"#!"):
        line = first[2:].split(b"\n")[0].decode("utf-8", "replace").lstrip(" \t")
        interpreter = line.rstrip(" \t").split(" ")[0].split("\t")[0]
        if line.endswith("\r"):
            shown = interpreter.rstrip("\r") + "\\r"
            return f'the interpreter "{shown}" of {path} is missing: the file has Windows line ends (CRLF)'
        return f"the interpreter {interpreter} of {path} is missing"
    if first.startswith(b"\x7fELF"):
        return f"the loader that {path} needs is missing (a program built for another system)"
    return f"{path} was not there when it was started"


def _about_permission(spec: ChildSpec, path: str) -> str:
    try:
        found = os.stat(path)
    except OSError:
        return f"{path} may not be reached by {_whom(spec)}"
    if stat.S_ISDIR(found.st_mode):
        return f"{path} is a directory, not a program"
    if not found.st_mode & 0o111:
        mode = f"mode {stat.S_IMODE(found.st_mode):o}"
        return f"{path} is not executable ({mode}): chmod +x it or name its interpreter"
    if os.statvfs(path).f_flag & os.ST_NOEXEC:
        return f"{path} lies on a file system that is mounted noexec"
    return f"{path} may not be executed by {_whom(spec)} (mode {stat.S_IMODE(found.st_mode):o})"


def _find(spec: ChildSpec) -> str | None:
    """The file that the search of PATH stopped at."""
    name = spec.argv[0]
    folders = [""] if "/" in name else spec.env.get("PATH", os.defpath).split(":")
    for folder in folders:
        path = os.path.join(spec.cwd, folder, name)
        if os.path.lexists(path):
            return path
    return None


def _first_bytes(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(256)
    except OSError:
        return b""


def _whom(spec: ChildSpec) -> str:
    return f"user {spec.user.uid if spec.user else os.geteuid()}"
