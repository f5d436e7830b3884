"""`python -m tests.crash`: the long run of what the suite does in short."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.crash.campaign import campaign
from tests.crash.nemesis import FAULTS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--how", choices=sorted(FAULTS), action="append")
    parser.add_argument("--database", default="", help="postgresql:// URL of an empty database (default: SQLite)")
    parser.add_argument("--lease", default="5s")
    asked = parser.parse_args()
    how = asked.how or ["daemon"]
    settings = {"SCHEDULER_LEASE": asked.lease} if asked.database else {}
    folder = Path(tempfile.mkdtemp(prefix="schedulerd-crash-"))
    begun = time.monotonic()
    faults = [how[number % len(how)] for number in range(asked.kills)]
    verdict, _ = campaign(folder, faults=faults, seed=asked.seed, jobs=asked.jobs, url=asked.database, **settings)
    for name, figure in sorted(verdict.figures.items()):
        print(f"{name:20} {figure:g}")
    print(f"{len(faults)} faults ({', '.join(how)}), seed {asked.seed}, {time.monotonic() - begun:.0f} s, in {folder}")
    for problem in verdict.problems[:50]:
        print(f"PROBLEM {problem}")
    print("clean" if verdict.clean else f"{len(verdict.problems)} problems")
    return 0 if verdict.clean else 1


if __name__ == "__main__":
    sys.exit(main())
