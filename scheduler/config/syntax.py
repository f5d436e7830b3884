"""YAML that does not parse → what its author probably meant, and what to type instead.

The parser stops at the first mistake. Where the mistake is a text that only needs quotes, the quotes are put in
(in memory) and parsing goes on, so that one look at the messages is enough.
"""

from __future__ import annotations

import re

import yaml

from scheduler.config.problem import ConfigError, Problem
from scheduler.config.reader import Reader
from scheduler.config.text import check_text, lines_of
from scheduler.config.tree import Tree
from scheduler.core.value_object import value_object

_REPAIRS = 20
_REPAIRABLE = 256 << 10  # parsing again and again is for files that people write by hand

_LEAD = r"(?P<before>^[ \t]*(?:(?:-[ \t]+)+(?:[^\s\"'#:{},\[\]]+[ \t]*:[ \t]+)?|[^\s\"'#:{},\[\]]+[ \t]*:[ \t]+))"
_FLOW = r"(?P<before>[{,\[][ \t]*(?:[A-Za-z_]+[ \t]*:[ \t]+)?)"
_MEANING = "`{first}` at the start of a value means something else in YAML"
# What the parser says → the value that lacks quotes, and what to say about it.
_QUOTABLE = (
    ("alphabetic or numeric", _LEAD, r"[*&][^#]*", _MEANING),
    ("alphabetic or numeric", _FLOW, r"[*&][^,}\]\"'#]*", _MEANING),
    ("cannot start any token", _LEAD, r"[@`%][^#]*", "a value cannot begin with `{first}` in YAML"),
    ("cannot start any token", _FLOW, r"[@`%][^,}\]\"'#]*", "a value cannot begin with `{first}` in YAML"),
    ("mapping keys are not allowed", _LEAD, r"\?[^#]*", _MEANING),
    (
        "mapping values are not allowed",
        _LEAD,
        r"[^\"'\[{|>&*!#%@`\s][^#]*:(?:[ \t].*)?",
        "`: ` inside an unquoted text means a mapping in YAML",
    ),
    ("tag", _LEAD, r"![^#]*", _MEANING),
    ("expected key", _LEAD, r"\"[^\"]*\"[ \t]*[^\s#].*|'[^']*'[ \t]*[^\s#].*", "there is text after the closing quote"),
)
_ADVICE = (
    ("exceeded maximum nesting", "nested too deep", "flatten it"),
    (
        "expected a single document",
        "a second document begins here (`---`)",
        "write one document per file, or use `include`",
    ),
    (
        "found undefined alias",
        "`*` refers to an anchor that does not exist",
        "define `&name` above it, or quote the text",
    ),
    (
        "escape",
        "a backslash in double quotes begins an escape that YAML does not know",
        "write \\\\, or use single quotes",
    ),
    ("quoted scalar", "a quoted text is not closed", "add the closing quote"),
    ("flow sequence", "a list is not closed or lacks a comma", "check the brackets [ ] and the commas"),
    ("flow mapping", "a mapping is not closed or lacks a comma", "check the braces { } and the commas"),
    (
        "mapping values are not allowed",
        "a `:` where no key can be",
        "check the indentation, and quote texts that contain `: `",
    ),
    ("did not find expected key", "this line does not fit its neighbours", "check the indentation and the quotes"),
    ("'-' indicator", "this line does not fit the list above it", "begin it with `- `, or correct the indentation"),
    ("could not find expected ':'", "a key without `:`", "write `key: value`, and check the indentation"),
    ("block scalar", "the text block after | or > is not understood", "write | or > and an indented text below it"),
    ("duplicate anchor", "an anchor is defined twice", "give it another name"),
    ("tag", "a word that begins with `!` is a tag in YAML", "put the text in quotes"),
    ("anchor", "a word that begins with `&` is an anchor in YAML", "put the text in quotes"),
    ("directive", "a line that begins with % is a directive in YAML", "put the text in quotes, or remove the line"),
    ("incompatible", "this YAML version is not supported", "remove the line that begins with %YAML"),
)


