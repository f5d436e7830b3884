"""The configuration this node works with: swapped as a whole, read without a lock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from scheduler.core.job import Configuration, Job
from scheduler.core.value_object import value_object
from scheduler.engine.subscribers import Subscriber, by_source


@value_object
class Loaded:
    """`followers`: the enabled jobs that run after others, by the name of the other. `subscribers`: those that events
    concern, by source."""

    generation: int
    configuration: Configuration
    followers: Mapping[str, tuple[Job, ...]]
    subscribers: Mapping[str, tuple[Subscriber, ...]]

    @classmethod
    def of(cls, generation: int, configuration: Configuration) -> Loaded:
        jobs = configuration.jobs.values()
        return cls(generation, configuration, by_followed(jobs), by_source(jobs))


def by_followed(jobs: Iterable[Job]) -> dict[str, tuple[Job, ...]]:
    """The enabled ones of these jobs that run after others, by the name of the other."""
    found: dict[str, tuple[Job, ...]] = {}
    for job in jobs:
        if job.after is not None and job.enabled:
            found[job.after.job] = (*found.get(job.after.job, ()), job)
    return found


class InForce:
    """Holds the loaded configuration. A reader takes `current` once and works with that."""

    def __init__(self) -> None:
        self.loaded: Loaded | None = None
        self.behind: str | None = None
        """Why the newest generation could not be loaded; such a node neither plans nor claims."""
        self.behind_since: datetime | None = None

    @property
    def current(self) -> Loaded:
        assert self.loaded is not None, "a configuration is put in force before any loop starts"
        return self.loaded

    def set(self, loaded: Loaded) -> None:
        self.loaded = loaded
        self.behind = self.behind_since = None

    def renew(self, before: Loaded, after: Loaded) -> None:
        """Put `after`, which says the same, in the place of `before`, if that is still loaded."""
        if self.loaded is before:
            self.loaded = after

    def stand_aside(self, reason: str, now: datetime) -> bool:
        """The newest generation cannot be loaded. True if that is news."""
        news = reason != self.behind
        self.behind = reason
        self.behind_since = self.behind_since or now
        return news

    def job(self, name: str) -> Job | None:
        return self.current.configuration.jobs.get(name)
