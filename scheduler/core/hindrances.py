"""What the detail of a missed occurrence says when it is known why nothing was planned: readers need no guess then."""

from __future__ import annotations

RESTORED = "the ledger was restored from a backup: it may have run, or not"
NOT_PLANNED = "not planned from"


def is_explained(detail: str) -> bool:
    """The detail itself tells why, so that the presence of daemons has nothing to add."""
    return detail == RESTORED or NOT_PLANNED in detail
