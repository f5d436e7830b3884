"""What jobs need and this machine lacks: programs, folders, users, functions, secrets. Nothing is executed."""

from __future__ import annotations

import os
import pwd
import re
import stat
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path as Folder

from scheduler.config.codes import Remark
from scheduler.config.importable import why_not_importable
from scheduler.config.problem import Path
from scheduler.config.secrets import missing
from scheduler.core.children import BASE_PATH
from scheduler.core.job import Job
from scheduler.core.secret import Secret

_HERE = "on this machine"
_PLAIN_WORD = re.compile(r"\s*([A-Za-z0-9_./+%,:@-]+)(?=[\s;&|<>]|$)")
OF_THE_SHELL = re.compile(
    r"\.|:|\[|\[\[|alias|bg|bind|break|builtin|caller|case|cd|chdir|command|compgen|complete|continue|declare|dirs|disown"
    r"|do|done|echo|elif|else|enable|esac|eval|exec|exit|export|false|fc|fg|fi|for|function|getopts|hash|help|history|if"
    r"|in|jobs|kill|let|local|logout|mapfile|popd|printf|pushd|pwd|read|readarray|readonly|return|select|set|shift|shopt"
    r"|source|suspend|test|then|time|times|trap|true|type|typeset|ulimit|umask|unalias|unset|until|wait|while"
)
"""What a shell does itself, without a program."""
_MISSING, _FILE, _PROGRAM, _FOLDER, _UNKNOWN = "missing", "file", "program", "folder", "unknown"


class Here:
    """`folder` is that of the jobs file, to which paths are relative; None if it has none. `environ` is looked at for
    secrets. What cannot be told for sure, such as what lies in somebody else's closed folder, is passed over."""

    def __init__(self, folder: Folder | None, environ: Mapping[str, str] | None = None) -> None:
        self._folder = None if folder is None else str(folder.absolute())
        self._environ = environ
        self._kind = lru_cache(maxsize=100_000)(_kind_of)
        self._knows_user = lru_cache(maxsize=10_000)(_knows_user)
        self._why_not_importable = lru_cache(maxsize=10_000)(why_not_importable)

    def about(self, job: Job, secrets: Mapping[Path, Secret]) -> Iterator[Remark]:
        for path, secret in secrets.items():
            # A relative file is looked for where the daemon was started, wherever that is.
            why = None if (secret.file or "/")[0] != "/" else missing(secret, self._environ)
            if why is not None:
                until = "nobody outside hears of it" if path[0] == "heartbeat" else "the job fails"
                hint = f"provide it where the daemon runs; {until} until then"
                yield Remark(path, "no-secret", f"the secret cannot be read {_HERE}: {why}", hint)
        kind, child = job.action.kind, job.child
        if kind not in ("command", "call"):
            return
        if child.user is not None and not self._knows_user(child.user):
            yield Remark(
                ("user",), "no-user", f"there is no user `{child.user}` {_HERE}", "create it, or correct `user`"
            )
        workdir = _join(self._folder, child.workdir or "")
        if child.workdir is not None and workdir is not None:
            found = self._kind(workdir)
            if found not in (_FOLDER, _UNKNOWN):
                what = "there is no folder" if found == _MISSING else "it is no folder:"
                yield Remark(("workdir",), "no-workdir", f"{what} {workdir} {_HERE}", "create it, or correct the path")
                workdir = None
        yield from self._about_program(job, workdir) if kind == "command" else self._about_function(job, workdir)

    def _about_program(self, job: Job, workdir: str | None) -> Iterator[Remark]:
        command: str | list[str] = job.action.options["command"]
        path: Path = ("command",)
        if isinstance(command, list):
            word, path = command[0], ("command", 0)
        else:
            found = _PLAIN_WORD.match(command)
            if found is None or OF_THE_SHELL.fullmatch(found[1]):
                return
            word = found[1]
        if "/" in word:
            whole = _join(workdir, word)
            kinds = {_UNKNOWN if whole is None else self._kind(whole)}
            missing_hint = "install it, or correct the path"
        elif "PATH" in job.child.secrets:
            return
        else:
            searched = job.child.env.get("PATH", BASE_PATH)
            places = [_join(workdir, os.path.join(folder, word)) for folder in searched.split(":")]
            kinds = {_UNKNOWN if one is None else self._kind(one) for one in places}
            missing_hint = f"install it, or write the whole path; jobs search {searched}"
        if kinds <= {_MISSING}:
            yield Remark(path, "no-program", f"there is no program `{word}` {_HERE}", missing_hint)
        elif not kinds & {_PROGRAM, _UNKNOWN}:
            what = "is a folder" if kinds <= {_MISSING, _FOLDER} else "is not executable"
            yield Remark(path, "no-program", f"`{word}` {what} {_HERE}", "correct the path, or chmod +x it")

    def _about_function(self, job: Job, workdir: str | None) -> Iterator[Remark]:
        if workdir is None or "PYTHONPATH" in job.child.secrets:
            return
        named = job.child.env.get("PYTHONPATH", "")
        roots = (workdir, *(os.path.join(workdir, one) for one in named.split(os.pathsep) if one))
        name = str(job.action.options["function"])
        why = self._why_not_importable(name, roots)
        if why is not None:
            yield Remark(("call",), "no-function", f"`{name}` {_HERE}: {why[0]}", why[1])


def _join(folder: str | None, path: str) -> str | None:
    """The path from there; None if `there` is not known and matters."""
    if path.startswith("/"):
        return path
    return None if folder is None else os.path.join(folder, path)


def _kind_of(path: str) -> str:
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return _MISSING
    except (OSError, ValueError):
        return _UNKNOWN
    if stat.S_ISDIR(mode):
        return _FOLDER
    return _PROGRAM if mode & 0o111 else _FILE


def _knows_user(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True
