"""What is wrong in a configuration, and where: one value per complaint, all of them in one error."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from scheduler.core.errors import InvalidInput
from scheduler.core.value_object import value_object

_SHOWN = 100  # a wall of text helps nobody; the number of the rest is told

Path = tuple[str | int, ...]
"""Keys and list indexes from the top of a file to a value."""


def path_text(path: Path) -> str:
    """`jobs.report.schedule[1]`; empty for the top of the file."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{_short(part)}" if text else _short(part)
    return text


@value_object
class Problem:
    """One complaint. `line` and `column` count from 1; 0 when the file as a whole is meant. `code`: it is a warning,
    which an author may acknowledge by this word."""

    file: str
    line: int
    column: int
    path: Path
    reason: str
    hint: str | None = None
    job: str | None = None
    code: str | None = None

    def __str__(self) -> str:
        """`file:line:column: path: what, and what to do`; for a warning also how to accept it."""
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        path = path_text(self.path)
        said = self.reason if self.hint is None else f"{self.reason}; {self.hint}"
        if self.code is not None:
            said += f" (or accept it, acknowledge: [{self.code}])"
        return f"{place}: {path}: {said}" if path else f"{place}: {said}"


class ConfigError(InvalidInput):
    """A configuration is refused; `problems` are all its errors in the order of the files' lines."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = in_order(problems)
        lines = [str(problem) for problem in self.problems[:_SHOWN]]
        if len(self.problems) > _SHOWN:
            lines.append(f"and {len(self.problems) - _SHOWN} more")
        super().__init__("\n".join(lines))


def in_order(problems: Iterable[Problem]) -> Sequence[Problem]:
    """By file (in the order in which they first complain) and place, each complaint once."""
    # What is wrong in one place is told once, however many jobs inherit it.
    unique = list({(one.file, one.line, one.path, one.reason): one for one in problems}.values())
    rank = {name: index for index, name in enumerate(dict.fromkeys(one.file for one in unique))}
    return tuple(sorted(unique, key=lambda one: (rank[one.file], one.line, one.column)))


def _short(text: str) -> str:
    return text if len(text) <= 100 else f"{text[:97]}…"
