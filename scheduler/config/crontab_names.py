"""What a shell command is about, in one word: names for jobs that have none."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Sequence

_SEPARATORS = frozenset(
    {"&&", "||", ";", "|", "&", "{", "}", "(", ")", "then", "do", "else", "fi", "done", "if", "while", "|&", ";;"}
)
_ACCESSORIES = frozenset(
    {"test", "[", "[[", "cd", "sleep", "true", "false", ":", "export", "source", ".", "umask", "exit", "echo"}
    | {
        "printf",
        "set",
        "ulimit",
        "command",
        "type",
        "logger",
        "which",
        "date",
        "expr",
        "hostname",
        "read",
        "wait",
        "trap",
        "unset",
        "mkdir",
    }
)
_WRAPPERS = {
    "sudo": ("ugCDhpRrTt", 0),
    "doas": ("uC", 0),
    "su": ("scg", 1),
    "nice": ("n", 0),
    "ionice": ("cnt", 0),
    "chrt": ("", 1),
    "flock": ("wE", 1),
    "timeout": ("ks", 1),
    "env": ("uS", 0),
    "nohup": ("", 0),
    "setsid": ("", 0),
    "time": ("fo", 0),
    "exec": ("a", 0),
    "stdbuf": ("ioe", 0),
    "chronic": ("", 0),
    "systemd-cat": ("tp", 0),
    "run-one": ("", 0),
    "setlock": ("", 1),
    "softlimit": ("", 0),
    "busybox": ("", 0),
}
"""Programs that start another one: their options that take a value, and how many words precede the other program."""

_INTERPRETERS = re.compile(
    r"(?:ba|da|z|k|c)?sh|python[0-9.]*|pypy[0-9.]*|perl[0-9.]*|php[0-9.]*|ruby[0-9.]*|node|nodejs|java|Rscript|lua"
)
_SHELL = re.compile(r"(?:ba|da|z|k)?sh")
_INLINE = frozenset({"-c", "-e", "-r", "-lc", "-ec", "-ic"})
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_REDIRECTION = re.compile(r"[0-9]*(?:[<>]|&>)")
_LONGEST = 60
_DEEPEST = 3


def name_of(command: str, taken: Collection[str] = ()) -> str:
    """A name for a job that runs this command: that of its first program which is more than an accessory. Names that
    are taken get a number."""
    word = _subject(command, 0) or "job"
    base = re.sub(r"[^A-Za-z0-9._-]+", "-", word)[:_LONGEST].strip("-._") or "job"
    name, number = base, 2
    while name in taken:
        name = f"{base}-{number}"
        number += 1
    return name


def _subject(command: str, depth: int) -> str | None:
    fallback = None
    for words in _segments(command):
        words = _unwrapped(words)
        if not words:
            continue
        program = _base(words[0])
        if program.startswith("-"):
            continue  # what is left of a test, behind a $(…)
        if program in _ACCESSORIES:
            fallback = fallback or (program if program.isalnum() else None)
            continue
        if program == "run-parts":
            return _base(next((word for word in words[1:] if not word.startswith("-")), program))
        if not _INTERPRETERS.fullmatch(program):
            return _stem(program)
        found = _script(words, depth)
        if found is not None:
            return found
        fallback = fallback or program
    return fallback


def _script(words: Sequence[str], depth: int) -> str | None:
    """What an interpreter runs; None for one-liners of languages other than the shell."""
    program = _base(words[0])
    for index, word in enumerate(words[1:], 1):
        if word in _INLINE:
            if _SHELL.fullmatch(program) and index + 1 < len(words) and depth < _DEEPEST:
                return _subject(words[index + 1], depth + 1)
            return None
        if word == "-m" and program.startswith(("python", "pypy")) and index + 1 < len(words):
            return words[index + 1]
        if not word.startswith("-"):
            return _stem(_base(word))
    return None


def _segments(command: str) -> list[list[str]]:
    """Simple commands, in order, without redirections and shell words."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="();|&{}")
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        words = list(lexer)
    except ValueError:  # an open quote: the shell will complain, a name is found nevertheless
        words = command.split()
    found: list[list[str]] = [[]]
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word in _SEPARATORS or re.fullmatch(r"[();|&{}]+", word):
            found.append([])
        elif _REDIRECTION.match(word):
            skip = re.fullmatch(r"[0-9]*(?:[<>]{1,2}|&>)", word) is not None
        elif word != "!" or found[-1]:
            found[-1].append(word)
    return [segment for segment in found if segment]


def _unwrapped(words: list[str]) -> list[str]:
    """Without assignments and programs that only start another one."""
    while words:
        if _ASSIGNMENT.match(words[0]):
            words = words[1:]
            continue
        wrapper = _WRAPPERS.get(_base(words[0]))
        if wrapper is None:
            break
        options, positional = wrapper
        rest = words[1:]
        while rest and rest[0].startswith("-") and rest[0] != "-":
            takes = len(rest[0]) == 2 and rest[0][1] in options
            inline = rest[0] == "-c" and not takes
            rest = rest[2:] if takes else rest[1:]
            if inline:
                break
        if _base(words[0]) == "flock" and len(rest) > 2 and rest[1] == "-c":
            return ["sh", "-c", rest[2]]
        if _base(words[0]) == "env":
            while rest and _ASSIGNMENT.match(rest[0]):
                rest = rest[1:]
        if len(rest) <= positional:
            break
        words = rest[positional:]
    return words


def _stem(word: str) -> str:
    return re.sub(r"(?<=.)\.(?:sh|bash|py|pl|rb|php|js|jar|R|lua)$", "", word)


def _base(word: str) -> str:
    return word.rstrip("/").rpartition("/")[2]
