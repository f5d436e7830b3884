"""Parameters of everything that comes in pages."""

from __future__ import annotations

from scheduler.core import queries
from scheduler.web.parameters import Number, Text

LIMIT = Number("limit", "Entries on a page.", 50, 1, 1000)
CURSOR = Text("cursor", "The `cursor` of the page before.", queries.CURSOR)
