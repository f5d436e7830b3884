from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from scheduler.config.secrets import read_secret
from scheduler.core.errors import InvalidInput
from scheduler.core.execution import Launch
from scheduler.core.model import Cause, JobState
from scheduler.core.outcome import Failed, Snoozed
from scheduler.core.schedule import Schedule
from scheduler.core.secret import Secret
from scheduler.core.trace import traceparent
from scheduler.executors.attempts import environment
from scheduler.executors.attempts.environment import idempotency_key
from tests.executors.harness import Bench, Going, make_run, secret

DUE = datetime(2026, 3, 9, 0, 0, tzinfo=UTC)


def launch(bench: Bench, **changes: object) -> Launch:
    run = make_run("report", cause=Cause.SCHEDULE, scheduled_for=DUE, attempt=2, fence=41)
    job = bench.job(
        "command", {"command": "true"}, name="report", schedule=Schedule(("0 8 * * 1",), "Asia/Shanghai"), **changes
    )
    state = JobState(
        "report",
        1,
        "",
        True,
        None,
        since=DUE,
        last_success_at=datetime(2026, 3, 2, 0, 0, 5, tzinfo=UTC),
        deadline_at=datetime(2026, 3, 9, 7, 0, tzinfo=UTC),
    )
    prepared = bench.preparation.prepare(run, job, state)
    assert isinstance(prepared, Launch)
    return prepared


def test_everything_it_says_about_the_run(bench: Bench) -> None:
    built = launch(bench).environment
    told = {name: value for name, value in built.items() if name.startswith("SCHED_")}
    run = told.pop("SCHED_RUN_ID")
    files = bench.state / "runs" / f"{run}.2"
    assert told == {
        "SCHED_JOB_NAME": "report",
        "SCHED_ATTEMPT": "2",
        "SCHED_TRIGGER": "schedule",
        "SCHED_SCHEDULED_FOR": "2026-03-09T08:00:00+08:00",
        "SCHED_TIMEZONE": "Asia/Shanghai",
        "SCHED_IDEMPOTENCY_KEY": "report@2026-03-09T00:00:00Z",
        "SCHED_FENCE": "41",
        "SCHED_PAYLOAD_FILE": "",
        "SCHED_REPORT_FILE": f"{files}.report.jsonl",
        "SCHED_CHECKPOINT_FILE": "",
        "SCHED_LAST_SUCCESS": "2026-03-02T08:00:05+08:00",
        "SCHED_DEADLINE": "2026-03-09T15:00:00+08:00",
    }
    assert built["TRACEPARENT"].startswith(f"00-{run.replace('-', '')}-")


