"""The seam to the processes that own child processes: what executors ask for and hear (joined in app.py)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Protocol

from scheduler.core.job import Leftovers, Limits
from scheduler.core.outcome import Span
from scheduler.core.value_object import value_object

BASE_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where programs of jobs are searched unless `env` says otherwise."""


@value_object
class ChildUser:
    """Whom a child runs as, by numbers: names may need a network."""

    uid: int
    gid: int
    groups: tuple[int, ...] = ()


@value_object
class ChildSpec:
    """One process to start. `run` is unique among the living ones, `node` the id under which its run was claimed,
    `env` its whole environment, `kill_after` in seconds. `argv[0]` without a slash is looked up in the PATH of `env`.
    `attempt` counts from 1; 0 is for processes that are no attempt of a run. With `leftovers` KEEP what outlives a main
    process that exits by itself is left alone; a run that is ended is always ended as a whole."""

    run: str
    attempt: int
    node: str
    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    kill_after: float
    leftovers: Leftovers = Leftovers.END
    user: ChildUser | None = None
    limits: Limits = field(default_factory=Limits)


@value_object
class ChildExit:
    """A child is over and nothing of it is left. One of `code` and `signal` is set; neither, if it was ended before
    its program was executed. `why` is the reason given to `end` if the exit came after our own signal. `left` counts
    the processes besides the main one that had to be ended; `span` is the life of the main one, if somebody saw it."""

    code: int | None
    signal: int | None
    why: str | None = None
    left: int = 0
    span: Span | None = None


class ChildListener(Protocol):
    """Hears about one child: `refused`, `failed`, `exited` or `lost`, exactly one of them, once. Calls must not
    block."""

    def refused(self, why: str) -> None:
        """Nothing began, and not because of what was to be executed: the same may be tried again a little later."""
        ...

    def failed(self, error: str) -> None:
        """No program was executed; a sentence that names the place, the reason and the remedy."""
        ...

    def exited(self, ended: ChildExit) -> None: ...

    def lost(self, error: str) -> None:
        """What owned the child is gone; the child has been ended."""
        ...


class Children(Protocol):
    def start(
        self,
        spec: ChildSpec,
        listener: ChildListener,
        *,
        output_fd: int,
        stdin_fd: int | None = None,
        channel_fd: int | None = None,
    ) -> None:
        """Asks for a child and returns. stdin is /dev/null unless given; a channel becomes descriptor 3. The
        descriptors stay the caller's, who may close them at once. Raises InvalidInput for what cannot be sent,
        Unavailable when nobody is there; then the listener hears nothing."""
        ...

    def settled(self, run: str, attempt: int) -> None:
        """The exit of this attempt is recorded, or is nobody's business: it need not be kept any longer."""
        ...

    def end(self, run: str, why: str, kill_after: float) -> None:
        """TERM now, KILL after `kill_after` seconds, to everything of the child. Nothing happens, and nothing is
        raised, if it is over."""
        ...
