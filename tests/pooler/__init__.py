"""Nodes behind a real PgBouncer in transaction mode."""
