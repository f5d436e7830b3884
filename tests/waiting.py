"""Who waits for a lock on the server."""

from __future__ import annotations

import psycopg

from tests.databases import Place


def waiting(place: Place) -> int:
    """How many transactions of this database wait for a lock."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    with psycopg.connect(place.url) as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return int(row[0])
