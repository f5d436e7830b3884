from __future__ import annotations

from pathlib import Path

from scheduler.core.secret import Secret
from scheduler.executors.attempts.records import AttemptRecords
from tests.executors.harness import Bench, secret, until


def later(bench: Bench, environ: dict[str, str]) -> AttemptRecords:
    """The records as the next daemon has them."""
    return AttemptRecords(bench.state, environ)


def test_a_later_daemon_finds_what_was_left(bench: Bench) -> None:
    going = bench.start(
        "command",
        {"command": 'echo "some output"; echo \'{"result": 5}\' >> $SCHED_REPORT_FILE'},
        run={"attempt": 2},
        log_limit=1000,
    )
    going.succeeded()
    key = going.launch.run.id, 2
    found = later(bench, {})
    assert bench.records.left_behind() == []
    assert found.left_behind() == [key]
    [output] = found.outputs([key])
    assert (output.head, output.complete, output.attempt) == (b"some output\n", True, 2)
    assert found.of(*key).finish() == 5
    found.forget([key])
    assert found.left_behind() == []
    assert list((bench.state / "runs").iterdir()) == []


def test_what_a_child_left_beside_its_files_goes_when_it_is_over(bench: Bench) -> None:
    going = bench.start("command", {"command": 'echo 1 > "$SCHED_REPORT_FILE.tmp"; echo x > "$SCHED_REPORT_FILE.a.b"'})
    going.succeeded()
    key = going.launch.run.id, 1
    strange = bench.state / "runs" / "a-file-of-somebody-else"
    strange.touch()
    found = later(bench, {})
    assert found.left_behind() == [key]
    assert len(list((bench.state / "runs").iterdir())) == 1 + 2 + 1, "it may still need them"
    found.forget([key])
    assert found.left_behind() == []
    assert list((bench.state / "runs").iterdir()) == [strange]


def test_a_later_daemon_masks_with_secrets_read_again(bench: Bench, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("swordfish-9\n")
    bench.environ["TOKEN"] = "tok-very-secret"
    going = bench.start(
        "command",
        {"command": 'echo "$ONE $TWO"'},
        secrets={"ONE": secret("TOKEN"), "TWO": Secret(file=str(file))},
    )
    going.succeeded()
    key = going.launch.run.id, 1
    [output] = later(bench, {"TOKEN": "tok-very-secret"}).outputs([key])
    assert output.head == b"*** ***\n"


def test_what_can_no_longer_be_masked_is_withheld(bench: Bench) -> None:
    bench.environ["TOKEN"] = "tok-very-secret"
    going = bench.start("command", {"command": "echo $ONE"}, secrets={"ONE": secret("TOKEN")})
    going.succeeded()
    [output] = later(bench, {}).outputs([(going.launch.run.id, 1)])
    assert b"tok-very-secret" not in output.head
    assert b"withheld" in output.head
    assert b"TOKEN" in output.head


def test_output_of_nothing_is_empty(bench: Bench) -> None:
    [output] = bench.records.outputs([("no-such-run", 1)])
    assert (output.head, output.tail, output.omitted) == (b"", b"", 0)
    bench.records.forget([("no-such-run", 1)])


def test_live_output_is_not_complete(bench: Bench) -> None:
    going = bench.start("command", {"command": "echo begun; exec sleep 600"})
    going.until_output("begun")
    [output] = bench.records.outputs([(going.launch.run.id, 1)])
    assert not output.complete
    going.end("cancel")
    going.outcome()
    [output] = bench.records.outputs([(going.launch.run.id, 1)])
    assert output.complete


def test_forgetting_is_told(bench: Bench) -> None:
    told: list[tuple[str, int]] = []
    going = bench.start("command", {"command": "true"})
    going.succeeded()
    bench.records.when_forgotten(lambda run, attempt: told.append((run, attempt)))
    bench.records.forget([(going.launch.run.id, 1)])
    assert told == [(going.launch.run.id, 1)]
    assert not Path(going.launch.environment["SCHED_REPORT_FILE"]).exists()


def test_attempts_of_one_run_have_files_of_their_own(bench: Bench) -> None:
    first = bench.start("command", {"command": "echo one"})
    first.succeeded()
    run = first.launch.run
    second = bench.start("command", {"command": "echo two"}, run={"id": run.id, "attempt": 2})
    second.succeeded()
    bench.records.forget([(run.id, 1)])
    assert second.output() == "two\n"
    third = bench.start("command", {"command": "echo again"}, run={"id": run.id, "attempt": 2})
    third.succeeded()
    assert third.output() == "again\n"


def test_a_prefix_does_not_help_a_secret_out(bench: Bench) -> None:
    bench.environ["TOKEN"] = "tok-very-secret"
    going = bench.start(
        "command", {"command": 'echo "$ONE"; echo "${ONE#Bearer }"'}, secrets={"ONE": secret("TOKEN", "Bearer ")}
    )
    going.succeeded()
    assert going.output() == "***\n***\n"
    [output] = later(bench, bench.environ).outputs([(going.launch.run.id, 1)])
    assert output.head == b"***\n***\n"


def test_secrets_never_get_into_reports(bench: Bench) -> None:
    bench.environ["TOKEN"] = "tok-very-secret"
    script = 'echo "{\\"message\\": \\"using $ONE\\", \\"checkpoint\\": {\\"$ONE\\": 1}}" >> $SCHED_REPORT_FILE'
    bench.start("command", {"command": script}, secrets={"ONE": secret("TOKEN")}).succeeded()
    [report] = bench.records.reports()
    assert report.message == "using ***"
    assert report.checkpoint == {"***": 1}


def test_output_is_trimmed_while_nobody_looks_at_it(bench: Bench) -> None:
    program = "head -c 20000000 /dev/zero | tr '\\0' x; echo; echo end; exec sleep 600"
    going = bench.start("command", {"command": program}, log_limit=100_000)
    path = Path(bench.records.workspaces.of(going.launch.run.id, 1).output)
    until(lambda: path.stat().st_size > 20_000_000, "all of it to be written")
    bench.records.reports()
    assert path.stat().st_blocks * 512 < 1_000_000
    going.end("cancel")
    going.outcome()
    assert going.output().endswith("x\nend\n")
