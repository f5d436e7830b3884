"""Effective values, each with the place that gave it."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.config.bundle import MERGED
from scheduler.config.load import Loaded
from scheduler.config.problem import Path
from scheduler.config.written import with_keys_of_the_file
from scheduler.core.model import Json

DEFAULT = "(default)"


@dataclass(frozen=True, slots=True)
class Effective:
    """One value of a job: `key` as in jobs.yaml (`env.PORT` for a part of a mapping that is merged), `where` is
    `file:line`, or `(default)` if nobody wrote it."""

    job: str
    key: str
    value: Json
    where: str

    @property
    def default(self) -> bool:
        return self.where == DEFAULT


def show(loaded: Loaded, job: str | None = None) -> list[Effective]:
    """The values of one job, or of all, in the order of the file; KeyError if there is no such job."""
    jobs = loaded.configuration.jobs
    chosen = jobs.values() if job is None else (jobs[job],)
    found = []
    for one in chosen:
        for key, value in sorted(with_keys_of_the_file(one.definition).items()):
            if key in MERGED and isinstance(value, dict) and value:
                for name, part in value.items():
                    written_at = loaded.bundle.written_at(one.name, (key, name))
                    found.append(Effective(one.name, f"{key}.{name}", part, _where(loaded, written_at)))
            else:
                found.append(Effective(one.name, key, value, _where(loaded, loaded.bundle.origin(one.name, key))))
    return found


def _where(loaded: Loaded, path: Path | None) -> str:
    place = None if path is None else loaded.bundle.place(path, key=True)
    return DEFAULT if place is None else f"{place[0]}:{place[1][0]}"
