"""The files of one attempt: `<state>/runs/<run id>/<attempt>/`."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from scheduler.core.job import Secret
from scheduler.core.model import Json
from scheduler.executors.attempts.values import to_json

_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


@dataclass(frozen=True, slots=True)
class Workspace:
    """Paths of one attempt. The directory is the daemon's; a job that runs as another user owns the three files
    that it reads and writes, and cannot put anything in their place."""

    directory: Path

    @property
    def output(self) -> Path:
        """What it prints, stdout and stderr in one, appended."""
        return self.directory / "output"

    @property
    def payload(self) -> Path:
        """The run's payload as JSON (`null` without one)."""
        return self.directory / "payload.json"

    @property
    def report(self) -> Path:
        """Lines of JSON that the attempt appends."""
        return self.directory / "report.jsonl"

    @property
    def checkpoint(self) -> Path:
        """The last checkpoint of the run as JSON (`null` without one)."""
        return self.directory / "checkpoint.json"

    @property
    def about(self) -> Path:
        """What a later daemon needs to know; only there if it is more than the defaults say."""
        return self.directory / "about.json"

    @property
    def files(self) -> tuple[Path, ...]:
        """All that may be there."""
        return self.output, self.payload, self.report, self.checkpoint, self.about

    def open_output(self) -> int:
        """A descriptor that appends to the output; the caller closes it."""
        return os.open(self.output, _APPEND, 0o600)

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


@dataclass(frozen=True, slots=True)
class About:
    """What a later daemon needs to know about an attempt. `sources` say where its secrets came from, by name, so that
    they can be masked then, too."""

    log_limit: int = 1 << 20
    sources: Mapping[str, Secret] = field(default_factory=dict)


class Workspaces:
    """All attempts under one state directory."""

    def __init__(self, state_dir: Path) -> None:
        self._root = state_dir / "runs"

    def of(self, run: str, attempt: int) -> Workspace:
        return Workspace(self._root / run / str(attempt))

    def create(
        self, run: str, attempt: int, about: About, *, payload: Json, checkpoint: Json, user: str | None
    ) -> Workspace:
        """A fresh directory (0700) with its files (0600). What an earlier use of the same attempt left is removed.
        For another user the directories can be passed through (0711), but not listed. OSError when the disk does not
        take it, KeyError for an unknown user."""
        account = None if user is None else pwd.getpwnam(user)
        foreign = account is not None and account.pw_uid != os.geteuid()
        workspace = self.of(run, attempt)
        self._make_room(workspace, 0o711 if foreign else 0o700)
        if about != About():
            self.describe(run, attempt, about)
        for path, data in (
            (workspace.payload, to_json(payload)),
            (workspace.checkpoint, to_json(checkpoint)),
            (workspace.report, b""),
        ):
            _write(path, data)
            if account is not None and foreign:
                os.chown(path, account.pw_uid, account.pw_gid)
        os.close(workspace.open_output())
        return workspace

    def describe(self, run: str, attempt: int, about: About) -> None:
        """Write this down instead of what may be there; OSError when the disk does not take it."""
        described = {
            "log_limit": about.log_limit,
            "sources": {name: asdict(source) for name, source in about.sources.items()},
        }
        path = self.of(run, attempt).about
        path.unlink(missing_ok=True)
        _write(path, json.dumps(described).encode())

    def about(self, run: str, attempt: int) -> About:
        """What was written when the attempt was prepared."""
        try:
            found = json.loads(self.of(run, attempt).about.read_bytes())
            sources = {name: Secret(**source) for name, source in found["sources"].items()}
            return About(int(found["log_limit"]), sources)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return About()

    def remove(self, run: str, attempt: int) -> None:
        """Whatever is there of the attempt; no error if there is nothing."""
        workspace = self.of(run, attempt)
        try:
            for path in workspace.files:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)
            os.rmdir(workspace.directory)
        except OSError:
            shutil.rmtree(workspace.directory, ignore_errors=True)
        with contextlib.suppress(OSError):
            # Another attempt of the run may have files there.
            os.rmdir(workspace.directory.parent)

    def present(self) -> Iterable[tuple[str, int]]:
        """(run, attempt) of everything on disk, by run (oldest first) and attempt."""
        for run in sorted(_names(self._root)):
            attempts = sorted(int(name) for name in _names(self._root / run) if name.isdecimal())
            yield from ((run, attempt) for attempt in attempts)

    def _make_room(self, workspace: Workspace, mode: int) -> None:
        """The directory of an attempt, fresh, and those above it, which others may be removing at the same time."""
        if mode != 0o700:
            _make(self._root.parent, mode)
            _make(self._root, mode)
        for _try in range(3):
            try:
                _make(workspace.directory.parent, mode)
                _make_anew(workspace.directory, mode)
                return
            except FileNotFoundError:
                _make(self._root, mode)
        _make_anew(workspace.directory, mode)


def _make(directory: Path, mode: int) -> None:
    with contextlib.suppress(FileExistsError):
        os.mkdir(directory, mode)
    _open_up(directory, mode)


def _make_anew(directory: Path, mode: int) -> None:
    try:
        os.mkdir(directory, mode)
    except FileExistsError:
        shutil.rmtree(directory)
        os.mkdir(directory, mode)
    _open_up(directory, mode)


def _open_up(directory: Path, mode: int) -> None:
    """A job with a user of its own must be able to pass through where others need not, whatever the umask says."""
    if mode & 0o011 and not directory.stat().st_mode & 0o011:
        os.chmod(directory, mode)


def _names(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _write(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
    finally:
        os.close(descriptor)
