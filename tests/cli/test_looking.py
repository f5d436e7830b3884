"""The verbs that look, against a served daemon."""

from __future__ import annotations

import getpass
from datetime import timedelta

import pytest

from scheduler.cli.daemon import Daemon
from scheduler.core.model import FailReason
from scheduler.core.outcome import Canceled, Failed
from scheduler.core.remark import Remark
from scheduler.core.requests import Advance
from tests.cli.screen import Screen
from tests.faces import JOBS


def failed(code: int = 1) -> Failed:
    return Failed(FailReason.EXIT, f"exit code {code}", exit_code=code)


def test_list(screen: Screen) -> None:
    screen.rig.tick(minutes=1)
    assert [line.split() for line in screen("list")] == [
        ["JOB", "NEXT", "(Europe/Paris)", "LEFT", "LAST", "RESULT", "TOOK", "STATE"],
        ["minutely", "Mon", "09:02", "in", "1m", "now", "running", "0.0s", "running"],
        ["quiet", "-", "-", "never", "-", "-", "disabled"],
        ["report", "Mon", "14:15", "in", "5h14m", "never", "-", "-", "new"],
        ["ticket", "-", "-", "never", "-", "-", "new"],
    ]
    assert screen.err.splitlines() == ["4 jobs: 2 new, 1 running, 1 disabled", "next: schedctl describe minutely"]
    assert screen("list", "-o", "name", "--running") == ["minutely"]
    assert screen("list", "nothing-like-that") == []
    assert "no job matches" in screen.err


def test_list_shows_what_is_wrong(screen: Screen) -> None:
    screen.rig.tick(minutes=1)
    screen.rig.executor.finish_all(failed(3))
    screen.rig.tick(seconds=1)
    row = next(line for line in screen("list") if line.startswith("minutely"))
    assert "exit 3" in row
    assert row.endswith("failing 1×")
    assert screen.err.endswith("next: schedctl describe minutely\n")


def test_runs_shows_skips_with_their_reason(screen: Screen) -> None:
    screen.rig.tick(minutes=1)
    screen.rig.tick(minutes=1)
    screen.rig.tick(minutes=1)
    (running,) = screen.rig.runs("minutely")
    lines = screen("runs", "minutely")
    assert lines[0].split() == ["RUN", "AT", "(Europe/Paris)", "STATUS", "TOOK", "TRY", "RESULT", "CAUSE"]
    assert lines[1].split()[:3] == ["-", "Mon", "09:02"]
    assert "SKIPPED" in lines[1]
    assert f"overlap 2×: run {running.id[-8:]} is still running, Mon 09:02 to 09:03" in lines[1]
    assert lines[2].split()[:5] == [running.id[-8:], "Mon", "09:01", "RUNNING", "2m"]
    assert screen.err == f"next: schedctl runs {running.id[-8:]}\n"
    assert len(screen("runs", "--no-skips")) == 2
    assert screen("runs", "-o", "name") == [running.id]


def test_runs_are_in_the_order_in_which_they_were_recorded(screen: Screen) -> None:
    """What is made up for was asked for after what a person asked for meanwhile, whatever it was scheduled for."""
    screen.rig.reload(JOBS.replace("    command: [minutely]", "    command: [minutely]\n    catch_up: all"))
    screen.rig.tick(minutes=1)
    screen.rig.executor.finish_all()
    screen.rig.tick(seconds=1)
    screen.rig.clock.turn(minutes=3)
    screen("run-now", "ticket")
    for _ in range(4):
        screen.rig.tick(seconds=2)
        screen.rig.executor.finish_all()
        screen.rig.tick(seconds=1)
    lines = screen("runs")
    assert lines[0].split()[:5] == ["RUN", "JOB", "AT", "(Europe/Paris)", "DELAY"]
    rows = [line.split() for line in lines[1:]]
    assert [row[1] for row in rows] == ["minutely", "minutely", "minutely", "ticket", "minutely"]
    of_minutely = [(row[3], row[4]) for row in rows if row[1] == "minutely"]
    assert [instant for instant, _ in of_minutely] == ["09:04:00", "09:03:00", "09:02:00", "09:01:00"]
    assert len({delay for _, delay in of_minutely}) == 4
    assert of_minutely[-1][1] == "-"
    assert screen("runs", "-o", "name")[0] == screen.json("runs")[0]["run_id"]
    page = Daemon(str(screen.served.socket), {}).get("/v1/runs")["entries"]
    assert [one["run_id"] for one in page] == screen("runs", "-o", "name")
    recent = screen.json("describe", "minutely", "--runs", "4")["recent"]
    assert [one["scheduled_for"][11:16] for one in recent] == ["08:04", "08:03", "08:02", "08:01"]


