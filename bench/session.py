"""One run of the bench: its size, its scratch files, its servers, and how a subject becomes a row."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.measurement import Figures, Row
from bench.peers.peer import NotMeasured
from bench.profile import Profile
from bench.tools import services
from bench.tools.daemon import Daemon
from bench.tools.pace import pace
from bench.tools.processes import Others
from bench.tools.stamps import shell_program, stamp_program

DATABASES = ("SQLite", "PostgreSQL")


class Session:
    """Use it as a context; everything that it started ends with it."""

    def __init__(
        self, *, full: bool = True, peers: bool = True, profile: bool = False, disk: Path = Path("/tmp")
    ) -> None:
        self.full = full
        self.peers = peers
        self.disk = disk
        """Where everything that is measured keeps its files; the path is short, for there are sockets among them."""
        self._profile = profile
        self._stack = ExitStack()
        self._servers: dict[str, str] = {}
        self._folders = 0
        self.measurement = ""
        """What is being measured now: names the profiles."""

    def __enter__(self) -> Session:
        self._home = Path(tempfile.mkdtemp(prefix="bench-", dir=self.disk))
        # Debian's cron runs as another user would: its child must reach the folder.
        self._home.chmod(0o755)
        self._stack.callback(shutil.rmtree, self._home, ignore_errors=True)
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def size(self, full: int, tiny: int) -> int:
        """How many of something: as the bar says, or as few as show that the measurement works."""
        return full if self.full else tiny

    def folder(self) -> Path:
        """A fresh one."""
        self._folders += 1
        folder = self._home / str(self._folders)
        folder.mkdir()
        return folder

    def drop(self, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)

    @property
    def child(self) -> Path:
        """The program that stamps its own start."""
        return stamp_program(self._home)

    @property
    def shell_child(self) -> Path:
        """The same as a shell script."""
        return shell_program(self._home)

    def server(self, kind: str) -> str:
        """The URL of the PostgreSQL or Redis server of this session, started when it is first needed."""
        if kind not in self._servers:
            start = services.postgresql(self.disk) if kind == "postgresql" else services.redis()
            self._servers[kind] = self._stack.enter_context(start)
        return self._servers[kind]

    @contextmanager
    def service(self, kind: str) -> Iterator[str]:
        """An empty database of that server (Redis: the emptied server)."""
        if kind == "postgresql":
            with services.database(self.server(kind)) as url:
                yield url
        else:
            services.empty_redis(self.server(kind))
            yield self.server(kind)

    @contextmanager
    def daemon(self, text: str, database: str = "SQLite", *, start: bool = True, **settings: str) -> Iterator[Daemon]:
        """A daemon with that jobs.yaml on an empty database; it is stopped at the end."""
        with ExitStack() as stack:
            url = stack.enter_context(self.service("postgresql")) if database == "PostgreSQL" else ""
            folder = self.folder()
            stack.callback(self.drop, folder)
            daemon = Daemon(folder, text, url, **settings)
            stack.callback(daemon.stop)
            if start:
                daemon.start()
                stack.enter_context(self.profiled(daemon, database))
            yield daemon

    @contextmanager
    def profiled(self, daemon: Daemon, what: str) -> Iterator[None]:
        """With --profile: where this daemon's time goes from now on."""
        if not self._profile:
            yield
            return
        with Profile(daemon.pid, f"{self.measurement}-{what}"):
            yield

    def row(self, subject: str, measure: Callable[[], Figures | Row]) -> Row:
        """Its figures; a subject that cannot be measured is a row that says why."""
        before, others = pace(), Others()
        try:
            made, used = measure(), others.cpus()
            row = made if isinstance(made, Row) else Row(subject, made, others=used, pace=(before + pace()) / 2)
        except NotMeasured as error:
            row = Row(subject, failed=str(error))
        except Exception as error:
            row = Row(subject, failed=f"{type(error).__name__}: {error}")
        return self.shown(row)

    def shown(self, row: Row) -> Row:
        """Tells the person who waits."""
        figures = row.failed or ", ".join(f"{name} {value:.4g}" for name, value in row.figures.items())
        print(f"{time.strftime('%H:%M:%S')}   {row.subject}: {figures}", file=sys.stderr, flush=True)
        return row

    def ours(self, measure: Callable[[str], Figures | Row]) -> Iterator[Row]:
        """A row of the product per database."""
        for database in DATABASES:
            yield self.row(product(database), lambda database=database: measure(database))  # type: ignore[misc]

    def theirs(self, names: tuple[str, ...], measure: Callable[[str], Figures | Row]) -> Iterator[Row]:
        """A row per peer; none if peers are left out."""
        for name in names if self.peers else ():
            yield self.row(name, lambda name=name: measure(name))  # type: ignore[misc]


def product(database: str = "SQLite") -> str:
    return f"schedulerd, {database}"
