"""`python -m tests.chaos`: the long run of what the suite does in short."""

from __future__ import annotations

import argparse
import pickle
import signal
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from scheduler.core.durations import parse_duration
from tests.chaos.campaign import campaign
from tests.chaos.checker import check
from tests.chaos.peers import RIVALS, contest
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
    parser.add_argument("--peer", choices=sorted(RIVALS), help="break this instead, as far as the faults apply to it")
    parser.add_argument("--punctual", action="store_true", help="late starts are problems, too: for a quiet machine")
    parser.add_argument("--judge", type=Path, metavar="FOLDER", help="what an earlier campaign left there, once more")
    parser.add_argument("--plan", action="store_true", help="only print what would be done")
    asked = parser.parse_args()
    if asked.judge is not None:
        # What this program wrote itself; replaced, so that nothing comes with it that was computed then.
        history = replace(pickle.loads((asked.judge / "history").read_bytes()))
        verdict = check(history, punctual=asked.punctual)
        for line in report(history, verdict):
            print(line)
        return 0 if verdict.clean else 1
    names = [name for name in asked.faults.split(",") if name]
    if unknown := [name for name in names if name not in BY_NAME]:
        parser.error(f"no such fault: {', '.join(unknown)}; there are {', '.join(BY_NAME)}")
    rival = RIVALS.get(asked.peer)
    if rival is not None:
        asked.nodes = rival.places
        names = [name for name in rival.faults if not names or name in names]
    nodes = [f"n{number}" for number in range(asked.nodes)]
    lease, seconds = parse_duration(asked.lease).total_seconds(), 60 * asked.minutes
    faults = plan(asked.seed, nodes, seconds, lease, names)
    print(
        f"seed {asked.seed}: {len(faults)} faults in {seconds:.0f} s on {asked.nodes} nodes, lease {asked.lease}",
        flush=True,
    )
    for fault in faults:
        print(fault, flush=True)
    if asked.plan:
        return 0
    # So that nothing is left running where somebody loses patience.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    folder = Path(tempfile.mkdtemp(prefix="schedulerd-chaos-"))
    begun = time.monotonic()
    if rival is not None:
        folder.chmod(0o711)
        for line in contest(rival.name, folder, faults, seconds, asked.jobs):
            print(line)
        print(f"{rival.name}, seed {asked.seed}, {time.monotonic() - begun:.0f} s, in {folder}")
        return 0
    verdict, history = campaign(
        folder,
        faults,
        nodes=nodes,
        seconds=seconds,
        seed=asked.seed,
        lease=lease,
        jobs=asked.jobs,
        punctual=asked.punctual,
    )
    (folder / "history").write_bytes(pickle.dumps(history))
    for line in report(history, verdict):
        print(line)
    (folder / "problems").write_text("".join(f"{problem}\n" for problem in verdict.problems))
    print(f"seed {asked.seed}, {time.monotonic() - begun:.0f} s, in {folder}")
    return 0 if verdict.clean else 1


if __name__ == "__main__":
    sys.exit(main())