def test_a_range_of_skips_stands_where_it_began(screen: Screen) -> None:
    """It stays there while it grows, so that pages are pieces of one list."""
    screen.rig.reload(JOBS + '  other:\n    schedule: "3 3 * * *"\n    command: [other]\n')
    screen("pause", "other")
    for _ in range(5):
        screen.rig.tick(minutes=1)
    rows = [line.split()[:4] for line in screen("runs")[1:]]
    assert [(row[1], row[3]) for row in rows] == [("other", "09:03"), ("minutely", "09:02"), ("minutely", "09:01")]


def test_runs_of_nothing_and_of_nobody(screen: Screen) -> None:
    assert screen("runs", "report") == []
    assert (screen.code, "nothing in the history matches" in screen.err) == (0, True)
    assert screen("runs", "reprot") == []
    assert screen.code == 4
    assert "did you mean report?" in screen.err
    screen("runs", "--since", "whenever")
    assert screen.code == 2


def test_runs_that_failed(screen: Screen) -> None:
    screen.rig.tick(minutes=1)
    screen.rig.executor.finish_all(Failed(FailReason.EXIT, "exit 1", retryable=False))
    screen.rig.tick(seconds=1)
    screen("run-now", "report")
    failed = screen("runs", "--failed", "-o", "name")
    assert failed == screen("runs", "minutely", "--status", "failed", "-o", "name")
    assert len(failed) == 1


def test_runs_since(screen: Screen) -> None:
    screen.rig.tick(minutes=1)
    screen.rig.tick(minutes=30)
    assert len(screen("runs", "minutely", "--since", "5m")) < len(screen("runs", "minutely", "--since", "1h"))


