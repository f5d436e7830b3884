"""The attempts of this node as the rest of the daemon reads them: output and reports, before they are shipped."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from scheduler.core.counted import counted
from scheduler.core.errors import InvalidInput
from scheduler.core.job import Job
from scheduler.core.masking import Masks
from scheduler.core.model import Json, Output, Run
from scheduler.core.requests import Report
from scheduler.core.secret import Secret
from scheduler.executors.attempts.output import OutputFile
from scheduler.executors.attempts.reports import Reported, ReportReader
from scheduler.executors.attempts.secrets import read_secrets, to_hide
from scheduler.executors.attempts.workspace import About, Workspace, Workspaces, remove

_log = logging.getLogger(__name__)

Key = tuple[str, int]


class AttemptRecord:
    """One attempt: its files, what hides its secrets, and how far it has been read. Any thread may use it."""

    def __init__(
        self,
        run: str,
        attempt: int,
        fence: int,
        workspace: Workspace,
        log_limit: int,
        secrets: Iterable[str],
        *,
        described: bool = True,
    ) -> None:
        self.run = run
        self.attempt = attempt
        self.workspace = workspace
        self.complete = False
        self.files = frozenset(workspace.files if described else workspace.files[:-1])
        """Those that may lie on disk."""
        self._fence = fence
        self._log_limit = log_limit
        self._secrets = set(secrets)
        self._reader = ReportReader(workspace.report)
        self._lock = threading.Lock()
        self._unread = False
        self._apply()

    def wrote_nothing(self) -> None:
        """Whoever made its files has removed them: nothing was written to them."""
        self.files &= {self.workspace.about}

    @property
    def silent(self) -> bool:
        """Nothing was written, as whoever made its files has told."""
        return self.files <= {self.workspace.about}

    def hide(self, secrets: Iterable[str]) -> None:
        """These values must not be shown either."""
        with self._lock:
            self.files |= {self.workspace.about}
            self._secrets.update(secrets)
            self._apply()

    def masked(self, text: str) -> str:
        return self.masks.text(text)

    def output(self) -> Output:
        with self._lock:
            if self.workspace.output not in self.files:
                return Output(self.run, self.attempt, b"", b"", 0, self.complete)
            if not self.complete:
                self._output.trim()
            excerpt = self._output.read(complete=self.complete)
        return Output(self.run, self.attempt, excerpt.head, excerpt.tail, excerpt.omitted, self.complete)

    def report(self) -> Report | None:
        """All that it has said so far, if any of it is new since the last call.

        Trims the output as well, because this is called every few seconds, whether anybody looks at that or not."""
        with self._lock:
            self._output.trim()
            if not self.complete and self._reader.read():
                self._unread = True
            if not self._unread:
                return None
            self._unread = False
        return self.words()

    def words(self) -> Report:
        """All that it has said so far."""
        with self._lock:
            said = self._said()
        return Report(self.run, self._fence, said.progress, said.message, said.result, said.checkpoint)

    def finish(self) -> Json:
        """Nothing will be written any more: read what is left, note what was ignored; the result that it reported."""
        with self._lock:
            if not self.complete:
                if self.workspace.report in self.files and self._reader.read(complete=True):
                    self._unread = True
                self.complete = True
                if self._reader.ignored:
                    lines = counted(self._reader.ignored, "ignored line")
                    self.workspace.note(f"{lines} of $SCHED_REPORT_FILE; the first: {self._reader.first_problem}")
            return self._said().result

    def _said(self) -> Reported:
        said = self._reader.reported
        message = None if said.message is None else self.masks.text(said.message)
        return Reported(said.progress, message, self.masks.value(said.result), self.masks.value(said.checkpoint))

    def _apply(self) -> None:
        self.masks = Masks(self._secrets)
        self._output = OutputFile(self.workspace.output, self._log_limit, self.masks)


class AttemptRecords:
    """Implements core.execution.Attempts for the attempts below one state directory.

    Attempts that a former daemon left behind are read as well; their secrets are read again to be masked, from where
    they came. What can no longer be read cannot be masked, so then the output is withheld.
    """

    def __init__(self, state_dir: Path, environ: Mapping[str, str]) -> None:
        self.workspaces = Workspaces(state_dir)
        self._environ = environ
        self._records: dict[Key, AttemptRecord] = {}
        self._lock = threading.Lock()
        self._forgotten: Callable[[str, int], None] = lambda run, attempt: None
        self._left_to_workers: Collection[str] = ()
        # The last reading of files may wait for a disk; those who bring news of children and workers must not.
        self._finishing = ThreadPoolExecutor(4, thread_name_prefix="attempts")

    def begin(self, run: Run, job: Job, secrets: Mapping[str, str]) -> Workspace:
        """The files of the attempt `run.attempt`, unless its worker makes them. OSError when the disk does not take
        them, KeyError for an unknown user."""
        about = About(job.log_limit, job.child.secrets)
        hidden = to_hide(job.child.secrets, secrets)
        if job.action.kind in self._left_to_workers:
            workspace = self.workspaces.reserve(run, about)
        else:
            workspace = self.workspaces.create(run, about, job.child.user)
        described = about != About()
        record = AttemptRecord(run.id, run.attempt, run.fence, workspace, about.log_limit, hidden, described=described)
        with self._lock:
            self._records[run.id, run.attempt] = record
        return workspace

    def of(self, run: str, attempt: int) -> AttemptRecord:
        """The record of an attempt, also of one that a former daemon started; what lies nowhere has empty output."""
        with self._lock:
            record = self._records.get((run, attempt))
        return self._find(run, attempt) if record is None else record

    def finish_later(self, record: AttemptRecord, then: Callable[[Json], None], note: str = "") -> None:
        """`note` as the last line of its output, `record.finish`, `then` with the result: in another thread, unless
        nothing was written and nothing is to be."""
        if record.silent and not note:
            _finish(record, then, note)
        else:
            self._finishing.submit(_finish, record, then, note)

    def later(self, call: Callable[[], None]) -> None:
        """In another thread, one of those that may wait for a disk."""
        self._finishing.submit(call)

    def leave_to_workers(self, kinds: Collection[str]) -> None:
        """Attempts of these kinds of actions get their files from the worker that carries them out, as far as they need
        any: a worker waits for the disk alone."""
        self._left_to_workers = kinds

    def when_forgotten(self, call: Callable[[str, int], None]) -> None:
        """`call` is told (run, attempt) of everything that is forgotten, which is when it is in the database."""
        self._forgotten = call

    def hide(self, record: AttemptRecord, secrets: Mapping[str, Secret], values: Mapping[str, str]) -> None:
        """Further secrets of an attempt that must not be shown; OSError when the disk does not take a note of it."""
        record.hide(to_hide(secrets, values))
        about = self.workspaces.about(record.run, record.attempt)
        self.workspaces.describe(record.run, record.attempt, replace(about, sources={**about.sources, **secrets}))

    def outputs(self, runs: Collection[Key]) -> list[Output]:
        return [record.output() for record in self._not_silent(runs)]

    def reports(self) -> list[Report]:
        with self._lock:
            records = list(self._records.values())
        return [report for record in records if (report := record.report()) is not None]

    def last_words(self, runs: Collection[Key]) -> list[Report]:
        words = [record.words() for record in self._not_silent(runs)]
        return [one for one in words if (one.progress, one.message, one.result, one.checkpoint) != (None,) * 4]

    def forget(self, runs: Collection[Key]) -> None:
        for run, attempt in runs:
            with self._lock:
                record = self._records.pop((run, attempt), None)
            remove(self.workspaces.of(run, attempt).files if record is None else record.files)
            self._forgotten(run, attempt)

    def left_behind(self) -> list[Key]:
        present = list(self.workspaces.present())
        with self._lock:
            return [key for key in present if key not in self._records]

    def close(self) -> None:
        """Waits for what is being finished; nothing is finished later any more."""
        self._finishing.shutdown()

    def _not_silent(self, runs: Collection[Key]) -> Iterator[AttemptRecord]:
        for run, attempt in runs:
            record = self.of(run, attempt)
            if not record.silent:
                yield record

    def _find(self, run: str, attempt: int) -> AttemptRecord:
        workspace = self.workspaces.of(run, attempt)
        about = self.workspaces.about(run, attempt)
        try:
            secrets = to_hide(about.sources, read_secrets(about.sources, self._environ))
        except InvalidInput as error:
            return _Withheld(run, attempt, workspace, f"{error.reason}, so it cannot be masked")
        record = AttemptRecord(run, attempt, 0, workspace, about.log_limit, secrets)
        record.finish()
        return record


def _finish(record: AttemptRecord, then: Callable[[Json], None], note: str) -> None:
    try:
        if note:
            record.workspace.note(note)
        result = record.finish()
    except Exception:
        _log.exception("the files of run %s cannot be read", record.run)
        result = None
    then(result)


class _Withheld(AttemptRecord):
    """Output that may contain a secret which this daemon cannot recognise."""

    def __init__(self, run: str, attempt: int, workspace: Workspace, reason: str) -> None:
        super().__init__(run, attempt, 0, workspace, 1, ())
        self.complete = True
        self._text = f"[schedulerd] the output is withheld: {reason}\n"

    def output(self) -> Output:
        return Output(self.run, self.attempt, self._text.encode(), b"", 0, True)

    def finish(self) -> Json:
        return None
