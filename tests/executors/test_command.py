from __future__ import annotations

import json
import os
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from scheduler.core.job import Limits
from scheduler.core.model import FailReason
from scheduler.core.outcome import Canceled, Failed
from tests.executors.harness import Bench, alive, secret

STUBBORN = "trap '' TERM; echo on; while :; do sleep 0.05; done"


def test_a_list_is_executed_as_it_is(bench: Bench) -> None:
    going = bench.start("command", {"command": ["echo", "a b", "&&", "*", "> $HOME", "%"]})
    going.succeeded()
    assert going.output() == "a b && * > $HOME %\n"


def test_a_text_is_for_the_shell(bench: Bench) -> None:
    going = bench.start("command", {"command": "for i in 1 2; do echo $i%; done | tr 1 x"})
    going.succeeded()
    assert going.output() == "x%\n2%\n"


def test_stdin_is_what_the_job_says_and_else_empty(bench: Bench) -> None:
    going = bench.start("command", {"command": "cat"}, stdin="first\nsecond ü\n")
    going.succeeded()
    assert going.output() == "first\nsecond ü\n"
    empty = bench.start("command", {"command": "cat; echo end"})
    empty.succeeded()
    assert empty.output() == "end\n"


def test_work_directory_is_the_jobs_or_the_daemons(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for workdir, seen in ((None, tmp_path), ("sub", tmp_path / "sub"), (str(tmp_path / "sub"), tmp_path / "sub")):
        going = bench.start("command", {"command": ["pwd"]}, workdir=workdir)
        going.succeeded()
        assert going.output() == f"{seen}\n"


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        ("exit 3", 3, "exit code 3"),
        ("exit 137", 137, "128+9: probably killed by signal 9, out of memory?"),
        ("no-such-thing-here", 127, "not found; PATH=/usr/local/sbin"),
        ("/etc/passwd", 126, "cannot be executed"),
        ("exit 255", 255, "exit code 255"),
    ],
)
def test_exit_codes_come_with_words(bench: Bench, command: str, code: int, words: str) -> None:
    failed = bench.start("command", {"command": command}).failed()
    assert (failed.reason, failed.exit_code) == (FailReason.EXIT, code)
    assert words in failed.error


def test_killed_by_a_signal(bench: Bench) -> None:
    failed = bench.start("command", {"command": "kill -9 $$"}).failed()
    assert (failed.reason, failed.signal, failed.exit_code) == (FailReason.SIGNAL, 9, None)
    assert failed.error == "killed by signal 9 (SIGKILL), out of memory?"


def test_a_child_that_exits_well_on_term_was_still_ended(bench: Bench) -> None:
    going = bench.start("command", {"command": "trap 'exit 0' TERM; echo on; while :; do sleep 0.05; done"})
    going.until_output("on")
    going.end("cancel")
    outcome = going.outcome()
    assert isinstance(outcome, Canceled)
    assert outcome.exit_code == 0


def test_stubborn_child_is_killed_after_its_time(bench: Bench) -> None:
    going = bench.start("command", {"command": STUBBORN}, kill_after=timedelta(seconds=0.2), timeout=timedelta(hours=2))
    going.until_output("on")
    going.end("timeout")
    failed = going.failed()
    assert (failed.reason, failed.signal) == (FailReason.TIMEOUT, 9)
    assert failed.error == "ran longer than its timeout of 2h"


def test_what_it_leaves_behind_is_ended_and_counted(bench: Bench) -> None:
    going = bench.start("command", {"command": "sleep 600 & setsid sleep 600 & exit 0"})
    succeeded = going.succeeded()
    assert succeeded.left == 2
    assert "left 2 processes" in going.output()
    assert alive(going.launch.run.id) == []


