"""What is started without waiting, and what must not be."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from scheduler.core.children import ChildSpec
from scheduler.supervisor import nearness
from scheduler.supervisor.events import SpawnFailed
from scheduler.supervisor.nearness import Nearness, near_program
from tests.supervisor.harness import ENV, PATIENCE, Harness, wait_until

SH = Path("/bin/sh")


def spec(harness: Harness, name: str = "sh") -> ChildSpec:
    return harness.spec("r", name)


@pytest.fixture(autouse=True)
def _temporary_files_are_local(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Wherever the tests of this machine keep theirs."""
    mounts = nearness._mounted()
    here = {mounts[nearness._mount_of(str(path))] for path in (tmp_path, SH)}
    monkeypatch.setattr(nearness, "LOCAL", nearness.LOCAL | here)


def test_a_binary_on_a_local_disk_is_near(tmp_path: Path) -> None:
    assert near_program("sh", f"{tmp_path}:/usr/bin:/bin", str(tmp_path)) in ("/usr/bin/sh", "/bin/sh")
    assert near_program("/bin/sh", "", str(tmp_path)) == "/bin/sh"
    (tmp_path / "mine").symlink_to("/bin/sh")
    assert near_program("./mine", "/bin", str(tmp_path)) == f"{tmp_path}/./mine"


def test_what_may_have_to_be_waited_for_is_not_near(tmp_path: Path) -> None:
    here = str(tmp_path)
    (tmp_path / "script").write_text("#!/far/away/interpreter\n")
    (tmp_path / "script").chmod(0o755)
    assert near_program("./script", "/bin", here) is None
    (tmp_path / "sh").write_bytes(SH.read_bytes())
    assert near_program("sh", f"{here}:/usr/bin:/bin", here) is None, "not executable: exec has something to say"
    assert near_program("no-such-program", "/usr/bin:/bin", here) is None
    assert near_program("sh", "/bin:.", here) in (None, "/bin/sh")
    assert near_program("sh", ":/usr/bin", here) is None, "an empty place means the work directory"
    assert near_program("/bin", "", here) is None, "a directory"
    # /proc stands for a file system of another kind.
    assert near_program("/bin/sh", "", "/proc/self") is None
    assert near_program("/proc/self/exe", "", here) is None
    (tmp_path / "far").symlink_to("/proc/self")
    assert near_program("/bin/sh", "", f"{here}/far") is None
    (tmp_path / "back").symlink_to("/proc/self/root/bin/sh")
    assert near_program("./back", "", here) is None, "on the way there lies /proc"
    (tmp_path / "round").symlink_to("round")
    with pytest.raises(OSError, match="round"):
        near_program("/bin/sh", "", f"{here}/round")
    with pytest.raises(OSError, match="no-such-folder"):
        near_program("/bin/sh", "", "/no-such-folder")


def test_nobody_waits_for_the_answer(supervisor: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is away holds up the thread that looks, and nothing else."""
    back, asked = threading.Event(), []

    def look(name: str, search: str, folder: str) -> str:
        asked.append(name)
        assert back.wait(PATIENCE)
        return f"/local/{name}"

    monkeypatch.setattr(nearness, "near_program", look)
    near = Nearness()
    for _ in range(3):
        assert near.of(spec(supervisor, "one")) is None
        assert near.of(spec(supervisor, "two")) is None
    back.set()
    assert wait_until(lambda: near.of(spec(supervisor, "one"))) == "/local/one"
    assert wait_until(lambda: near.of(spec(supervisor, "two"))) == "/local/two"
    assert asked == ["one", "two"]


def test_it_is_looked_at_again(supervisor: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """Something else may have been mounted there."""
    answers = [None, "/local/sh"]
    monkeypatch.setattr(nearness, "near_program", lambda *key: answers.pop())
    monkeypatch.setattr(nearness, "LASTS", 0.05)
    near = Nearness()
    assert wait_until(lambda: near.of(spec(supervisor))) == "/local/sh"
    wait_until(lambda: near.of(spec(supervisor)) is None and not answers)


def test_a_program_that_is_near_is_spawned(supervisor: Harness) -> None:
    supervisor.start("r", "/no/such/program", "said", near="/bin/echo")
    assert supervisor.exited("r").code == 0
    assert supervisor.output("r") == b"said\n"


@pytest.mark.parametrize("near", ["/no/such/program", "/etc/passwd", "/"])
def test_what_cannot_be_spawned_is_forked(supervisor: Harness, near: str) -> None:
    """It was there when it was looked at; now the fork finds the other one, or tells what is wrong."""
    supervisor.start("r", "echo", "said", near=near)
    assert supervisor.exited("r").code == 0
    assert supervisor.output("r") == b"said\n"


def test_text_that_no_system_takes_harms_only_its_own_run(supervisor: Harness) -> None:
    supervisor.start("odd", "/bin/echo", "\ud800", near="/bin/echo")
    assert supervisor.expect(SpawnFailed, "odd").stage == "exec"
    supervisor.start("odd-env", "/bin/echo", env={"A": "\ud800"}, near="/bin/echo")
    supervisor.expect(SpawnFailed, "odd-env")
    supervisor.start("next", "true")
    assert supervisor.exited("next").code == 0


def test_the_supervisor_stays_as_it_was(supervisor: Harness) -> None:
    """What a child inherits is put on the supervisor for a moment only."""

    def own() -> tuple[str, str, str]:
        of = Path("/proc", str(supervisor.client.pid))
        return (of / "oom_score_adj").read_text(), (of / "limits").read_text(), os.readlink(of / "cwd")

    before = own()
    assert before[2] == "/"
    supervisor.start("r", "true", env=ENV)
    assert supervisor.exited("r").code == 0
    supervisor.start("wrong", "true", near="/no/such/program")
    assert supervisor.exited("wrong").code == 0
    assert own() == before
