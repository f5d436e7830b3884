"""make run: the right Python or a clear word, and an environment that fits."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NEEDED = ("sh", "env", "make", "cat", "cp", "grep", "rm", "touch", "mkdir", "chmod", "ln", "nproc")

# As far as `tools/` asks them: the first knows its version only, the second makes environments of links.
PYTHON = """\
#!/bin/sh
case "$2" in
*"sys.exit(sys.version_info"*) exit {status} ;;
*base_prefix*) echo "{prefix}" ;;
*) echo "{version}" ;;
esac
"""
UV = """\
#!/bin/sh
echo "uv $*" >> "$CALLS"
if [ "$1" = venv ]; then
    mkdir -p .venv/bin
    ln -s "$(command -v "$4")" .venv/bin/python
    echo "VIRTUAL_ENV='$(pwd -P)/.venv'" > .venv/bin/activate
    printf '#!/bin/sh\\necho started\\n' > .venv/bin/schedulerd
    chmod +x .venv/bin/schedulerd
fi
"""


class Clone:
    """A fresh clone, and a machine with nothing but these programs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "clone"
        self.bin = folder / "bin"
        self.calls = folder / "calls"
        self.folder.mkdir()
        self.bin.mkdir()
        for name in ("Makefile", "pyproject.toml", "requirements.lock", "requirements-dev.lock"):
            shutil.copy(ROOT / name, self.folder / name)
        shutil.copytree(ROOT / "tools", self.folder / "tools")
        for name in NEEDED:
            found = shutil.which(name)
            assert found is not None, f"{name} is missing here"
            (self.bin / name).symlink_to(found)
        self.program("uv", UV)

    def program(self, name: str, text: str) -> Path:
        path = self.bin / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def python(self, name: str, version: str) -> Path:
        status = 0 if tuple(map(int, version.split(".")[:2])) >= (3, 11) else 1
        return self.program(name, PYTHON.format(status=status, version=version, prefix=f"/opt/{version}"))

    def make(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": str(self.bin), "CALLS": str(self.calls)}
        command = [str(self.bin / "make"), *arguments]
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=60)

    def made(self) -> int:
        """How many environments were made."""
        return self.calls.read_text().count("uv venv") if self.calls.exists() else 0


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


def test_the_first_good_python_is_taken(clone: Clone) -> None:
    clone.python("python3", "3.9.2")
    clone.python("python3.12", "3.12.1")
    done = clone.make("run")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "started"), done.stderr
    assert os.readlink(clone.folder / ".venv/bin/python") == str(clone.bin / "python3.12")


@pytest.mark.parametrize("verb", ["run", "test", "check", "fix"])
def test_an_old_python_is_refused_in_a_sentence_and_leaves_nothing(clone: Clone, verb: str) -> None:
    clone.python("python3.12", "3.12.1")
    clone.python("python-old", "3.9.2")
    done = clone.make(verb, "PYTHON=python-old")
    assert done.returncode != 0
    assert "schedulerd needs Python 3.11 or newer: python-old is 3.9.2" in done.stderr
    assert "make PYTHON=/path/to/python3 run" in done.stderr
    assert not (clone.folder / ".venv").exists()


@pytest.mark.parametrize(
    ("pythons", "arguments", "said"),
    [
        ({}, (), "none was found"),
        ({"python3": "3.10.1"}, (), "python3 is 3.10.1, and no other was found"),
        ({"python3": "3.12.1"}, ("PYTHON=python3.14",), "there is no program python3.14"),
    ],
)
def test_without_a_good_python(clone: Clone, pythons: dict[str, str], arguments: tuple[str, ...], said: str) -> None:
    for name, version in pythons.items():
        clone.python(name, version)
    done = clone.make("run", *arguments)
    assert done.returncode != 0
    assert said in done.stderr
    assert not (clone.folder / ".venv").exists()


def test_what_is_no_python_is_named(clone: Clone) -> None:
    clone.program("lua", "#!/bin/sh\nexit 1\n")
    assert "lua is no Python" in clone.make("run", "PYTHON=lua").stderr


def test_an_environment_that_fits_is_kept(clone: Clone) -> None:
    clone.python("python3", "3.12.1")
    for _ in range(3):
        assert clone.make("run").returncode == 0
    calls = clone.calls.read_text().splitlines()
    assert len(calls) == 3, calls  # venv, sync, install: once
    assert clone.make("run", "PYTHON=python3").returncode == 0
    assert clone.made() == 1


