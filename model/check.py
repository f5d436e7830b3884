"""Runs spin over `leases.pml`: the protocol as it is, and with one line of it left out."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

MODEL = Path(__file__).with_name("leases.pml")
PATIENCE = 120.0
"""Seconds for one step of one check; on a quiet machine all together take a fraction of that."""

ONE_HOLDER = "two holders of a lock at once whose children both live"
OUTLIVED = "a child outlives its lease"
STALE = "a stale holder's settlement changes something"
FENCES = "a fence does not grow"
STAYS = "what a dead node ran is never taken over"

_SIGNS = {
    "assertion violated (alive==1)": ONE_HOLDER,
    "assertion violated ( !(((child[0]": OUTLIVED,
    "assertion violated (((run_node[r]==node)": STALE,
    "assertion violated (fence>lock_fence)": FENCES,
    "acceptance cycle": STAYS,
}


@dataclass(frozen=True, slots=True)
class Check:
    """`defines`: what the model is compiled with. `violates`: what must be found; None: nothing. `live`: whether what
    must happen is looked at, too, and not only what must not."""

    name: str
    defines: tuple[str, ...] = ()
    violates: str | None = None
    live: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    violated: str | None
    states: int


_TWO_AT_ONCE = ("ATTEMPTS=2", "KILLS=0", "IDS=2")
_SHARED = ("RUNS=2", "IDS=2", "FENCES=2")
_FOR_GOOD = ("IDS=2",)

CHECKS = (
    Check("the protocol"),
    Check("two attempts of one node", _TWO_AT_ONCE),
    Check("two runs of one lock", _SHARED),
    Check("taken over", _FOR_GOOD, live=True),
    Check("NO_TRUST_CHECK_AT_START", violates=OUTLIVED),
    Check("NO_NODE_CHECK_AT_START", violates=ONE_HOLDER),
    Check("TAKE_OVER_BEFORE_THE_LEASE", violates=OUTLIVED),
    Check("DECLARE_WITHOUT_THE_BEAT", violates=OUTLIVED),
    Check("SINCE_BEFORE_THE_READ", violates=OUTLIVED),
    Check("TRUST_FROM_THE_ANSWER", violates=OUTLIVED),
    Check("TERM_WITHOUT_KILL", violates=OUTLIVED),
    Check("SUPERVISOR_FROZEN", violates=OUTLIVED),
    Check("SUCCEED_WITHOUT_THE_LOCK", violates=ONE_HOLDER),
    Check("SETTLE_WITHOUT_NODE_AND_FENCE", violates=STALE),
    Check("SETTLE_WITHOUT_FENCE", _TWO_AT_ONCE, violates=STALE),
    Check("FENCE_OF_THE_RUN", _SHARED, violates=FENCES),
    Check("NOBODY_WATCHES", _FOR_GOOD, violates=STAYS, live=True),
    Check("NOBODY_CLOSES_ORPHANS", _FOR_GOOD, violates=STAYS, live=True),
)
"""A name in capitals is a mutation: the define that leaves a line of the protocol out."""


def missing() -> list[str]:
    """The programs that a check needs and that are not here."""
    return [program for program in ("spin", "gcc") if shutil.which(program) is None]


def run(check: Check, folder: Path) -> Found:
    """Searches the whole state space, in `folder`. RuntimeError if spin could not."""
    mutation = [check.name] if check.name.isupper() else []
    _do(["spin", *(f"-D{one}" for one in (*mutation, *check.defines)), "-a", str(MODEL)], folder)
    kind = ["-DNFAIR=3"] if check.live else ["-DSAFETY", "-DNOCLAIM"]
    _do(["gcc", "-O1", "-w", "-DCOLLAPSE", *kind, "-o", "pan", "pan.c"], folder)
    said = _do(["./pan", "-m100000", *(["-a", "-f"] if check.live else [])], folder)
    states = re.search(r"(\d+) states, stored", said)
    errors = re.search(r"errors: (\d+)", said)
    if states is None or errors is None or "max search depth too small" in said:
        raise RuntimeError(f"{check.name}: the search did not come to its end\n{said}")
    violated = next((meaning for sign, meaning in _SIGNS.items() if sign in said), None)
    if (violated is None) != (errors[1] == "0"):
        raise RuntimeError(f"{check.name}: an error that has no name\n{said}")
    return Found(violated, int(states[1]))


def _do(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout
