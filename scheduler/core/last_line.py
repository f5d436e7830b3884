"""The last line that a run printed, for people who look at a screen or a phone."""

from __future__ import annotations

from scheduler.core.model import Output

OURS = "[schedulerd] "
"""So begins a line that the daemon added to what a job printed."""


def last_line(output: Output | None) -> str | None:
    """The last line that is not blank, as printable text of at most 300 characters. What the daemon added to the output
    counts only if the job itself said nothing."""
    if output is None:
        return None
    end = (output.tail or output.head)[-4096:]
    ours = None
    for line in reversed(end.decode("utf-8", "replace").splitlines()):
        text = "".join(character if character.isprintable() else " " for character in line).strip()
        if text and not text.startswith(OURS):
            return text[-300:]
        ours = ours or text[-300:] or None
    return ours
