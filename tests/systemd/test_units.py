"""The units as systemd reads them, without a running systemd."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scheduler.daemon import EX_CONFIG
from scheduler.life import UNWRITTEN
from scheduler.service import SHORTEST_HANG
from scheduler.settings import SETTINGS

SYSTEMD = Path(__file__).parents[2] / "systemd"
EXAMPLES = sorted(path.name for path in (SYSTEMD / "examples").glob("*.conf"))
UNITS = ("schedulerd.service", "schedulerd@billing.service")
RELAXED = {"other-users.conf": 4.0, "namespaces.conf": 3.0}
"""Examples that open the sandbox on purpose, and the score beyond which they would do more than they say."""
SCORE = 1.5


@pytest.fixture
def analyze() -> str:
    found = shutil.which("systemd-analyze")
    if found is None:
        if os.environ.get("CI"):
            pytest.fail("systemd-analyze is missing: .ci/run installs it")
        pytest.skip("LOUDLY: no systemd-analyze here, so no unit is checked; apt-get install systemd brings it")
    return found


def source(unit: str) -> Path:
    return SYSTEMD / re.sub(r"@[^.]+", "@", unit)


def lay_out(unit: str, folder: Path, *examples: str) -> Path:
    """The unit and these drop-ins alone in a folder: systemd-analyze reads what lies beside it. The programs are ours,
    because the ones that it names need not be installed here."""
    text = source(unit).read_text()
    for program in ("schedulerd", "schedctl"):
        text = text.replace(f"/opt/schedulerd/bin/{program}", sys.executable)
    path = folder / unit
    path.write_text(text)
    for example in examples:
        place = folder / f"{unit}.d"
        place.mkdir(exist_ok=True)
        shutil.copy(SYSTEMD / "examples" / example, place)
    return path


def settings(unit: str) -> list[tuple[str, str]]:
    """Every assignment of the unit, in order."""
    lines = source(unit).read_text().splitlines()
    return [(name, value) for name, _, value in (line.partition("=") for line in lines if re.match(r"\w+=", line))]


def seconds(text: str) -> int:
    number, unit = re.fullmatch(r"(\d+)(s|min)", text).groups()  # type: ignore[union-attr]
    return int(number) * {"s": 1, "min": 60}[unit]


def verify(analyze: str, path: Path) -> str:
    done = subprocess.run([analyze, "verify", f"./{path.name}"], cwd=path.parent, capture_output=True, text=True)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    return said


def score(analyze: str, path: Path) -> float:
    done = subprocess.run(
        [analyze, "security", "--offline=yes", f"./{path.name}"], cwd=path.parent, capture_output=True, text=True
    )
    found = re.search(r"Overall exposure level for \S+: (\d+\.\d+)", done.stdout)
    assert found, done.stdout + done.stderr
    return float(found[1])


@pytest.mark.parametrize("unit", UNITS)
def test_systemd_understands_the_units(analyze: str, unit: str, tmp_path: Path) -> None:
    """Not a word: an unknown key or a value that cannot be read is only a warning to systemd, and ignored."""
    assert verify(analyze, lay_out(unit, tmp_path)) == ""


def test_the_check_hears_what_systemd_would_ignore(analyze: str, tmp_path: Path) -> None:
    path = lay_out(UNITS[0], tmp_path)
    path.write_text(path.read_text().replace("[Service]", "[Service]\nTypo=yes\nKillMode=some"))
    said = verify(analyze, path)
    assert "Typo" in said
    assert "some" in said


@pytest.mark.parametrize("unit", UNITS)
def test_the_sandbox_is_tight(analyze: str, unit: str, tmp_path: Path) -> None:
    assert score(analyze, lay_out(unit, tmp_path)) <= SCORE


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_examples_are_understood_and_open_no_more_than_they_say(analyze: str, example: str, tmp_path: Path) -> None:
    path = lay_out(UNITS[0], tmp_path, example)
    assert verify(analyze, path) == ""
    assert score(analyze, path) <= RELAXED.get(example, SCORE)


@pytest.mark.parametrize("unit", UNITS)
def test_the_units_name_settings_that_exist(unit: str) -> None:
    known = {f"SCHEDULER_{setting.name}" for setting in SETTINGS}
    named = {value.partition("=")[0] for name, value in settings(unit) if name == "Environment"}
    assert {"SCHEDULER_CONFIG", "SCHEDULER_STATE_DIR", "SCHEDULER_SOCKET"} <= named <= known


def test_the_examples_name_settings_that_exist() -> None:
    secret = {f"SCHEDULER_{setting.name}_FILE" for setting in SETTINGS if setting.secret}
    named = {
        found for path in (SYSTEMD / "examples").iterdir() for found in re.findall(r"SCHEDULER_\w+", path.read_text())
    }
    assert named
    assert named <= secret | {f"SCHEDULER_{setting.name}" for setting in SETTINGS}


@pytest.mark.parametrize("unit", UNITS)
def test_what_the_daemon_relies_on(unit: str) -> None:
    found = dict(settings(unit))
    assert (found["Type"], found["NotifyAccess"]) == ("notify", "main")
    assert found["KillMode"] == "mixed"
    assert found["RestartPreventExitStatus"] == f"{UNWRITTEN} {EX_CONFIG}"
    assert found["OOMPolicy"] == "continue"
    assert found["Delegate"] == "yes"
    assert found["ExecReload"].split()[1:] == ["reload"]
    assert found["ProtectControlGroups"] != "yes" or found["ReadWritePaths"].startswith("-/sys/fs/cgroup/")
    # Each run is a shell and what it starts, in threads and processes.
    assert int(found["TasksMax"]) >= 10 * 1000
    assert int(found["LimitNOFILE"]) >= 10 * 1000
    assert seconds(found["WatchdogSec"]) > 4 * SHORTEST_HANG


def test_an_instance_differs_from_the_unit_in_its_places_alone() -> None:
    """The sandbox is written down twice; it must not be two."""
    own = {"Description", "User", "Group", "ConfigurationDirectory", "StateDirectory", "RuntimeDirectory"}
    own |= {"WorkingDirectory", "Environment", "EnvironmentFile", "ExecStopPost", "ReadWritePaths"}
    one, many = ([pair for pair in settings(unit) if pair[0] not in own] for unit in UNITS)
    assert one == many
    assert {name for name, value in settings(UNITS[1]) if "%i" in value} <= own
