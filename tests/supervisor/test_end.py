"""Ending runs, and what they leave behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from scheduler.supervisor import cgroup, linux, processes
from scheduler.supervisor.cgroup import Cgroups
from tests.supervisor.harness import STUBBORN, Harness, alive, escapees, stubborn_child, token, wait_until


def test_what_a_run_leaves_behind_is_ended_before_it_is_over(supervisor: Harness) -> None:
    mark = token()
    supervisor.sh("r", f"{escapees(mark)} exit 3")
    exited = supervisor.exited("r")
    assert (exited.code, exited.why) == (3, None)
    assert exited.left == 4
    assert alive(mark) == []


def test_leftovers_that_ignore_term_are_killed_after_a_while(supervisor: Harness) -> None:
    mark = token()
    supervisor.sh("r", f"{stubborn_child(mark)} exit 0", kill_after=0.5)
    started = time.monotonic()
    exited = supervisor.exited("r")
    assert (exited.code, exited.why) == (0, None)
    assert exited.left >= 1
    assert alive(mark) == []
    assert time.monotonic() - started < 10


def test_leftovers_can_be_kept(supervisor: Harness) -> None:
    kept, ended = token(), token()
    supervisor.sh("keep", f"setsid sleep {kept} & sleep {kept} & exit 0", leftovers="keep")
    exited = supervisor.exited("keep")
    assert (exited.code, exited.left) == (0, 0)
    assert len(wait_until(lambda: len(alive(kept)) == 2 and alive(kept))) == 2
    # The next runs must not take the kept ones for theirs, and the other way round.
    for number in range(3):
        supervisor.sh(f"end{number}", f"setsid sleep {ended} & exit 0")
        assert supervisor.exited(f"end{number}").left == 1
    assert alive(ended) == []
    assert len(alive(kept)) == 2
    assert supervisor.client.close()
    assert alive(kept) == []


def test_a_run_that_is_ended_is_ended_as_a_whole(supervisor: Harness) -> None:
    mark = token()
    supervisor.sh("r", f"{escapees(mark)} echo on; exec sleep {mark}", leftovers="keep")
    supervisor.said("r", b"on")
    supervisor.client.end("r", "cancel", 10)
    exited = supervisor.exited("r")
    assert (exited.signal, exited.why, exited.left) == (signal.SIGTERM, "cancel", 4)
    assert alive(mark) == []


def test_term_then_kill(supervisor: Harness) -> None:
    mark = token()
    supervisor.sh("r", f"{STUBBORN} {escapees(mark)} echo on; while :; do sleep {mark}; done")
    supervisor.said("r", b"on")
    before = time.monotonic()
    supervisor.client.end("r", "timeout", 0.5)
    exited = supervisor.exited("r")
    assert (exited.signal, exited.why) == (signal.SIGKILL, "timeout")
    assert time.monotonic() - before >= 0.5
    assert alive(mark) == []


def test_a_later_end_may_hasten_but_not_rename(supervisor: Harness) -> None:
    supervisor.sh("r", f"{STUBBORN} echo on; while :; do sleep {token()}; done")
    supervisor.said("r", b"on")
    supervisor.client.end("r", "timeout", 60)
    supervisor.client.end("r", "lost", 0.1)
    supervisor.client.end("r", "cancel", 60)
    exited = supervisor.exited("r")
    assert (exited.signal, exited.why) == (signal.SIGKILL, "timeout")


def test_an_exit_after_our_signal_is_no_result(supervisor: Harness) -> None:
    supervisor.sh("r", f"trap 'exit 0' TERM; echo on; sleep {token()} & wait")
    supervisor.said("r", b"on")
    supervisor.client.end("r", "timeout", 10)
    exited = supervisor.exited("r")
    assert (exited.code, exited.why) == (0, "timeout")


def test_an_exit_before_our_signal_is_a_result(supervisor: Harness) -> None:
    supervisor.sh("r", f"echo pid $$; {stubborn_child(token())} exit 5", kill_after=60)
    supervisor.said("r", b"on")
    main = supervisor.pid("r")
    wait_until(lambda: processes.read(main) is None)
    supervisor.client.end("r", "cancel", 0.1)
    exited = supervisor.exited("r")
    assert (exited.code, exited.why) == (5, None)


def test_an_exit_that_the_supervisor_has_not_seen_yet_is_a_result_too(supervisor: Harness) -> None:
    supervisor.sh("r", "echo pid $$; echo on; until [ -e go ]; do sleep 0.01; done; exit 5")
    supervisor.said("r", b"on")
    pid = supervisor.pid("r")
    os.kill(supervisor.client.pid, signal.SIGSTOP)
    (supervisor.folder / "go").touch()
    wait_until(lambda: (found := processes.read(pid)) and found.dead)
    supervisor.client.end("r", "timeout", 10)
    os.kill(supervisor.client.pid, signal.SIGCONT)
    exited = supervisor.exited("r")
    assert (exited.code, exited.why) == (5, None)


def test_what_is_started_on_the_way_out_is_ended_at_once(supervisor: Harness) -> None:
    mark = token()
    # A shell's child that is signalled before it has executed its program may lose the signal.
    first, there = token(), 'until pgrep -f "^sleep {}$"; do :; done'
    trap = f"trap 'setsid sleep {mark} & {there.format(mark)}; exit 0' TERM"
    supervisor.sh("r", f"{trap}; sleep {first} & {there.format(first)}; echo on; wait")
    supervisor.said("r", b"on")
    supervisor.client.end("r", "cancel", 60)
    exited = supervisor.exited("r")
    assert (exited.code, exited.why) == (0, "cancel")
    assert alive(mark) == []


def test_whoever_shook_off_the_mark_ends_with_the_supervisor_at_the_latest(supervisor: Harness) -> None:
    if not shutil.which("prlimit"):
        pytest.skip("NEEDS prlimit (util-linux)")
    mark = token()
    lost = f"setsid prlimit --msgqueue=10: sh -c 'trap \"\" TERM; : > lost; (sleep {mark} &) ; sleep {mark}' &"
    supervisor.sh("r", f"{lost} until [ -e lost ]; do :; done; exit 1")
    assert supervisor.exited("r").code == 1
    wait_until(lambda: len(alive(mark)) == 3)
    now = linux.boottime()
    supervisor.client.trust(now + 60, now + 0.3)
    assert supervisor.client.close()
    assert alive(mark) == []


def test_a_stopped_child_can_be_ended(supervisor: Harness) -> None:
    supervisor.sh("r", f"echo pid $$; kill -STOP $$; sleep {token()}")
    pid = supervisor.pid("r")
    wait_until(lambda: (found := processes.read(pid)) and found.state == "T")
    supervisor.client.end("r", "cancel", 30)
    assert supervisor.exited("r").signal == signal.SIGTERM


def test_ending_one_run_leaves_the_other_alone(supervisor: Harness) -> None:
    one, two = token(), token()
    for run, mark in (("one", one), ("two", two)):
        supervisor.sh(run, f"{escapees(mark)} echo on; exec sleep {mark}")
    supervisor.said("one", b"on")
    supervisor.said("two", b"on")
    assert len(alive(two)) == 5
    supervisor.client.end("one", "cancel", 10)
    supervisor.exited("one")
    assert alive(one) == []
    assert len(alive(two)) == 5
    supervisor.client.end("two", "cancel", 10)
    assert supervisor.exited("two").left == 4
    assert alive(two) == []


def test_what_never_stops_forking_is_killed(supervisor: Harness) -> None:
    mark = token()
    forks = f"while :; do (setsid sleep {mark} &) ; sleep 0.01; done"
    script = f"{STUBBORN} echo on; f() {{ trap '' TERM; {forks}; }}; f & f & f & wait"
    supervisor.sh("r", script)
    supervisor.said("r", b"on")
    supervisor.client.end("r", "timeout", 0.2)
    assert supervisor.exited("r").why == "timeout"
    assert alive(mark) == []


def test_a_process_without_its_main_thread_is_still_there(supervisor: Harness) -> None:
    mark = token()
    script = (
        "import ctypes, os, threading, time, signal\n"
        "print('pid', os.getpid(), flush=True)\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"threading.Thread(target=lambda: (print('on', flush=True), time.sleep({mark})), daemon=True).start()\n"
        "ctypes.CDLL(None).pthread_exit(None)\n"
    )
    supervisor.python("r", script)
    pid = supervisor.pid("r")
    supervisor.said("r", b"on")
    wait_until(lambda: (found := processes.read(pid)) and found.state == "Z")
    supervisor.client.end("r", "timeout", 0.2)
    assert supervisor.exited("r").why == "timeout"
    assert alive(mark) == []


def test_ending_what_has_not_started_yet(supervisor: Harness) -> None:
    for number in range(300):
        supervisor.sh(f"r{number}", f"exec sleep {token()}")
    for number in reversed(range(300)):
        supervisor.client.end(f"r{number}", "cancel", 10)
    for number in range(300):
        exited = supervisor.exited(f"r{number}")
        assert exited.why == "cancel"
        assert exited.code is None


def test_a_signal_is_for_the_main_process_and_no_reason(supervisor: Harness) -> None:
    supervisor.sh("r", f"trap 'exit 9' USR1; echo on; sleep {token()} & wait")
    supervisor.said("r", b"on")
    supervisor.client.signal("r", signal.SIGUSR1)
    exited = supervisor.exited("r")
    assert (exited.code, exited.why) == (9, None)


def test_daemons_of_a_living_run_are_not_reaped_too_early(supervisor: Harness) -> None:
    supervisor.sh("r", "for i in 1 2 3 4 5; do (setsid sh -c 'exit 1' &); done; sleep 0.2; exit 2")
    assert supervisor.exited("r").code == 2


@pytest.fixture
def cgroup_root() -> str:
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    root = next((Path(fields[1]) for fields in mounts if fields[2] == "cgroup2"), None)
    if root is None or os.geteuid() != 0:
        pytest.skip("NEEDS ROOT and a mounted cgroup v2")
    folder = root / f"schedulerd-test-{os.getpid()}-{time.monotonic_ns()}"
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"no cgroup can be made: {error}")
    return str(folder)


def test_killing_a_cgroup(cgroup_root: str) -> None:
    group = Cgroups(cgroup_root).make()
    assert group
    script = f"echo 0 > {group.path}/cgroup.procs; setsid sleep 600 & exec sleep 600"
    process = subprocess.Popen(["/bin/sh", "-c", script])
    wait_until(lambda: len(group.pids()) == 2)
    group.kill()
    assert process.wait() == -signal.SIGKILL
    wait_until(lambda: not group.pids())
    (found,) = Cgroups(cgroup_root).left_over()
    found.remove()
    assert Cgroups(cgroup_root).left_over() == []
    os.rmdir(cgroup_root)


DELEGATED = """
import os, sys
sys.path.insert(0, sys.argv[1])
from scheduler.supervisor.cgroup import delegated
open(sys.argv[2] + "/cgroup.procs", "w").write("0")
print(delegated())
"""


def test_a_cgroup_is_used_only_if_it_was_handed_over(cgroup_root: str) -> None:
    def seen(place: Path) -> str:
        root = str(Path(__file__).parents[2])
        command = [sys.executable, "-I", "-S", "-c", DELEGATED, root, str(place)]
        return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()

    unit, leaf = Path(cgroup_root), Path(cgroup_root, "leaf")
    below = leaf / "below"
    below.mkdir(parents=True)
    assert seen(unit) == seen(leaf) == "None"
    os.setxattr(unit, "user.delegate", b"1")
    assert seen(unit) == str(unit)
    # DelegateSubgroup= puts the daemon into a leaf of what it delegates, and no deeper.
    assert seen(leaf) == str(unit)
    assert seen(below) == "None"
    for place in (below, leaf, unit):
        wait_until(partial(_nobody_in, place))
        place.rmdir()


def test_with_a_cgroup(tmp_path: Path, cgroup_root: str) -> None:
    harness = Harness(tmp_path, cgroup=cgroup_root)
    mark = token()
    harness.sh("left", f"{escapees(mark)} cat /proc/self/cgroup; exit 3")
    exited = harness.exited("left")
    assert (exited.code, exited.left) == (3, 4)
    assert f"{Path(cgroup_root).name}/run-".encode() in harness.output("left")
    assert alive(mark) == []
    harness.sh(
        "kill", f"{STUBBORN} mkdir {cgroup_root}/run-*/own; {escapees(mark)} echo on; while :; do sleep {mark}; done"
    )
    harness.said("kill", b"on")
    harness.client.end("kill", "cancel", 0.2)
    assert harness.exited("kill").why == "cancel"
    assert alive(mark) == []
    harness.start("none", "no-such-command")
    wait_until(lambda: not [path for path in Path(cgroup_root).iterdir() if path.is_dir()])
    assert harness.client.close()
    os.rmdir(cgroup_root)


def _nobody_in(place: Path) -> bool:
    return not (place / "cgroup.procs").read_text()


def test_mounts_with_names_of_any_bytes_are_no_trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_bytes(b"36 25 0:31 / /media/D\xfcsseldorf rw - tmpfs tmpfs rw\n")

    def elsewhere(file: str, **how: Any) -> Any:
        return open(mounts if file.endswith("mountinfo") else file, **how)

    monkeypatch.setattr(cgroup, "open", elsewhere, raising=False)
    assert cgroup.delegated() is None
