"""`schedctl exec`: a command runs anywhere, and a daemon hears how it went."""

from __future__ import annotations

import threading
import time
import uuid

import click

from scheduler.cli.surface import Surface
from scheduler.cli.teller import Ping, Teller
from scheduler.cli.verb import verb
from scheduler.cli.wrapped import Ended, Wrapped
from scheduler.core.errors import SchedulerError, Unavailable

TRY = 5.0
"""Seconds that one try may take."""
AGAIN = (1.0, 2.0, 4.0)
"""Seconds between the tries."""
LONGEST = 20.0
"""Seconds after the end of the command in which its end is told or given up."""
TAIL = 9_900
"""Bytes of output that are told, before the line that says how many were left out."""


@verb(
    "schedctl exec backup -- /usr/local/bin/backup --all",
    "schedctl exec -v backup -- sh -c 'pg_dump shop | gzip > /backup/shop.gz'",
)
@click.option("-v", "--verbose", is_flag=True, help="Say what was told, and what could not be.")
@click.argument("job")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, required=True)
def execute(surface: Surface, verbose: bool, job: str, command: tuple[str, ...]) -> int:
    """Runs COMMAND as if it had been started directly, tells the daemon its start, its end, its exit code and its last
    lines as a run of JOB (`external: true`), and exits with its code (128+n for signal n).

    Whether the daemon can be reached changes nothing of that: then a line on stderr says so, after at most 20s. Set
    SCHEDCTL_URL and SCHEDCTL_TOKEN_FILE (a token of role ping)."""
    words = command[1:] if command[0] == "--" else command
    if not words:
        raise click.UsageError("what is to be run? schedctl exec JOB -- COMMAND")
    report = _Report(surface, job, verbose)
    wrapped = Wrapped(words, surface.environ, TAIL)
    ended = wrapped.run(report.begin)
    if ended.error is not None:
        surface.say(f"schedctl exec: {ended.error}")
    report.end(ended)
    until = time.monotonic() + (TRY if wrapped.hurried else LONGEST)
    while not report.done.is_set() and time.monotonic() < until:
        if wrapped.asked_to_end(0.02):
            break
    report.close()
    return ended.code


execute.allow_interspersed_args = False  # What comes behind JOB is the command's, options too.


class _Report:
    """Both ends of a run, told in threads that nothing waits for longer than it may."""

    def __init__(self, surface: Surface, job: str, verbose: bool) -> None:
        self._surface = surface
        self._job = job
        self._verbose = verbose
        self._rid = str(uuid.uuid4())
        self._begun: float | None = None
        self._trouble = "the daemon has not answered in time"
        self._over = threading.Event()
        """The command has ended: its start need not be told any more."""
        self.done = threading.Event()
        """The end was told, or cannot be."""
        self._told = False

    def begin(self) -> None:
        self._begun = time.monotonic()
        self._thread(Ping(self._job, "start"), self._begun, last=False)

    def end(self, ended: Ended) -> None:
        self._over.set()
        body = ended.tail
        if ended.omitted:
            body = b"[... %d bytes left out ...]\n" % ended.omitted + body
        if ended.error is not None:
            body += f"schedctl exec: {ended.error}\n".encode("utf-8", "replace")
        query = {"took": round(ended.took, 3)}
        self._thread(Ping(self._job, str(ended.code), query, body), time.monotonic(), last=True)

    def close(self) -> None:
        """Nobody waits any longer. The first thing that a person must know is that nobody was told."""
        if not self._told:
            self._surface.say(
                f"schedctl exec: {self._job}: the daemon was not told how this run ended: {self._trouble}"
            )
        elif self._verbose:
            self._surface.say(f"schedctl exec: {self._job}: told how it ended")

    def _thread(self, ping: Ping, since: float, *, last: bool) -> None:
        threading.Thread(target=self._tell, args=(ping, since, last), name="report", daemon=True).start()

    def _tell(self, ping: Ping, since: float, last: bool) -> None:
        try:
            teller = Teller(self._surface.socket, self._surface.environ)
            self._try(teller, ping, since, last)
        except SchedulerError as error:
            self._note(error, last)
        except Exception as error:  # Whatever it is: the command and its code come first.
            self._trouble = f"{type(error).__name__}: {error}"
        if last:
            self.done.set()

    def _try(self, teller: Teller, ping: Ping, since: float, last: bool) -> None:
        for wait in (*AGAIN, None):
            if not last and self._over.is_set():
                return
            query = {**(ping.query or {}), "rid": self._rid, "ago": round(time.monotonic() - since, 3)}
            try:
                run = teller.tell(Ping(ping.job, ping.what, query, ping.body), TRY)
            except Unavailable as error:
                if wait is None:
                    raise
                self._note(error, last)
                if last:
                    time.sleep(wait)
                else:
                    self._over.wait(wait)
                continue
            if last:
                self._told = True
            elif self._verbose:
                self._surface.say(f"schedctl exec: {self._job}: run {run}")
            return

    def _note(self, error: SchedulerError, last: bool) -> None:
        if last:
            self._trouble = str(error)
        elif self._verbose:
            self._surface.say(f"schedctl exec: {self._job}: the start was not told: {error}")
