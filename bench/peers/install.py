"""Prepares the peers in `bench/.peers`, from `peers.txt`. Nothing is installed anywhere else, nothing needs root.

`python -m bench.peers.install` does it by hand; `make bench` does it when `peers.txt` or `peers.lock` has changed."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

HOME = Path(__file__).parent.parent / ".peers"
_LIST = Path(__file__).with_name("peers.txt")
_LOCK = Path(__file__).with_name("peers.lock")
"""Every distribution of the Python environment, as `pip freeze` writes it."""
_STATE = HOME / "state.json"
_AGAIN = "try python -m bench.peers.install"
_PATIENCE = 600
"""Seconds that one package may take."""


def installed(package: str) -> str:
    """Empty if that package of `peers.txt` is there, else why it is not."""
    reason: str = _state().get(package, f"it is not prepared; {_AGAIN}")
    return reason


def prepare(say: bool = True) -> None:
    """Installs what is not there. A package that cannot be had is remembered with the reason; nothing is raised."""
    mark = hashlib.sha256(_LIST.read_bytes() + _LOCK.read_bytes()).hexdigest()
    if _state().get("") == mark:
        return
    HOME.mkdir(exist_ok=True)
    state = {"": mark}
    for line in _LIST.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        kind, package, *wanted = line.split()
        if say:
            print(f"preparing {package} …", file=sys.stderr, flush=True)
        try:
            _KINDS[kind](wanted)
            state[package] = ""
        except subprocess.CalledProcessError as error:
            words = (error.stderr or error.stdout or "").strip().splitlines()
            state[package] = f"it cannot be installed ({words[-1] if words else error}); {_AGAIN}"
        except (OSError, subprocess.TimeoutExpired) as error:
            state[package] = f"it cannot be installed ({error}); {_AGAIN}"
    _STATE.write_text(json.dumps(state, indent=1))
    _state.cache_clear()


@cache
def _state() -> dict[str, str]:
    try:
        found: dict[str, str] = json.loads(_STATE.read_text())
    except (OSError, ValueError):
        return {}
    return found


def _python(wanted: list[str]) -> None:
    environment = HOME / "venv"
    if not (environment / "bin" / "pip").exists():
        _run([sys.executable, "-m", "venv", str(environment)])
    pip = [str(environment / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
    _run([*pip, "--constraint", str(_LOCK), *wanted])


def _node(wanted: list[str]) -> None:
    folder = HOME / "node"
    folder.mkdir(exist_ok=True)
    manifest = folder / "package.json"
    if not manifest.exists():  # It says what the packages before this one were.
        manifest.write_text('{"private": true}\n')
    _run(["npm", "install", "--no-package-lock", "--no-fund", "--no-audit", *wanted], folder)


def _debian(wanted: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        try:
            _run(["apt-get", "download", *wanted], Path(folder))
        except subprocess.CalledProcessError:
            if os.geteuid() != 0:
                raise
            # A new machine has no list of packages yet.
            _run(["apt-get", "update", "--quiet"])
            _run(["apt-get", "download", *wanted], Path(folder))
        for file in Path(folder).glob("*.deb"):
            _run(["dpkg", "--extract", str(file), str(HOME / "debian")])


def _run(command: list[str], cwd: Path | None = None) -> None:
    if shutil.which(command[0]) is None:
        raise OSError(f"there is no {command[0]} here")
    subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True, timeout=_PATIENCE)


_KINDS = {"python": _python, "node": _node, "debian": _debian}


if __name__ == "__main__":
    _STATE.unlink(missing_ok=True)
    prepare()
    for name, reason in json.loads(_STATE.read_text()).items():
        if name:
            print(f"{name:16} {reason or 'ready'}")