@value_object
class _Mistake:
    problem: Problem
    repaired: str | None


def parse(text: str, name: str) -> Tree:
    """The file as a tree; its `problems` include the syntax errors that could be stepped over.

    ConfigError with all syntax errors found, when the rest cannot be read."""
    text = check_text(text, name)
    problems: list[Problem] = []
    while True:
        try:
            tree = Tree(name, _compose(text), text)
        except (yaml.YAMLError, RecursionError) as error:
            mistake = _explain(error, text, name)
            problems.append(mistake.problem)
            if mistake.repaired is None or len(problems) >= _REPAIRS or len(text) > _REPAIRABLE:
                raise ConfigError(problems) from None
            text = mistake.repaired
            continue
        tree.problems[:0] = problems
        return tree


def _compose(text: str) -> yaml.Node | None:
    reader = Reader(text)
    try:
        return reader.get_single_node()  # type: ignore[no-any-return]
    finally:
        reader.dispose()


def _explain(error: Exception, text: str, name: str) -> _Mistake:
    mark = (error.problem_mark or error.context_mark) if isinstance(error, yaml.MarkedYAMLError) else None
    if not isinstance(error, yaml.MarkedYAMLError) or mark is None:
        reason = "nested too deep" if isinstance(error, RecursionError) else f"not YAML ({error!s:.80})"
        return _Mistake(Problem(name, 0, 0, (), reason, "compare it with the output of `schedctl init`"), None)
    start = error.context_mark if _unclosed(error) else None
    lines = lines_of(text)
    # The parser often stops one line after the culprit, or at the end of what was never closed.
    for number in dict.fromkeys((mark.line, mark.line - 1)):
        if 0 <= number < len(lines) and start is None:
            tab = re.match(r"[ ]*\t", lines[number])
            if tab is not None and "cannot start any token" in str(error.problem):
                problem = Problem(name, number + 1, tab.end(), (), "a tab in the indentation", "indent with spaces")
                lines[number] = re.sub(r"^[ \t]+", lambda blank: blank[0].expandtabs(2), lines[number])
                return _Mistake(problem, "\n".join(lines))
            mistake = _quotes(lines, number, str(error.problem), name)
            if mistake is not None:
                return mistake
    line, column = (start.line, start.column) if start is not None else (mark.line, mark.column)
    reason, hint = _in_words(error)
    return _Mistake(Problem(name, line + 1, column + 1, (), reason, hint), None)


def _unclosed(error: yaml.MarkedYAMLError) -> bool:
    """What began at the context is never closed: that is the place to look at."""
    said = f"{error.problem} {error.context}"
    return error.context_mark is not None and ("unexpected end of stream" in said or "flow" in said)


def _quotes(lines: list[str], number: int, said: str, name: str) -> _Mistake | None:
    for words, lead, value, reason in _QUOTABLE:
        if words in said:
            found = re.search(f"{lead}(?P<value>{value})", lines[number])
            if found is not None:
                return _quoted(lines, number, found, reason, name)
    return None


def _quoted(lines: list[str], number: int, found: re.Match[str], reason: str, name: str) -> _Mistake:
    value = found["value"].rstrip()
    if value[:1] in "\"'":
        quoted = "'" + value.replace("'", "''") + "'"
    else:
        quoted = '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    fixed = [*lines]
    fixed[number] = lines[number][: found.start("value")] + quoted + lines[number][found.start("value") + len(value) :]
    hint = f"put it in quotes: {found['before'].strip(' {,[')} {quoted}" if len(quoted) <= 200 else "put it in quotes"
    problem = Problem(name, number + 1, found.start("value") + 1, (), reason.format(first=value[:1]), hint)
    return _Mistake(problem, "\n".join(fixed))


def _in_words(error: yaml.MarkedYAMLError) -> tuple[str, str]:
    said = f"{error.problem} {error.context or ''}"
    for words, reason, hint in _ADVICE:
        if words in said:
            return reason, hint
    return f"not YAML: {error.problem}", "check the indentation and the quotes of this line"
