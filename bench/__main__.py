"""`python -m bench`: measures, and writes `.results/latest.md` and `.results/latest.json` (the newest of each)."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from pathlib import Path

from bench import machine
from bench.measurement import Measurement, Row, discover, judge
from bench.peers.install import prepare
from bench.report import as_json, markdown
from bench.results import FOLDER, Result, load, version
from bench.session import Session


def main() -> int:
    """Exit status 1 if a bar was missed or one of our own figures could not be taken."""
    known = discover()
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("only", nargs="*", metavar="NAME", help=f"of {', '.join(known)} (default: all)")
    parser.add_argument("--tiny", action="store_true", help="as few of everything as show that it works")
    parser.add_argument("--ours", action="store_true", help="leave the peers out")
    parser.add_argument("--profile", action="store_true", help="sample the daemons with py-spy while they are measured")
    parser.add_argument(
        "--disk", type=Path, default=Path("/tmp"), metavar="FOLDER", help="where everything keeps its files (/tmp)"
    )
    asked = parser.parse_args()
    if unknown := [name for name in asked.only if name not in known]:
        parser.error(f"there is no measurement named {', '.join(unknown)}; there are {', '.join(known)}")
    # So that everything that was started ends with us.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if not asked.ours or asked.profile:
        prepare()
    chosen = [known[name] for name in known if not asked.only or name in asked.only]
    full = not asked.tiny
    good = True
    with Session(full=full, peers=not asked.ours, profile=asked.profile, disk=asked.disk) as session:
        described, limits, measured = machine.describe(session), machine.limits(session), version()
        for measurement in chosen:
            rows = _measure(session, measurement)
            Result(measurement, described, limits, measured, full, rows).save()
            good = good and _good(measurement, rows, full)
    results = load(known, full)
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "latest.md").write_text("# How fast\n\n" + markdown(results))
    (FOLDER / "latest.json").write_text(json.dumps(as_json(results), indent=1) + "\n")
    print(markdown([one for one in results if one.measurement in chosen]))
    print(f"all measurements: {FOLDER / 'latest.md'}", file=sys.stderr)
    return 0 if good else 1


def _measure(session: Session, measurement: Measurement) -> list[Row]:
    print(f"{time.strftime('%H:%M:%S')} {measurement.name}: {measurement.title}", file=sys.stderr, flush=True)
    session.measurement = measurement.name
    return list(measurement.run(session))


def _good(measurement: Measurement, rows: list[Row], full: bool) -> bool:
    if any(row.failed for row in rows if row.subject.startswith("schedulerd")):
        return False
    return not full or all(verdict.met is not False for verdict in judge(measurement.bars, rows))


if __name__ == "__main__":
    sys.exit(main())
