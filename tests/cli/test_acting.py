"""The verbs that act, against a served daemon."""

from __future__ import annotations

import getpass
import io
import threading
from pathlib import Path

import pytest

from scheduler.core.model import FailReason, Status
from scheduler.core.outcome import Failed
from scheduler.web.server import WebServer
from tests.cli.background import Background
from tests.faces import JOBS, Served
from tests.until import until

Captured = pytest.CaptureFixture[str]


def test_run_now_prints_the_id_and_nothing_else(served: Served, capsys: Captured) -> None:
    assert served.schedctl("run-now", "ticket", "--reason", "by hand") == 0
    out, err = capsys.readouterr()
    (run,) = served.rig.runs("ticket")
    assert out == f"{run.id}\n"
    assert err == f"ticket: accepted, ready\nnext: schedctl logs -f {run.id[-8:]}\n"
    assert run.note == "by hand"


def test_run_now_of_a_busy_job(served: Served, capsys: Captured) -> None:
    served.schedctl("run-now", "minutely")
    capsys.readouterr()
    (first,) = served.rig.runs("minutely")
    assert served.schedctl("run-now", "minutely") == 5
    assert first.id[-8:] in capsys.readouterr().err
    assert served.schedctl("run-now", "minutely", "--replace") == 0
    assert served.schedctl("run-now", "minutely", "--queue") == 0
    statuses = [run.status for run in served.rig.runs("minutely")]
    assert statuses == [Status.CANCELED, Status.PENDING, Status.PENDING]


@pytest.mark.parametrize("payload", ["17", '{"a": [1, null]}', '"text"', "false"])
def test_run_now_with_a_payload(served: Served, payload: str) -> None:
    import json

    assert served.schedctl("run-now", "ticket", "--payload", payload) == 0
    (run,) = served.rig.runs("ticket")
    assert run.has_payload
    with served.rig.store.queries() as queries:
        detail = queries.run(run.id)
    assert detail is not None
    assert detail.run.payload == json.loads(payload)


def test_a_payload_from_a_file_and_from_stdin(served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "p.json").write_text('{"order": "寿司"}', "utf-8")
    assert served.schedctl("run-now", "ticket", "--payload", f"@{tmp_path / 'p.json'}") == 0
    monkeypatch.setattr("sys.stdin", io.StringIO("[1]"))
    assert served.schedctl("run-now", "ticket", "--payload", "@-") == 0
    assert served.schedctl("run-now", "ticket", "--payload", "text") == 2
    assert len(served.rig.runs("ticket")) == 2


