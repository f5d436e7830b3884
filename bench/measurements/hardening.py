"""How much a compromised daemon could do, as `systemd-analyze security` scores the unit file (10 is the worst)."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from bench.measurement import Bar, Figures, Row
from bench.peers.install import HOME, installed
from bench.peers.peer import NotMeasured
from bench.session import Session

ORDER = 14
TITLE = "Exposure of the systemd unit, by `systemd-analyze security`"
BARS = (Bar("schedulerd", "exposure", most=1.5),)
UNIT = Path(__file__).parent.parent.parent / "systemd" / "schedulerd.service"


def run(session: Session) -> Iterator[Row]:
    yield session.row("schedulerd", lambda: measure(UNIT))
    yield from session.theirs(("Debian cron",), lambda name: measure_cron())


def measure_cron() -> Figures:
    if reason := installed("cron"):
        raise NotMeasured(reason)
    return measure(HOME / "debian" / "lib" / "systemd" / "system" / "cron.service")


def measure(unit: Path) -> Figures:
    if not unit.exists():
        raise NotMeasured(f"there is no {unit.name} here")
    if shutil.which("systemd-analyze") is None:
        raise NotMeasured("there is no systemd-analyze here")
    command = ["systemd-analyze", "security", "--offline=true", "--no-pager", str(unit)]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"Overall exposure level for \S+: ([\d.]+)", said.stdout)
    if found is None:
        raise NotMeasured(f"systemd-analyze does not say: {said.stderr.strip()[-200:]}")
    return {"exposure": float(found[1])}
