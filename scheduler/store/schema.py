"""The schema is made and moved forward here, at start, by one daemon at a time.

Migrations only expand (new tables, new columns with a default, new indexes), so that the release before this one
runs on the schema of this one. The database itself records the oldest release that may run on it.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Column, Connection, MetaData, PrimaryKeyConstraint, String, Table, inspect, select
from sqlalchemy.schema import CreateIndex, CreateTable

from scheduler.core.errors import StartError
from scheduler.store import tables as t
from scheduler.store.dialects.base import Database

HEAD = "0013"
"""The newest revision that this release knows."""
OLDEST_RELEASE = "0.1.0"
"""The oldest release that may run on the schema of `HEAD`."""
OLDEST_RELEASE_KEY = "oldest release"

_REVISIONS = MetaData()
_REVISION = Table(
    "alembic_version",
    _REVISIONS,
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
"""As alembic makes it."""


def revision_of(connection: Connection) -> str | None:
    """The revision of the schema; None: there is no schema. StartError if what is there is another program's."""
    present = set(inspect(connection).get_table_names())
    _refuse_strangers(connection.dialect.name, present)
    if _REVISION.name not in present:
        return None
    found: str | None = connection.execute(select(_REVISION.c.version_num)).scalar()
    return found


def _refuse_strangers(kind: str, present: set[str]) -> None:
    """Tables of others may lie beside ours on PostgreSQL, if no name is wanted twice; a file holds one program's."""
    ours = {_REVISION.name, *t.metadata.tables}
    if t.installation.name in present or not present:
        return
    strange = sorted(present if kind == "sqlite" else present & ours)
    if strange:
        named = ", ".join(strange[:5]) + (" …" if len(strange) > 5 else "")
        raise StartError(
            f"this database is another program's: it has {named} and no table `{t.installation.name}` of schedulerd",
            hint="give schedulerd a database of its own in SCHEDULER_DATABASE_URL"
            + ("" if kind == "sqlite" else ", or a schema: append ?options=-csearch_path%3DNAME"),
        )


def ensure_schema(database: Database, release: str) -> None:
    """Brings the database to `HEAD`, or leaves a newer one as it is. StartError if a newer one excludes `release`."""
    with database.reading() as connection:
        revision = revision_of(connection)
        if revision is not None and revision >= HEAD:
            _check_release(connection, release)
            return
    with database.migrating() as connection:
        # somebody else may have done it while we waited
        revision = revision_of(connection)
        if revision is None or revision < HEAD:
            if revision is None:
                _make(connection)
            else:
                upgrade(connection)
            connection.execute(t.installation.delete().where(t.installation.c.key == OLDEST_RELEASE_KEY))
            connection.execute(t.installation.insert(), {"key": OLDEST_RELEASE_KEY, "value": OLDEST_RELEASE})


def _make(connection: Connection) -> None:
    """In an empty database, what all migrations together make; to run them there would only take time and memory."""
    for one in t.metadata.sorted_tables:
        connection.execute(CreateTable(one))
        for index in t.indexes_of(one):
            connection.execute(CreateIndex(index))
    _REVISIONS.create_all(connection)
    connection.execute(_REVISION.insert(), {"version_num": HEAD})


def upgrade(connection: Connection, target: str = "head") -> None:
    """Runs the migrations up to `target` inside the transaction of `connection`."""
    # only here: importing alembic costs more than everything else at an ordinary start
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")))
    config.attributes["connection"] = connection
    command.upgrade(config, target)


def _check_release(connection: Connection, release: str) -> None:
    query = select(t.installation.c.value).where(t.installation.c.key == OLDEST_RELEASE_KEY)
    oldest = connection.execute(query).scalar() or "0"
    if _number(release) < _number(oldest):
        raise StartError(
            f"this database needs schedulerd {oldest} or newer, this is {release}",
            hint="start the newer release, or restore a backup from before its first start",
        )


def _number(release: str) -> tuple[int, ...]:
    """`0.10.2.dev3` → (0, 10, 2)."""
    numbers = []
    for part in release.split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)
