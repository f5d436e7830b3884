"""`python -m tests.chaos`: the long run of what the suite does in short."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from scheduler.core.durations import parse_duration
from tests.chaos.campaign import campaign
from tests.chaos.plan import BY_NAME, plan
from tests.chaos.report import report


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos")
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--lease", default="5s")
    parser.add_argument(
        "--faults", default="", help=f"some of them, with commas between (default: all): {', '.join(BY_NAME)}"
    )
    parser.add_argument("--plan", action="store_true", help="only print what would be done")
    asked = parser.parse_args()
    names = [name for name in asked.faults.split(",") if name]
    if unknown := [name for name in names if name not in BY_NAME]:
        parser.error(f"no such fault: {', '.join(unknown)}; there are {', '.join(BY_NAME)}")
    nodes = [f"n{number}" for number in range(asked.nodes)]
    lease, seconds = parse_duration(asked.lease).total_seconds(), 60 * asked.minutes
    faults = plan(asked.seed, nodes, seconds, lease, names)
    print(f"seed {asked.seed}: {len(faults)} faults in {seconds:.0f} s on {asked.nodes} nodes, lease {asked.lease}")
    for fault in faults:
        print(fault)
    if asked.plan:
        return 0
    folder = Path(tempfile.mkdtemp(prefix="schedulerd-chaos-"))
    begun = time.monotonic()
    verdict, history = campaign(
        folder, faults, nodes=nodes, seconds=seconds, seed=asked.seed, lease=lease, jobs=asked.jobs
    )
    for line in report(history, verdict):
        print(line)
    print(f"seed {asked.seed}, {time.monotonic() - begun:.0f} s, in {folder}")
    return 0 if verdict.clean else 1


if __name__ == "__main__":
    sys.exit(main())