def test_a_changed_lock_is_installed_into_the_same_environment(clone: Clone) -> None:
    clone.python("python3", "3.12.1")
    assert clone.make("run").returncode == 0
    later = (clone.folder / ".venv/.runtime").stat().st_mtime + 60
    os.utime(clone.folder / "requirements.lock", (later, later))
    assert clone.make("run").returncode == 0
    assert (clone.made(), clone.calls.read_text().count("pip sync")) == (1, 2)


def test_who_develops_need_not_install_again_to_run_but_the_other_way_round(clone: Clone) -> None:
    clone.python("python3", "3.12.1")
    assert clone.make("dev").returncode == 0
    assert clone.make("runtime").returncode == 0
    assert clone.calls.read_text().count("pip sync") == 1
    later = (clone.folder / ".venv/.runtime").stat().st_mtime + 60
    os.utime(clone.folder / "requirements.lock", (later, later))
    assert clone.make("runtime").returncode == 0
    assert not (clone.folder / ".venv/.dev").exists()


def test_an_environment_whose_python_is_gone_is_made_anew(clone: Clone) -> None:
    old = clone.python("python3.11", "3.11.9")
    assert clone.make("run").returncode == 0
    old.unlink()
    clone.python("python3", "3.13.0")
    done = clone.make("run")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "started")
    assert "made anew" in done.stderr
    assert os.readlink(clone.folder / ".venv/bin/python") == str(clone.bin / "python3")
    assert clone.calls.read_text().count("pip sync") == 2


def test_an_environment_that_is_half_made_is_made_anew(clone: Clone) -> None:
    clone.python("python3", "3.13.0")
    (clone.folder / ".venv/bin").mkdir(parents=True)
    (clone.folder / ".venv/.runtime").touch()
    assert clone.make("run").returncode == 0
    assert clone.made() == 1


def test_another_python_that_is_named_is_used(clone: Clone) -> None:
    clone.python("python3", "3.11.9")
    clone.python("python3.13", "3.13.0")
    assert clone.make("run").returncode == 0
    assert clone.make("run", "PYTHON=python3.13").returncode == 0
    assert os.readlink(clone.folder / ".venv/bin/python") == str(clone.bin / "python3.13")


def test_a_clone_that_was_moved_gets_a_new_environment(clone: Clone, tmp_path: Path) -> None:
    clone.python("python3", "3.12.1")
    assert clone.make("run").returncode == 0
    clone.folder = clone.folder.rename(tmp_path / "elsewhere")
    assert clone.make("run").returncode == 0
    assert clone.made() == 2


def test_a_named_python_that_is_too_old_does_not_cost_the_environment(clone: Clone) -> None:
    clone.python("python3", "3.12.1")
    clone.python("python-old", "3.9.2")
    assert clone.make("run").returncode == 0
    assert clone.make("run", "PYTHON=python-old").returncode != 0
    assert clone.make("run").returncode == 0
    assert clone.made() == 1


def test_a_python_that_cannot_make_environments(clone: Clone) -> None:
    (clone.bin / "uv").unlink()
    clone.python("python3", "3.12.1")
    python = (clone.bin / "python3").read_text()
    clone.program("python3", python.replace("#!/bin/sh\n", '#!/bin/sh\n[ "$1" != -m ] || { mkdir .venv; exit 1; }\n'))
    done = clone.make("run")
    assert done.returncode != 0
    assert "sudo apt install python3-venv" in done.stderr
    assert not (clone.folder / ".venv").exists()


def test_this_very_python_is_good_enough() -> None:
    done = subprocess.run([ROOT / "tools/python", sys.executable], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, sys.executable)


def test_a_python_that_must_be_tried_and_is_not_here(clone: Clone) -> None:
    clone.python("python3", "3.11.9")
    assert clone.make("run").returncode == 0
    clone.program("dirname", "#!/bin/sh\necho tools\n")
    environment = {"PATH": str(clone.bin), "CALLS": str(clone.calls), "HOME": str(clone.folder), "LANES_REQUIRED": "1"}
    done = subprocess.run(["tools/lanes"], cwd=clone.folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert "LOUDLY: no Python 3.1" in done.stderr
