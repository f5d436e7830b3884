"""How long the long tests are: short by default, at full length with TESTS_LONG=1."""

from __future__ import annotations

import os

LONG = os.environ.get("TESTS_LONG", "") not in ("", "0")
