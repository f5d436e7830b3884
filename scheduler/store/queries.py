from __future__ import annotations

from dataclasses import dataclass

from scheduler.store.session import Session


@dataclass(frozen=True, slots=True)
class SqlQueries:
    session: Session
