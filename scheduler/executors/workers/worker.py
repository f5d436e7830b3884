"""One worker process as its pool sees it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO

from scheduler.core.children import ChildExit
from scheduler.core.job import Limits
from scheduler.core.outcome import Span
from scheduler.core.value_object import value_object
from scheduler.executors.workers.channels import Channel
from scheduler.executors.workers.wire import Message

PROGRAM = "scheduler.executors.workers.main"
_LAST_WORDS = 2000


@value_object
class Place:
    """What a worker process has for its whole life: tasks of different places never meet in one process."""

    cwd: str
    python_path: str = ""
    limits: Limits = field(default_factory=Limits)


@value_object
class Answer:
    """What came of a task: `message`, what the worker said; else `why` we ended it; else that the worker `died` by
    itself (`last_words`: what it printed), `failed` to start, is `lost` for no reason of the task, or that there is no
    process to be had (`busy`). Not `begun`: no worker ever got it. `left` counts what had to be ended after the
    task."""

    message: Message | None = None
    why: str | None = None
    died: ChildExit | None = None
    failed: str | None = None
    lost: str | None = None
    busy: str | None = None
    begun: bool = True
    left: int = 0
    last_words: str = ""

    @property
    def span(self) -> Span | None:
        """When the task was over; a worker is there longer than its tasks."""
        if self.message is not None and "at" in self.message:
            return Span(self.message["at"])
        return None if self.died is None or self.died.span is None else Span(self.died.span.ended)


@dataclass(slots=True, eq=False)
class Task:
    """One run to carry out. `finish` is called exactly once, when nothing of it is left; `heard` before that with each
    message that has `say`, from a thread that must not be kept."""

    run: str
    node: str
    place: Place
    message: Message
    kill_after: float
    finish: Callable[[Answer], None]
    heard: Callable[[Message], None] | None = None
    waits_since: float = 0.0
    why: str | None = None
    give_up_at: float | None = None
    answer: Message | None = None


@dataclass(slots=True, eq=False)
class Worker:
    """A process and its tasks. `busy_since`: when it was given the last one. `ready`: it has been heard of.
    `retiring`: it gets no further ones. `ended` says why we ended it, if we did. `overdue_at`: when it should be gone,
    since its channel is. `words`: what the process itself prints."""

    name: str
    place: Place
    made_at: float
    idle_since: float
    busy_since: float = 0.0
    tasks: dict[str, Task] = field(default_factory=dict)
    channel: Channel | None = None
    ready: bool = False
    retiring: bool = False
    ended: str | None = None
    overdue_at: float | None = None
    words: IO[bytes] | None = None

    def overdue(self, now: float) -> bool:
        """It should have ended one of its tasks, or itself, by now."""
        times = (self.overdue_at, *(task.give_up_at for task in self.tasks.values()))
        return any(at is not None and now >= at for at in times)

    def last_words(self) -> str:
        """The end of what the process itself printed: why it could not start, for example."""
        if self.words is None:
            return ""
        size = os.fstat(self.words.fileno()).st_size
        data = os.pread(self.words.fileno(), _LAST_WORDS, max(0, size - _LAST_WORDS))
        return data.decode("utf-8", "replace").strip()


def meaning(worker: Worker, task: Task, ended: ChildExit, words: str) -> Answer:
    """What it means for a task that its worker's process has ended; `words`: the last that it printed."""
    if task.why is not None:
        return Answer(why=task.why, died=ended, left=ended.left)
    if task.answer is not None:
        processes = int(task.answer.get("processes") or 0)
        return Answer(message=task.answer, left=max(ended.left, processes))
    if worker.ended is not None:
        return Answer(lost=f"its worker process was ended because {worker.ended}")
    if ended.why == "lost":
        return Answer(lost="its node could no longer vouch for it")
    if ended.why is not None:
        return Answer(lost=f"its worker process was ended ({ended.why})")
    return Answer(died=ended, left=ended.left, last_words=words)


def argv(kind: str, place: Place) -> tuple[str, ...]:
    """`-P`: a folder named `scheduler` in the job's work directory must not stand in front of ours."""
    return (sys.executable, "-P", "-m", PROGRAM, kind, place.python_path)
