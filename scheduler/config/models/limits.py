"""Resource limits of a job's process."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from scheduler.config.fields import Size, Whole
from scheduler.config.models.base import Model
from scheduler.core.job import Limits


class LimitsModel(Model):
    """What one run may use."""

    memory: Annotated[Size | None, Field(description="Address space of each process, as 512MiB.")] = None
    tasks: Annotated[int | None, Whole(1, 1_000_000), Field(description="Processes and threads at once.")] = None
    nice: Annotated[int | None, Whole(-20, 19), Field(description="Niceness; 19 gives way to everything else.")] = None

    def noun(self) -> Limits:
        return Limits(memory=self.memory, tasks=self.tasks, nice=self.nice)