def test_messages_of_starts_that_fail(bench: Bench, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    failed = bench.start("command", {"command": [str(script)]}).failed()
    assert failed.reason is FailReason.SPAWN
    assert "/no/such/interpreter" in failed.error
    script.chmod(0o644)
    assert "not executable" in bench.start("command", {"command": [str(script)]}).failed().error


def test_a_script_still_open_for_writing_is_waited_for(bench: Bench, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(Path("/bin/true").read_bytes())
    program.chmod(0o755)
    with program.open("ab"):
        failed = bench.start("command", {"command": [str(program)]}).failed()
    assert "text file busy" in failed.error
    bench.start("command", {"command": [str(program)]}).succeeded()


def test_nul_and_oversize_are_failures_without_another_attempt(bench: Bench) -> None:
    failed = bench.start("command", {"command": ["echo", "a\0b"]}).failed()
    assert (failed.reason, failed.retryable) == (FailReason.SPAWN, False)
    huge = bench.start("command", {"command": ["echo", "x" * 8_000_000]}).failed()
    assert "file" in huge.error


def test_progress_checkpoint_and_result_are_reported(bench: Bench) -> None:
    script = (
        'echo \'{"progress": 40, "message": "page 2 of 5"}\' >> $SCHED_REPORT_FILE; '
        'echo \'{"checkpoint": {"page": 2}}\' >> $SCHED_REPORT_FILE; echo ready; '
        "echo nonsense >> $SCHED_REPORT_FILE; cat $SCHED_CHECKPOINT_FILE; "
        'echo \'{"result": {"pages": 5}}\' >> $SCHED_REPORT_FILE'
    )
    going = bench.start("command", {"command": script}, run={"checkpoint": {"page": 1}})
    assert going.succeeded().result == {"pages": 5}
    [report] = bench.records.reports()
    assert (report.run, report.fence) == (going.launch.run.id, 7)
    assert (report.progress, report.message) == (40, "page 2 of 5")
    assert (report.checkpoint, report.result) == ({"page": 2}, {"pages": 5})
    assert bench.records.reports() == []
    assert '{"page":1}' in going.output()
    assert "1 ignored line of $SCHED_REPORT_FILE; the first: " in going.output()


def test_files_are_for_this_user_alone(bench: Bench) -> None:
    going = bench.start("command", {"command": "true"})
    going.succeeded()
    directory = Path(going.launch.environment["SCHED_REPORT_FILE"]).parent
    assert directory.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in directory.iterdir()} == {0o600}


def test_secrets_reach_the_child_and_nothing_else(bench: Bench) -> None:
    bench.environ["SOURCE"] = "correct horse battery"
    going = bench.start(
        "command",
        {"command": ["sh", "-c", 'echo "$PASSWORD"; printf "%s" "$PASSWORD" | wc -c; printf "correct horse bat"']},
        secrets={"PASSWORD": secret("SOURCE")},
    )
    going.succeeded()
    assert going.output() == "***\n21\ncorrect horse bat"
    on_disk = [path.read_bytes() for path in bench.state.rglob("*") if path.is_file() and path.suffix != ".output"]
    assert all(b"battery" not in data for data in on_disk)


def test_large_output_keeps_both_ends(bench: Bench) -> None:
    program = "import sys; sys.stdout.write('first ' + 'x' * 3_000_000 + ' last')"
    going = bench.start("command", {"command": [sys.executable, "-c", program]}, log_limit=10_000)
    going.succeeded()
    [output] = bench.records.outputs([(going.launch.run.id, 1)])
    assert output.head.startswith(b"first xxx")
    assert output.tail.endswith(b"xxx last")
    assert (len(output.head), len(output.tail), output.omitted) == (5000, 5000, 3_000_011 - 10_000)


def test_limits_hold(bench: Bench) -> None:
    program = "import os; print(os.nice(0), flush=True); bytearray(1 << 30)"
    going = bench.start(
        "command", {"command": [sys.executable, "-c", program]}, limits=Limits(memory=512 << 20, nice=7)
    )
    assert going.failed().exit_code == 1
    assert going.output().startswith("7\n")
    assert "MemoryError" in going.output()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_another_user_can_use_its_files_and_no_others(bench: Bench, umask: int) -> None:
    former = os.umask(umask)
    try:
        _as_another_user(bench)
    finally:
        os.umask(former)


def _as_another_user(bench: Bench) -> None:
    for directory in (bench.state, *bench.state.parents):
        if str(directory).startswith("/tmp/") and not directory.stat().st_mode & 0o001:
            directory.chmod(0o711)
    script = (
        "id -un; cat $SCHED_PAYLOAD_FILE && echo && "
        'echo \'{"result": "by nobody"}\' >> $SCHED_REPORT_FILE; '
        "cat ${SCHED_REPORT_FILE%.report.jsonl}.output 2>&1 | tail -n 1; "
        "ls $(dirname $SCHED_REPORT_FILE) 2>&1 | tail -n 1"
    )
    going = bench.start("command", {"command": script}, user="nobody", workdir="/", run={"payload": {"a": 1}})
    assert going.succeeded().result == "by nobody"
    lines = going.output().splitlines()
    assert lines[:2] == ["nobody", json.dumps({"a": 1}, separators=(",", ":"))]
    assert ["denied" in line.lower() for line in lines[2:]] == [True, True]


@pytest.mark.skipif(os.geteuid() == 0, reason="root can become anybody")
def test_only_root_can_run_as_another_user(bench: Bench) -> None:
    failed = bench.run("command", {"command": "true"}, user="root")
    assert isinstance(failed, Failed)
    assert not failed.retryable
