"""The files of one attempt: `<state>/runs/<run id>.<attempt>.*`.

All attempts share one directory: to make and to remove a directory costs a disk more than everything else that starting
a child does, a hundred times what a file costs. For the same reason no file is made that would say nothing: where many
were removed a moment ago, ext4 without a journal takes 0.4 ms for each new one."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path

from scheduler.core.model import Json, Run
from scheduler.core.secret import Secret
from scheduler.core.value_object import value_object
from scheduler.executors.attempts.privacy import keep_to_owner, passable
from scheduler.executors.attempts.values import to_json

_PASSABLE = 0o711
_KINDS = _OUTPUT, _PAYLOAD, _REPORT, _CHECKPOINT, _ABOUT = (
    "output",
    "payload.json",
    "report.jsonl",
    "checkpoint.json",
    "about.json",
)
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


@dataclass(frozen=True)
class Workspace:
    """Paths of one attempt. The directory is the daemon's; a job that runs as another user owns the files that it reads
    and writes, and cannot put anything in their place."""

    directory: str
    name: str
    has_payload: bool = True
    has_checkpoint: bool = True

    @cached_property
    def output(self) -> str:
        """What it prints, stdout and stderr in one, appended."""
        return self._file(_OUTPUT)

    @cached_property
    def payload(self) -> str:
        """The run's payload as JSON; only there if it has one."""
        return self._file(_PAYLOAD)

    @cached_property
    def report(self) -> str:
        """Lines of JSON that the attempt appends; made by the first one, if it is not there before."""
        return self._file(_REPORT)

    @cached_property
    def checkpoint(self) -> str:
        """The last checkpoint of the run as JSON; only there if it has one."""
        return self._file(_CHECKPOINT)

    @cached_property
    def about(self) -> str:
        """What a later daemon needs to know; only there if it is more than the defaults say."""
        return self._file(_ABOUT)

    @cached_property
    def files(self) -> tuple[str, ...]:
        """All that may be there, `about` the last."""
        read = (*((self.payload,) * self.has_payload), *((self.checkpoint,) * self.has_checkpoint))
        return (self.output, self.report, *read, self.about)

    def _file(self, kind: str) -> str:
        return f"{self.directory}/{self.name}.{kind}"  # A Path costs ten times as much, for each of many a run.

    def open_output(self) -> int:
        """A descriptor that appends to the output; the caller closes it."""
        return os.open(self.output, _APPEND, 0o600)

    def put_payload(self, payload: Json) -> None:
        """Another payload, before the attempt begins; OSError when the disk does not take it."""
        descriptor = os.open(self.payload, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW)
        with os.fdopen(descriptor, "wb") as file:
            file.write(to_json(payload))

    def note(self, text: str) -> None:
        """Append a line of our own to the output. Where nothing can be written any more, nothing is."""
        try:
            descriptor = self.open_output()
        except OSError:
            return
        try:
            os.write(descriptor, f"[schedulerd] {text}\n".encode("utf-8", "replace"))
        except OSError:
            pass
        finally:
            os.close(descriptor)


@value_object
class About:
    """What a later daemon needs to know about an attempt. `sources` say where its secrets came from, by name, so that
    they can be masked then, too."""

    log_limit: int = 1 << 20
    sources: Mapping[str, Secret] = field(default_factory=dict)


class Workspaces:
    """All attempts under one state directory."""

    def __init__(self, state_dir: Path) -> None:
        self._root = str(state_dir / "runs")

    def of(self, run: str, attempt: int) -> Workspace:
        """Of an attempt of which no more is known."""
        return Workspace(self._root, f"{run}.{attempt}")

    def reserve(self, run: Run, about: About) -> Workspace:
        """A place without files for the attempt `run.attempt`; what an earlier use of the same attempt left is removed.
        OSError when the disk does not take it."""
        self.make_room()
        workspace = Workspace(self._root, f"{run.id}.{run.attempt}", run.has_payload, run.checkpoint is not None)
        if any(map(os.path.lexists, (workspace.output, workspace.report, workspace.payload))):
            remove(self.of(run.id, run.attempt).files)
        if about != About():
            self.describe(run.id, run.attempt, about)
        return workspace

    def create(self, run: Run, about: About, user: str | None) -> Workspace:
        """The same with its files (0600) in the directory (0700). The output is made by whoever opens it, the report by
        the first who appends to it. For another user the directory can be passed through (0711), but not listed: there
        the report is made before, or everybody could read it. OSError when the disk does not take it, KeyError for an
        unknown user."""
        account = None if user is None else pwd.getpwnam(user)
        owner = account if account is not None and account.pw_uid != os.geteuid() else None
        workspace = self.reserve(run, about)
        contents = {}
        if workspace.has_payload:
            contents[workspace.payload] = to_json(run.payload)
        if workspace.has_checkpoint:
            contents[workspace.checkpoint] = to_json(run.checkpoint)
        if owner is not None:
            self._open_up()
        if passable(self._root):
            contents[workspace.report] = b""
        for path, data in contents.items():
            _write(path, data)
            if owner is not None:
                os.chown(path, owner.pw_uid, owner.pw_gid)
        return workspace

    def describe(self, run: str, attempt: int, about: About) -> None:
        """Write this down instead of what may be there; OSError when the disk does not take it."""
        described = {
            "log_limit": about.log_limit,
            "sources": {name: asdict(source) for name, source in about.sources.items()},
        }
        path = self.of(run, attempt).about
        remove([path])
        _write(path, json.dumps(described).encode())

    def about(self, run: str, attempt: int) -> About:
        """What was written when the attempt was prepared."""
        try:
            with open(self.of(run, attempt).about, "rb") as file:
                found = json.loads(file.read())
            sources = {name: Secret(**source) for name, source in found["sources"].items()}
            return About(int(found["log_limit"]), sources)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return About()

    def present(self) -> Iterable[tuple[str, int]]:
        """(run, attempt) of everything on disk, by run (oldest first) and attempt. What a child put beside its files,
        and left when its attempt was over, is removed."""
        try:
            names = os.listdir(self._root)
        except (FileNotFoundError, NotADirectoryError):
            return []
        attempts: set[tuple[str, int]] = set()
        strange: list[tuple[str, tuple[str, int]]] = []
        for name in names:
            run, _, rest = name.partition(".")
            attempt, _, kind = rest.partition(".")
            if not attempt.isdecimal():
                continue
            if kind in _KINDS:
                attempts.add((run, int(attempt)))
            else:
                strange.append((name, (run, int(attempt))))
        for name, key in strange:
            if key not in attempts:
                with contextlib.suppress(OSError):
                    os.unlink(os.path.join(self._root, name))
        return sorted(attempts)

    def make_room(self) -> None:
        """The directory itself."""
        if not os.path.isdir(self._root):
            with contextlib.suppress(FileExistsError):
                os.mkdir(self._root, 0o700)

    def _open_up(self) -> None:
        """A job with a user of its own must be able to pass through where others need not, whatever the umask says."""
        closed = not passable(self._root)
        for directory in (os.path.dirname(self._root), self._root):
            if not passable(directory):
                os.chmod(directory, _PASSABLE)
        if closed:
            for run, attempt in self.present():
                with contextlib.suppress(OSError):  # Its child has put something else in its place.
                    keep_to_owner(self.of(run, attempt).report)


def remove(files: Iterable[str]) -> None:
    """Whatever is there of them; no error if there is nothing."""
    for path in files:
        with contextlib.suppress(OSError):
            os.unlink(path)


def _write(path: str, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
    finally:
        os.close(descriptor)