def test_a_payload_that_cannot_be_read_is_told_in_words(
    served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.json").write_bytes(b'"\xff"')
    for text, told in (
        ("@/no/such/file", "--payload: cannot read /no/such/file: No such file or directory\n"),
        (f"@{tmp_path / 'p.json'}", f"--payload: {tmp_path / 'p.json'} is not UTF-8 at byte 1\n"),
    ):
        assert served.schedctl("run-now", "ticket", "--payload", text) == 2
        assert capsys.readouterr().err.endswith(told)
    assert served.rig.runs("ticket") == []


def test_a_key_makes_one_run(served: Served, capsys: Captured) -> None:
    served.schedctl("run-now", "ticket", "--key", "k")
    first = capsys.readouterr().out
    served.schedctl("run-now", "ticket", "--key", "k")
    out, err = capsys.readouterr()
    assert out == first
    assert "has made this run before" in err


def test_wait_shows_the_output_and_ends_with_the_runs_fate(served: Served, capfd: pytest.CaptureFixture[str]) -> None:
    waiting = Background(served, "run-now", "ticket", "--wait")
    until(lambda: served.rig.runs("ticket"))
    served.rig.tick()
    (run,) = served.rig.runs("ticket")
    served.faces.live[run.id] = b"prin"
    waiting.until(b"prin")
    served.rig.executor.finish(run.id)
    served.rig.tick(seconds=1)
    waiting.join()
    assert (waiting.codes, waiting.out) == ([0], b"printed\n")
    assert "✓ COMPLETED".encode() in waiting.err


def test_wait_goes_through_retries_and_fails_with_the_run(served: Served, capsys: Captured) -> None:
    codes: list[int] = []
    waiting = threading.Thread(target=lambda: codes.append(served.schedctl("run-now", "ticket", "--wait")))
    waiting.start()
    until(lambda: served.rig.runs("ticket"))
    served.rig.tick()
    served.rig.executor.finish_all(Failed(FailReason.EXIT, "exit code 1", exit_code=1))
    served.rig.tick(seconds=1)
    assert waiting.is_alive()
    served.rig.tick(minutes=2)
    served.rig.executor.finish_all(Failed(FailReason.EXIT, "exit code 2", exit_code=2))
    served.rig.tick(seconds=1)
    waiting.join(20)
    assert codes == [1]
    out, err = capsys.readouterr()
    assert out == "printed\nprinted\n"
    assert "✗ FAILED after " in err
    assert ": exit 2" in err


def test_waiting_too_long_is_exit_6(served: Served, capsys: Captured) -> None:
    assert served.schedctl("run-now", "ticket", "--wait", "--timeout", "400ms") == 6
    assert "the run goes on" in capsys.readouterr().err
    assert served.schedctl("run-now", "ticket", "--wait", "--timeout", "soon", "--queue") == 2


def test_wait_with_json_writes_the_run_at_its_end(served: Served, capsys: Captured) -> None:
    import json

    codes: list[int] = []
    command = ("run-now", "ticket", "--wait", "-o", "json")
    waiting = threading.Thread(target=lambda: codes.append(served.schedctl(*command)))
    waiting.start()
    until(lambda: served.rig.runs("ticket"))
    served.rig.tick()
    served.rig.executor.finish_all()
    served.rig.tick(seconds=1)
    waiting.join(20)
    assert codes == [0]
    assert json.loads(capsys.readouterr().out)["status"] == "COMPLETED"


def test_logs_follow_until_the_end(served: Served, capfd: pytest.CaptureFixture[str]) -> None:
    served.schedctl("run-now", "ticket")
    served.rig.tick()
    (run,) = served.rig.runs("ticket")
    served.faces.live[run.id] = b"p"
    following = Background(served, "logs", "-f", "ticket")
    following.until(b"p")
    served.rig.executor.finish(run.id)
    served.rig.tick(seconds=1)
    following.join()
    assert (following.codes, following.out) == ([0], b"printed\n")


def test_cancel_and_retry(served: Served, capsys: Captured) -> None:
    served.schedctl("run-now", "ticket")
    capsys.readouterr()
    assert served.schedctl("cancel", "ticket", "--reason", "wrong") == 0
    who = getpass.getuser()
    assert capsys.readouterr().out.endswith(f": canceled by {who}: wrong\n")
    assert served.schedctl("cancel", "ticket") == 5
    capsys.readouterr()
    assert served.schedctl("retry", "ticket") == 0
    out, err = capsys.readouterr()
    old, new = served.rig.runs("ticket")
    assert (out.strip(), new.retry_of) == (new.id, old.id)
    assert f"again for {old.id[-8:]}" in err
    assert served.schedctl("cancel", "01234567-nope") == 4


def test_a_retry_that_goes_on_waiting_says_for_what(served: Served, capsys: Captured) -> None:
    served.rig.reload(JOBS.replace("retries: [1m]", "retries: [1m, 1m]\n    overlap: queue"))
    served.schedctl("run-now", "ticket")
    served.rig.tick()
    served.rig.finish(Failed(FailReason.EXIT, "exit 1"))
    (run,) = served.rig.runs("ticket")
    assert served.schedctl("retry", run.id, "--reason", "now") == 0
    assert "accepted, without waiting any longer" in capsys.readouterr().err
    served.rig.tick()
    served.rig.finish(Failed(FailReason.EXIT, "exit 1"))
    served.schedctl("run-now", "ticket", "--queue")
    served.rig.tick()
    served.rig.tick(minutes=2)
    assert served.schedctl("retry", run.id, "--reason", "still") == 0
    assert "accepted; it waits for its lock" in capsys.readouterr().err
    assert served.rig.run(run.id).note.endswith(": still")


def test_pause_and_resume(served: Served, capsys: Captured) -> None:
    assert served.schedctl("pause", "report", "minutely", "--until", "tomorrow 08:00", "--reason", "move") == 0
    assert capsys.readouterr().out.splitlines() == [
        f'{job}: paused by {getpass.getuser()} until Tue 08:00 Europe/Paris (in 23h): "move"'
        for job in ("report", "minutely")
    ]
    assert served.schedctl("pause", "report") == 0
    assert capsys.readouterr().out == f"report: paused by {getpass.getuser()} until somebody resumes it\n"
    assert served.schedctl("resume", "report", "ticket") == 0
    out, err = capsys.readouterr()
    assert out == "report: resumed\n"
    assert "ticket: was not paused" in err
    assert served.schedctl("resume", "--all", "-o", "name") == 0
    assert capsys.readouterr().out == "minutely\n"


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("report", "--all"),
        ("report", "--for", "2h", "--until", "tomorrow"),
        ("report", "--for", "2"),
        ("report", "--for", "0s"),
        ("report", "--until", "whenever"),
    ],
)
def test_a_pause_that_nobody_understands(served: Served, arguments: tuple[str, ...]) -> None:
    assert served.schedctl("pause", *arguments) == 2