def test_base_is_fixed_and_nothing_is_inherited(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    never = [
        "NOTIFY_SOCKET",
        "LISTEN_FDS",
        "WATCHDOG_USEC",
        "CREDENTIALS_DIRECTORY",
        "SCHEDULER_DATABASE_URL",
        "MY_TOKEN",
    ]
    for name in never:
        monkeypatch.setenv(name, "from the daemon")
        bench.environ[name] = "from the daemon"
    built = launch(bench).environment
    others = {name for name in built if not name.startswith("SCHED_")}
    assert others - {"TZDIR"} == {"PATH", "LANG", "HOME", "TZ", "TRACEPARENT"}
    assert built["TZ"] == "Asia/Shanghai"
    assert built["LANG"] == "C.UTF-8"
    assert "from the daemon" not in built.values()


def test_local_time_is_right_on_a_system_without_zones(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "SYSTEM_ZONES", "/nowhere")
    going = bench.start("command", {"command": "date -d @0 +%H:%M; echo $TZDIR"})
    going.succeeded()
    assert going.output().startswith("08:00\n/")


def test_env_then_secrets_then_ours_win(bench: Bench) -> None:
    bench.environ["SOURCE"] = "from a secret"
    built = launch(
        bench,
        env={"PATH": "/opt/bin", "BOTH": "from env", "SCHED_FENCE": "1"},
        secrets={"BOTH": secret("SOURCE", prefix="Bearer ")},
    ).environment
    assert built["PATH"] == "/opt/bin"
    assert built["BOTH"] == "Bearer from a secret"
    assert built["SCHED_FENCE"] == "41"


def test_key_is_the_occurrence_for_all_attempts_and_else_the_run() -> None:
    due = make_run("a", cause=Cause.CATCH_UP, scheduled_for=DUE)
    again = make_run("a", cause=Cause.BACKFILL, scheduled_for=DUE, attempt=3)
    assert idempotency_key(due) == idempotency_key(again) == "a@2026-03-09T00:00:00Z"
    by_hand = make_run("a")
    assert idempotency_key(by_hand) == by_hand.id
    assert traceparent(due.id, 1) != traceparent(due.id, 2)
    assert traceparent(due.id, 1)[:36] == traceparent(due.id, 2)[:36]


def test_secret_from_a_file_loses_one_line_end(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("two\nlines\n\n")
    assert read_secret("S", Secret(file=str(file)), {}) == "two\nlines\n"
    file.write_bytes(b"value\r\n")
    assert read_secret("S", Secret(file=str(file)), {}) == "value"


@pytest.mark.parametrize(
    ("content", "words"),
    [(None, "No such file"), (b"a\0b", "NUL"), (b"x" * 70_000, "64 KiB")],
)
def test_unusable_secret_files_are_named(tmp_path: Path, content: bytes | None, words: str) -> None:
    file = tmp_path / "secret"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InvalidInput) as raised:
        read_secret("API_KEY", Secret(file=str(file)), {})
    assert "API_KEY" in str(raised.value)
    assert words in str(raised.value)


def test_unknown_user_is_a_failure_that_names_it(bench: Bench) -> None:
    job = bench.job("command", {"command": "true"}, user="nobody-like-this")
    failed = bench.preparation.prepare(make_run("example"), job, None)
    assert isinstance(failed, Failed)
    assert "nobody-like-this" in failed.error


@pytest.mark.parametrize("payload", [None, {"a": 1}])
def test_a_disk_that_takes_nothing_makes_the_run_wait(bench: Bench, payload: object) -> None:
    (bench.state / "runs").write_text("not a directory")
    run = make_run("example", payload=payload, has_payload=payload is not None)
    waiting: object = bench.preparation.prepare(run, bench.job("command", {"command": "true"}), None)
    if isinstance(waiting, Launch):
        going = Going(bench, waiting)
        bench.executors["command"].start(waiting, going.done)
        waiting = going.outcome()
    assert isinstance(waiting, Snoozed)
    assert "runs" in waiting.error


@pytest.mark.parametrize("action", ["command", "call"])
@pytest.mark.parametrize(("payload", "checkpoint"), [(None, None), ({"a": 1}, None), (None, {"b": 2}), (1, 2)])
def test_there_is_a_file_where_there_is_a_payload_or_a_checkpoint(
    bench: Bench, action: str, payload: object, checkpoint: object
) -> None:
    script = (
        "import json, os\n"
        "def show(payload=None):\n"
        "    for name in ('PAYLOAD', 'CHECKPOINT'):\n"
        "        path = os.environ[f'SCHED_{name}_FILE']\n"
        "        print(json.load(open(path)) if path else None)\n"
        "    print(os.path.exists(os.environ['SCHED_REPORT_FILE']))\n"
    )
    (bench.state / "shown.py").write_text(script)
    options = {
        "command": {"command": [sys.executable, "-c", "import shown; shown.show()"]},
        "call": {"function": "shown:show"},
    }[action]
    run = {"payload": payload, "has_payload": payload is not None, "checkpoint": checkpoint}
    going = bench.start(action, options, run=run)
    going.succeeded()
    assert going.output() == f"{payload}\n{checkpoint}\nFalse\n"
    bench.records.forget([(going.launch.run.id, 1)])
    assert list((bench.state / "runs").iterdir()) == []


@pytest.mark.parametrize("action", ["command", "call"])
def test_where_others_pass_through_a_report_is_its_owner_s_from_the_beginning(bench: Bench, action: str) -> None:
    runs = bench.state / "runs"
    runs.mkdir()
    runs.chmod(0o711)
    script = "import os\ndef show():\n    print(oct(os.stat(os.environ['SCHED_REPORT_FILE']).st_mode))\n"
    (bench.state / "moded.py").write_text(script)
    options = {
        "command": {"command": [sys.executable, "-c", "import moded; moded.show()"]},
        "call": {"function": "moded:show"},
    }[action]
    going = bench.start(action, options)
    going.succeeded()
    assert going.output() == "0o100600\n"
    bench.records.forget([(going.launch.run.id, 1)])
    assert list(runs.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")
def test_reports_are_closed_to_others_before_these_pass_through(bench: Bench) -> None:
    umask = "umask 0; echo '{\"progress\": 1}' >> $SCHED_REPORT_FILE; echo here; exec sleep 600"
    before, silent = bench.start("command", {"command": umask}), bench.start("command", {"command": "exec sleep 600"})
    before.until_output("here")
    path = Path(before.launch.environment["SCHED_REPORT_FILE"])
    assert path.stat().st_mode & 0o777 == 0o666
    bench.start("command", {"command": "true"}, user="nobody", workdir="/").outcome()
    for going in (before, silent):
        assert Path(going.launch.environment["SCHED_REPORT_FILE"]).stat().st_mode & 0o777 == 0o600
        going.end("cancel")
        going.outcome()
