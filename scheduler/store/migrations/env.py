"""Run by alembic: migrations happen on the connection, and inside the transaction, of whoever asked for them."""

from __future__ import annotations

from alembic import context

from scheduler.store.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, transactional_ddl=False)
context.run_migrations()