def test_a_pause_of_nobody_pauses_nobody(served: Served) -> None:
    assert served.schedctl("pause", "report", "nobody") == 4
    assert served.schedctl("pause", "report", "--until", "2026-01-01") == 1
    with served.rig.store.read() as tx:
        assert tx.jobs.pauses(None, served.rig.clock.now()) == []


def test_diff_and_reload(served: Served, capsys: Captured) -> None:
    assert served.schedctl("diff") == 0
    assert "no difference (4 jobs)" in capsys.readouterr().err
    served.rig.text = JOBS.replace("  quiet:", "  silent:")
    assert served.schedctl("diff") == 1
    out, err = capsys.readouterr()
    assert [line for line in out.splitlines() if line[0] in "+-~"] == ["+ silent", "- quiet"]
    command = err.splitlines()[-1]
    assert command.startswith("next: schedctl reload --if-hash ")
    assert served.schedctl("reload", "--if-hash", "000000") == 5
    capsys.readouterr()
    assert served.schedctl(*command.split()[2:]) == 0
    assert "1 added, 0 changed, 1 removed, 3 unchanged" in capsys.readouterr().err
    served.rig.text = "jobs: {a: {schedule: x}}"
    assert served.schedctl("reload") == 1
    assert "jobs.yaml:1" in capsys.readouterr().err
    assert served.schedctl("diff") == 2


def test_removing_a_job_with_waiting_payloads_needs_a_word(served: Served, capsys: Captured) -> None:
    served.schedctl("run-now", "ticket", "--payload", "1")
    served.rig.text = JOBS.replace("  ticket:", "  tickets:")
    capsys.readouterr()
    assert served.schedctl("diff") == 1
    out, err = capsys.readouterr()
    assert "1 run with a payload (would become dead letters)" in out
    *_, drop, last = err.splitlines()
    assert drop.startswith("dropping them (1 dead letter) needs --drop-pending: schedctl reload --if-hash ")
    assert last == "next: schedctl runs ticket --status pending"
    assert served.schedctl(*last.split()[2:]) == 0
    assert served.schedctl("reload") == 5
    assert served.schedctl("reload", "--drop-pending") == 0
    capsys.readouterr()
    assert served.schedctl("status") == 1
    assert "1 dead letter" in capsys.readouterr().out


def test_removing_a_job_that_somebody_wants_needs_a_word(served: Served, capsys: Captured) -> None:
    served.schedctl("run-now", "ticket")
    served.rig.text = JOBS.replace("  ticket:", "  tickets:")
    capsys.readouterr()
    assert served.schedctl("diff") == 1
    out, err = capsys.readouterr()
    assert "waiting: 1 other run (started by hand or by a program; would be canceled)" in out
    assert "a reload is refused while these wait: let them finish first" in err
    assert "dropping them (1 canceled)" in err
    assert err.splitlines()[-1] == "next: schedctl runs ticket --status pending"
    assert served.schedctl("reload") == 5
    assert "ticket (1 other run)" in capsys.readouterr().err
    assert served.schedctl("reload", "--drop-pending") == 0


def test_a_file_is_compared_with_what_is_in_force(served: Served, tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "new.yaml"
    file.write_text(JOBS.replace("15 8 * * 1", "45 8 * * 1"), "utf-8")
    assert served.schedctl("diff", str(file)) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "~ report"
    assert "    next run: Mon 08:15 America/New_York (in 5h15m) → Mon 08:45 America/New_York (in 5h45m)" in out


def test_who_follows_a_run_waits_for_a_daemon_that_restarts(served: Served, capfd: pytest.CaptureFixture[str]) -> None:
    served.schedctl("run-now", "ticket")
    served.rig.tick()
    (run,) = served.rig.runs("ticket")
    served.faces.live[run.id] = b"one\n"
    following = Background(served, "logs", "-f", run.id)
    following.until(b"one")
    served.server.stop()
    following.until(b"trying again")
    served.rig.executor.finish(run.id)
    served.rig.tick(seconds=1)
    reading, acting = served.faces.apps()
    again = WebServer(reading, acting, None, served.socket)
    again.open()
    again.start()
    following.join()
    again.stop()
    assert following.codes == [0]
    assert b"COMPLETED" in following.err
