"""What is commonly regretted about a `command`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from scheduler.config.codes import Remark
from scheduler.config.load import Loaded
from scheduler.core.job import Job, Leftovers

DETACHING = re.compile(r"(?:^|[;&|\s(])(nohup|setsid|disown|daemonize)(?=$|[;&|\s)])")
"""A word that takes a process out of its run."""
_BACKGROUND = re.compile(r"(?<![&>|<])&\s*$")
_VARIABLE = re.compile(r"\$(?:[A-Za-z_]\w*|\{[A-Za-z_]\w*\})")
_OPERATORS = frozenset({"|", "||", "&&", ";", ">", ">>", "<", "2>&1", "2>", "&"})
_HAS_SHELL = re.compile(r"(?:^|/)(?:ba|da|z|k)?sh$|(?:^|/)env$")


def about_command(loaded: Loaded, job: Job) -> Iterator[Remark]:
    command: str | list[str] = job.action.options["command"]
    if job.leftovers is Leftovers.END:
        yield from _about_detaching(command)
    if isinstance(command, list) and not _HAS_SHELL.search(command[0]):
        for index, word in enumerate(command):
            found = _VARIABLE.search(word)
            if found is None and word not in _OPERATORS:
                continue
            what = f"`{word}` is an argument like any other" if found is None else f"`{found[0]}` is not replaced"
            hint = "write the command as one text to have a shell"
            yield Remark(("command", index), "no-shell", f"a list is executed as it is: {what}", hint)
    if loaded.bundle.trees[("jobs", job.name)].places.comment_behind(("jobs", job.name, "command")):
        # `command: echo a #b` runs `echo a`.
        reason = "everything behind ` #` is a comment and not part of the command"
        yield Remark(("command",), "comment", reason, "put the command in quotes if it belongs to it")


def _about_detaching(command: str | list[str]) -> Iterator[Remark]:
    found = DETACHING.search(command if isinstance(command, str) else " ".join(command))
    hint = "drop it; what must outlive its run is a service, or is started with systemd-run"
    if found is not None:
        reason = f"`{found[1]}` does not help: what a run leaves behind is ended with it"
        yield Remark(("command",), "detached", reason, hint)
    elif isinstance(command, str) and _BACKGROUND.search(command):
        reason = "a trailing `&`: what a run leaves behind is ended with it"
        yield Remark(("command",), "detached", reason, hint)
