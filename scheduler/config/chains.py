"""`after:` between jobs: the other job exists, and nothing starts itself."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler.config.bundle import Bundle
from scheduler.config.suggest import suggestion


def check_chains(bundle: Bundle, chains: Mapping[str, str]) -> None:
    """`chains` names for each job the one after which it runs. Complains about those that do not exist, and once
    about each circle."""
    known = bundle.sections["jobs"]
    for name, other in chains.items():
        if other not in known:
            near = suggestion(other, known)
            hint = f"did you mean `{near}`?" if near is not None else "correct the name, or add that job"
            bundle.complain(("jobs", name, "after"), f"there is no job `{other[:100]}`", hint, job=name)
    safe: set[str] = set()
    for name in chains:
        line: dict[str, None] = {}
        at: str | None = name
        while at is not None and at not in safe and at not in line:
            line[at] = None
            at = chains.get(at)
        if at is not None and at in line:
            circle = [*line][[*line].index(at) :]
            shown = " → ".join([*circle[:20], at])
            bundle.complain(("jobs", at, "after"), f"a circle: {shown}", "remove one `after`", job=at)
        safe.update(line)
