"""`python -m model`: runs every check and says what it found; exit 1 if one is not as it must be, 3 without spin."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from model.check import CHECKS, missing, run


def main() -> int:
    absent = missing()
    if absent:
        print(f"the model was NOT checked: there is no {' and no '.join(absent)}; apt-get install spin gcc libc6-dev")
        return 3
    bad = 0
    for check in CHECKS:
        begun = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            found = run(check, Path(folder))
        bad += found.violated != check.violates
        mark = "✓" if found.violated == check.violates else "✗"
        what = found.violated or f"holds in all {found.states:,} states"
        print(f"{mark} {check.name:<32} {what} ({time.monotonic() - begun:.1f} s)", flush=True)
    if bad:
        print(f"{bad} of {len(CHECKS)} are not as they must be")
    return 1 if bad else 0


sys.exit(main())
