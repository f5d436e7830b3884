"""The files of one attempt: `<state>/runs/<run id>/<attempt>/`."""

from __future__ import annotations

import errno
import json
import os
import pwd
import shutil
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from scheduler.core.model import Json, Secret
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
        """What a later daemon needs to know about what it finds here."""
        return self.directory / "about.json"

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
    """`sources` say where the secrets of the attempt came from, so that a later daemon can mask them, too."""

    fence: int
    log_limit: int
    sources: tuple[Secret, ...] = ()


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
        OSError when the disk does not take it, KeyError for an unknown user."""
        account = None if user is None else pwd.getpwnam(user)
        mode = 0o700 if account is None or account.pw_uid == os.geteuid() else 0o711
        workspace = self.of(run, attempt)
        if mode & 0o011:
            _make(self._root.parent, mode)
        for directory in (self._root, workspace.directory.parent):
            _make(directory, mode)
        try:
            _make_anew(workspace.directory, mode)
        except FileNotFoundError:
            # The last attempt of the same run was removed in between, and the empty directory with it.
            _make(workspace.directory.parent, mode)
            _make_anew(workspace.directory, mode)
        described = {"fence": about.fence, "log_limit": about.log_limit, "sources": [asdict(s) for s in about.sources]}
        _write(workspace.about, json.dumps(described).encode())
        for path, data in (
            (workspace.payload, to_json(payload)),
            (workspace.checkpoint, to_json(checkpoint)),
            (workspace.report, b""),
        ):
            _write(path, data)
            if account is not None and account.pw_uid != os.geteuid():
                os.chown(path, account.pw_uid, account.pw_gid)
        os.close(workspace.open_output())
        return workspace

    def about(self, run: str, attempt: int) -> About | None:
        """What was written when the attempt was prepared; None if there is nothing readable."""
        try:
            found = json.loads(self.of(run, attempt).about.read_bytes())
            sources = tuple(Secret(**source) for source in found["sources"])
            return About(int(found["fence"]), int(found["log_limit"]), sources)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def remove(self, run: str, attempt: int) -> None:
        """Whatever is there of the attempt; no error if there is nothing."""
        directory = self.of(run, attempt).directory
        shutil.rmtree(directory, ignore_errors=True)
        try:
            os.rmdir(directory.parent)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):
                raise

    def present(self) -> Iterable[tuple[str, int]]:
        """(run, attempt) of everything on disk, by run (oldest first) and attempt."""
        for run in sorted(_names(self._root)):
            attempts = sorted(int(name) for name in _names(self._root / run) if name.isdecimal())
            yield from ((run, attempt) for attempt in attempts)


def _make(directory: Path, mode: int) -> None:
    try:
        os.mkdir(directory, mode)
    except FileExistsError:
        # A job with a user of its own must be able to pass through where others need not.
        if mode & 0o011 and not directory.stat().st_mode & 0o011:
            os.chmod(directory, mode)


def _make_anew(directory: Path, mode: int) -> None:
    try:
        os.mkdir(directory, mode)
    except FileExistsError:
        shutil.rmtree(directory)
        os.mkdir(directory, mode)


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
