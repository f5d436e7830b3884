"""Configurations that are or were in force, their queues, and named values of the installation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from sqlalchemy import bindparam, delete, func, select, text, update

from scheduler.core.job import Queue
from scheduler.core.model import Generation
from scheduler.core.schedule import SCHEDULE_CODE, TZDATA_VERSION
from scheduler.core.value_object import value_object
from scheduler.store import tables as t
from scheduler.store.rows import generation_of
from scheduler.store.session import Session

_NEWEST = select(func.max(t.generations.c.id))
_ADVISORY = 0x67656E  # any number that all releases share
ALWAYS = (Queue("default", concurrency=64), Queue("scans", concurrency=4))
"""Queues that exist even if nobody names them; a run whose queue is gone is served by `default`."""


@value_object
class SqlGenerations:
    session: Session

    def newest(self, *, lock: bool = False) -> Generation | None:
        """With `lock`, nobody else adds a generation until this transaction ends."""
        if lock:
            self._lock()
        row = self.session.rows(select(t.generations).order_by(t.generations.c.id.desc()).limit(1)).first()
        return None if row is None else generation_of(row)

    def _lock(self) -> None:
        if self.session.kind == "postgresql":
            self.session.connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY})

    def newest_id(self) -> int:
        """0 if there is none."""
        return self.session.rows(_NEWEST).scalar() or 0

    def hold(self) -> int:
        """`newest_id`, and nobody adds a generation until this transaction ends; others may hold it, too."""
        if self.session.kind == "postgresql":
            self.session.connection.execute(text("SELECT pg_advisory_xact_lock_shared(:key)"), {"key": _ADVISORY})
        return self.newest_id()

    def hold_at_once(self) -> int | None:
        """The same without waiting; None: somebody is about to add one."""
        if self.session.kind == "postgresql":
            taken = text("SELECT pg_try_advisory_xact_lock_shared(:key)")
            if not self.session.connection.execute(taken, {"key": _ADVISORY}).scalar():
                return None
        return self.newest_id()

    def get(self, number: int) -> Generation | None:
        row = self.session.rows(select(t.generations).where(t.generations.c.id == number)).first()
        return None if row is None else generation_of(row)

    def find(self, digest: str) -> Generation | None:
        """The newest generation with that hash."""
        query = select(t.generations).where(t.generations.c.hash == digest).order_by(t.generations.c.id.desc()).limit(1)
        row = self.session.rows(query).first()
        return None if row is None else generation_of(row)

    def add(self, digest: str, files: Mapping[str, str], now: datetime, author: str) -> Generation:
        """The next generation, with the zone database and the schedule code of this release."""
        self._lock()
        generation = Generation(self.newest_id() + 1, digest, dict(files), now, author, TZDATA_VERSION, SCHEDULE_CODE)
        self.session.write(
            t.generations.insert(),
            {
                "id": generation.id,
                "hash": digest,
                "files": generation.files,
                "created_at": now,
                "author": author,
                "tzdata": generation.tzdata,
                "schedule_code": generation.schedule_code,
            },
        )
        return generation

    def put_queues(self, queues: Iterable[Queue], now: datetime) -> None:
        """Makes the queue rows equal to these and the ones that always exist; tokens are kept (at most the burst)."""
        wanted = {queue.name: queue for queue in (*ALWAYS, *queues)}
        query = select(t.queues.c.name).order_by(t.queues.c.name).with_for_update()
        there = set(self.session.rows(query).scalars())
        self.session.write(
            update(t.queues).where(t.queues.c.name == bindparam("queue")),
            [
                {"queue": name, "concurrency": queue.concurrency, "rate": queue.rate, "burst": queue.burst}
                for name, queue in sorted(wanted.items())
                if name in there
            ],
        )
        self.session.write(update(t.queues).where(t.queues.c.tokens > t.queues.c.burst).values(tokens=t.queues.c.burst))
        self.session.write(
            self.session.insert(t.queues).on_conflict_do_nothing(),
            [
                {
                    "name": name,
                    "concurrency": queue.concurrency,
                    "rate": queue.rate,
                    "burst": queue.burst,
                    "tokens": float(queue.burst),
                    "refilled_at": now,
                }
                for name, queue in sorted(wanted.items())
                if name not in there
            ],
        )
        self.session.write(delete(t.queues).where(t.queues.c.name.not_in(wanted)))

    def value(self, key: str) -> str | None:
        """A named value of the installation: environment, oldest release, last clean audit, clock steps."""
        found: str | None = self.session.rows(
            select(t.installation.c.value).where(t.installation.c.key == key)
        ).scalar()
        return found

    def set_value(self, key: str, value: str) -> None:
        statement = self.session.insert(t.installation)
        self.session.write(
            statement.on_conflict_do_update(index_elements=["key"], set_={"value": statement.excluded.value}),
            {"key": key, "value": value},
        )

    def swap_value(self, key: str, old: str | None, new: str) -> bool:
        """Compare-and-set; `old` None: it must be absent."""
        if old is None:
            statement = self.session.insert(t.installation).on_conflict_do_nothing()
            return self.session.write(statement, {"key": key, "value": new}) == 1
        where = (t.installation.c.key == key, t.installation.c.value == old)
        return self.session.write(update(t.installation).where(*where).values(value=new)) == 1