def test_runs_over_several_pages(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduler.cli.verbs.runs.PAGE", 2)
    for number in range(5):
        screen("run-now", "ticket", "--payload", str(number))
    assert len(screen("runs", "ticket", "-o", "name")) == 5
    assert len(screen("runs", "ticket", "-n", "3", "-o", "name")) == 3


def test_describe(screen: Screen) -> None:
    screen.rig.tick(minutes=1)
    screen.rig.executor.finish_all(failed())
    screen.rig.tick(seconds=1)
    text = "\n".join(screen("describe", "minutely"))
    for part in (
        "State         failing: its last run failed",
        "Every minute.",
        "Next run      Mon 03:02 America/New_York = Mon 09:02 Europe/Paris (in 59s)",
        "Deadline      Mon 09:11 Europe/Paris (in 9m)",
        "Last success  never",
        "  TIME (America/New_York)  UTC        LEFT    NOTE",
        "  Mon 03:02                Mon 08:02  in 59s",
        "FAILED  0.0s  1    exit 1",
        "  overlap          skip",
        "  schedule         [* * * * *]",
    ):
        assert part in text, part
    (run,) = screen.rig.runs("minutely")
    assert f"Failed run    {run.id[-8:]}: exit code 1\n" in text
    assert screen.err == f"next: schedctl logs {run.id[-8:]}\n"
    assert screen("describe", "report")[:2] == ["report", "  每周报告 of the shop"]


def test_describe_of_a_job_that_was_removed(screen: Screen) -> None:
    screen.rig.reload(JOBS.replace("  minutely:", "  hourly:"))
    lines = screen("describe", "minutely")
    (head,) = [line for line in lines if line.startswith("State")]
    assert head.startswith("State         removed from jobs.yaml; its history is kept, since ")
    assert "Next run      - (removed)" in lines
    assert lines[lines.index(head) + 1].startswith("Schedule")
    assert lines[lines.index(head) + 2].strip()


def test_describe_says_which_run_failed_and_what_to_type_whatever_ran_after_it(screen: Screen) -> None:
    """As `status` does: the newest run of a failing job may be one that was canceled."""
    screen.rig.tick(minutes=1)
    screen.rig.executor.finish_all(failed())
    screen.rig.tick(seconds=1)
    (run,) = screen.rig.runs("minutely")
    screen.rig.tick(minutes=1)
    screen("cancel", "minutely")
    screen.rig.tick(seconds=1)
    screen.rig.executor.finish_all(Canceled("cancel"))
    screen.rig.tick(seconds=1)
    assert screen.rig.statuses("minutely") == ["FAILED", "CANCELED"]
    short = run.id[-8:]
    lines = screen("describe", "minutely")
    assert screen.err == f"next: schedctl logs {short}\n"
    start = lines.index(f"Failed run    {short}: exit code 1")
    assert [one.strip() for one in lines[start + 1 : start + 4]] == [
        "last line: printed",
        f"→ schedctl logs {short}",
        f"→ schedctl retry {short}",
    ]
    problem = screen.json("describe", "minutely")["problem"]
    assert problem == screen.json("status")["problems"][0]
    assert screen.json("describe", "report")["problem"] is None


def test_an_error_that_was_also_printed_last_is_told_once(screen: Screen) -> None:
    screen.rig.tick(minutes=1)
    screen.rig.executor.finish_all(Failed(FailReason.HTTP, "printed"))
    screen.rig.tick(seconds=1)
    for verb in (("status",), ("describe", "minutely")):
        text = "\n".join(screen(*verb))
        assert "last line" not in text, verb
        assert "printed" in text, verb
    assert screen.json("status")["problems"][0]["last_line"] == "printed"


def test_describe_a_job_that_raised_an_alarm(screen: Screen) -> None:
    with screen.rig.store.begin() as tx:
        tx.jobs.set_alarm("report", "planning failed: oops", enabled=False)
    assert "State         alarm: planning failed: oops" in screen("describe", "report")
    assert screen.err == "next: schedctl reload\n"


def test_describe_a_paused_job(screen: Screen) -> None:
    screen("pause", "report", "--for", "2h", "--reason", "move")
    text = "\n".join(screen("describe", "report"))
    assert f"Pause         paused by {getpass.getuser()} until Mon 11:00 Europe/Paris (in 2h): " in text
    assert ': "move"' in text
    assert "; skipped unless it is resumed before" not in text, "the pause ends before its next run"
    screen("pause", "report")
    (coming,) = [line for line in screen("describe", "report") if line.startswith("Next run")]
    assert coming.endswith("; skipped unless it is resumed before")
    assert screen.err == "next: schedctl resume report\n"


def test_the_list_says_no_time_that_falls_into_a_pause(screen: Screen) -> None:
    def coming() -> str:
        return next(line for line in screen("list") if line.startswith("report"))

    times = coming()
    assert "in 5h" in times
    screen("pause", "report", "--for", "2h")
    assert "in 5h" in coming(), "the pause ends before"
    screen("pause", "report")
    assert coming().split()[1:3] == ["-", "-"]


def test_next_of_jobs(screen: Screen) -> None:
    lines = screen("next", "-n", "2")
    assert lines[0].split() == ["JOB", "TIME", "(America/New_York)", "TIME", "(UTC)", "LEFT", "NOTE"]
    assert lines[1].split() == ["minutely", "Mon", "03:01", "Mon", "08:01", "in", "1m"]
    found = screen.json("next", "report", "-n", "1")
    assert isinstance(found, list)
    assert found[0]["utc"] == "2026-03-02T13:15:00Z"
    assert screen("next", "quiet") == []
    assert "nothing is to come" in screen.err
    screen("next", "nobody")
    assert screen.code == 4


def test_logs(screen: Screen) -> None:
    screen.rig.tick(minutes=1)
    screen.rig.executor.finish_all()
    screen.rig.tick(seconds=1)
    assert screen("logs", "minutely") == ["printed"]
    assert "COMPLETED after 0.0s: ok" in screen.err
    (run,) = screen.rig.runs("minutely")
    assert screen.json("logs", run.id[-8:]) == {"run_id": run.id, "attempt": 1, "output": "printed\n"}
    screen("logs", "minutely", "--attempt", "2")
    assert screen.code == 4
    screen("logs", "report")
    assert screen.code == 4


def test_logs_of_a_running_run(screen: Screen) -> None:
    screen.rig.tick(minutes=1)
    (run,) = screen.rig.runs("minutely")
    screen.served.faces.live[run.id] = b"half a li"
    assert screen("logs", "minutely") == ["half a li"]
    assert screen.err.endswith(f"next: schedctl logs -f {run.id[-8:]}\n")


def test_status_is_0_when_all_is_well_and_1_when_not(screen: Screen) -> None:
    lines = screen("status")
    assert screen.code == 0
    assert lines[0].startswith("✓ all is well")
    screen.rig.tick(minutes=1)
    screen.rig.executor.finish_all(failed())
    screen.rig.tick(seconds=1)
    lines = screen("status")
    assert screen.code == 1
    assert lines[0].startswith("✗ 1 thing needs attention")
    assert lines[2] == "✗ minutely  failed at its last run, Mon 09:01 Europe/Paris (1s ago)"
    assert "    last line: printed" in lines
    (run,) = screen.rig.runs("minutely")
    assert f"    → schedctl logs {run.id[-8:]}" in lines
    assert screen.err == f"next: schedctl logs {run.id[-8:]}\n"
    assert screen("status", "-o", "name") == ["minutely"]


def test_status_says_what_is_wrong_with_the_daemon_itself(screen: Screen) -> None:
    screen.served.faces.said = [
        Remark("leaving", "this node is leaving: it plans and claims nothing"),
        Remark("configuration", "the last reload was refused: a.yaml:1:1: no\na.yaml:2:1: neither"),
    ]
    lines = screen("status")
    assert screen.code == 1
    assert lines[0].startswith("✗ 2 things need attention")
    assert any("this node is leaving" in line for line in lines)
    first = lines.index("✗ configuration  the last reload was refused: a.yaml:1:1: no")
    assert lines[first + 1] == "    a.yaml:2:1: neither", "a line for each error"


def test_audit(screen: Screen) -> None:
    for _ in range(3):
        screen.rig.tick(minutes=1)
        screen.rig.executor.finish_all()
        screen.rig.tick(seconds=1)
    screen.rig.tick(minutes=2)
    lines = screen("audit", "--since", "1h")
    assert screen.code == 0
    assert lines[0].split() == ["JOB", "EXPECTED", "RAN", "SKIPPED", "UNACCOUNTED"]
    assert lines[1].split()[0] == "minutely"
    assert "unaccounted" in screen.err
    with screen.rig.store.begin() as tx:
        due = tx.jobs.states(["minutely"])["minutely"].next_due_at
        assert due is not None
        tx.jobs.advance([Advance("minutely", due, due + timedelta(minutes=5))])
    screen.rig.clock.turn(minutes=10)
    of_one = screen("audit", "--since", "1h", "--job", "minutely")
    assert any("unaccounted" in line for line in of_one)
    assert screen("audit", "minutely", "--since", "1h") == of_one
    assert screen.code == 1
    assert screen.err.endswith("next: schedctl runs minutely\n")


@pytest.mark.parametrize("since", ["tomorrow", "2027-01-01", "now", "in 2h"])
def test_what_is_to_come_cannot_be_audited(screen: Screen, since: str) -> None:
    assert screen("audit", "--since", since) == []
    assert screen.code == 2
    assert "what is still to come cannot be audited; write how long ago (7d)" in screen.err


def test_runs_between_an_end_and_a_later_beginning(screen: Screen) -> None:
    assert screen("runs", "--since", "1h", "--until", "2h") == []
    assert screen.code == 2
    assert "--since 1h is not before --until 2h" in screen.err


def test_show_names_the_lines(screen: Screen) -> None:
    lines = screen("show", "report", "--no-defaults")
    assert lines[0].split() == ["KEY", "VALUE", "WHERE"]
    assert any(line.split() == ["timezone", "America/New_York", "jobs.yaml:3"] for line in lines)
    assert not any("(default)" in line for line in lines)


def test_nodes_and_database(screen: Screen) -> None:
    assert screen("nodes")[1].split()[:4] == [screen.rig.node[-8:], "host", "1", "live"]
    assert screen("db", "status")[0].startswith("sqlite")


@pytest.mark.parametrize("verb", ["list", "status", "runs", "next", "nodes", "audit", "show"])
def test_every_answer_comes_as_yaml_too(screen: Screen, verb: str) -> None:
    import yaml

    assert yaml.safe_load("\n".join(screen(verb, "-o", "yaml"))) == screen.json(verb)
