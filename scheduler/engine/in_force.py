"""The configuration this node works with: swapped as a whole, read without a lock."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.core.job import Configuration, Job


@dataclass(frozen=True, slots=True)
class Loaded:
    generation: int
    configuration: Configuration


class InForce:
    """Holds the loaded configuration. A reader takes `current` once and works with that."""

    def __init__(self) -> None:
        self.loaded: Loaded | None = None
        self.behind: str | None = None
        """Why the newest generation could not be loaded; such a node neither plans nor claims."""

    @property
    def current(self) -> Loaded:
        assert self.loaded is not None, "a configuration is put in force before any loop starts"
        return self.loaded

    def set(self, loaded: Loaded) -> None:
        self.loaded = loaded
        self.behind = None

    def job(self, name: str) -> Job | None:
        return self.current.configuration.jobs.get(name)
