from __future__ import annotations

from tests.databases import place, postgres_database, postgres_place, postgres_server, sqlite_place, sqlite_template

__all__ = ["place", "postgres_database", "postgres_place", "postgres_server", "sqlite_place", "sqlite_template"]
