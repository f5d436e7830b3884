"""The database: all SQL of the product, on SQLite and PostgreSQL alike."""
