"""The verbs that need no daemon."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.typed import Typist

GOOD = """
defaults: {timezone: Europe/Paris}
jobs:
  a: {schedule: "0 8 * * *", command: [echo]}
"""


@pytest.fixture
def schedctl(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Typist:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TZ", "Europe/Paris")
    return Typist(capsys)


def test_check_a_good_file(schedctl: Typist) -> None:
    Path("jobs.yaml").write_text(GOOD)
    answer = schedctl("check")
    assert (answer.code, answer.out) == (0, "")
    assert answer.err.startswith("✓ 1 job ")
    assert schedctl("check", SCHEDULER_CONFIG="elsewhere.yaml").code == 1


def test_check_says_all_errors_with_their_lines(schedctl: Typist) -> None:
    Path("bad.yaml").write_text(
        GOOD + "  b: {schedul: x, command: [echo]}\n  c: {schedule: '61 * * * *', command: [echo]}\n"
    )
    answer = schedctl("check", "bad.yaml")
    assert answer.code == 1
    lines = answer.out.splitlines()
    assert [line.split(":")[:2] for line in lines] == [["bad.yaml", "5"], ["bad.yaml", "6"]]
    assert "did you mean `schedule`" in lines[0]
    assert answer.err.startswith("✗ 2 errors\nbegin with bad.yaml:5\nnext: schedctl check bad.yaml")
    data = schedctl("check", "bad.yaml", "-o", "json").data
    assert data["good"] is False
    assert [one["line"] for one in data["errors"]] == [5, 6]


def test_check_reads_stdin(schedctl: Typist, monkeypatch: pytest.MonkeyPatch) -> None:
    def given(text: bytes) -> int:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
        return schedctl("check", "-").code

    assert given(GOOD.encode()) == 0
    assert given(b"jobs: [") == 1
    assert given(b"\xff\x00\xfe") == 1
    assert given(b"") == 1


def test_strict_makes_errors_of_warnings(schedctl: Typist) -> None:
    Path("jobs.yaml").write_text(
        GOOD + "  b: {schedule: '0 8 * * *', command: [echo], secrets: {X: {env: NOPE_NOT_SET}}}\n"
    )
    loose = schedctl("check")
    assert loose.code == 0
    assert "warning: jobs.yaml:5" in loose.out
    assert schedctl("check", "--strict").code == 1


def test_a_warning_is_told_with_its_code_and_can_be_acknowledged(schedctl: Typist) -> None:
    job = "  b: {schedule: '30 2 * * *', command: [echo]"
    Path("jobs.yaml").write_text(f"{GOOD}{job}}}\n")
    answer = schedctl("check", "--strict")
    assert answer.code == 1
    assert "acknowledge: [clock-change]" in answer.out
    assert "✗ 2 jobs, 2 warnings (--strict: each is an error)" in answer.err
    assert schedctl("check", "-o", "json").data["warnings"][0]["code"] == "clock-change"
    Path("jobs.yaml").write_text(f"{GOOD}{job}, acknowledge: [clock-change]}}\n")
    assert schedctl("check", "--strict").code == 0
    assert ["acknowledge", "[clock-change]", "jobs.yaml:5"] in [
        line.split() for line in schedctl("show", "b", "--file", "jobs.yaml").out.splitlines()
    ]


def test_a_file_for_another_machine(schedctl: Typist) -> None:
    Path("jobs.yaml").write_text("jobs: {a: {command: [no-such-program], secrets: {X: {env: NOPE_NOT_SET}}}}\n")
    answer = schedctl("check")
    assert answer.code == 0
    assert answer.out.count("on this machine") == 2
    assert schedctl("check", "--strict").code == 1
    assert schedctl("check", "--strict", "--elsewhere").code == 0


def test_show_a_file(schedctl: Typist) -> None:
    Path("jobs.yaml").write_text(GOOD)
    answer = schedctl("show", "a", "--file", "jobs.yaml", "--no-defaults")
    assert [line.split() for line in answer.out.splitlines()] == [
        ["KEY", "VALUE", "WHERE"],
        ["command", "[echo]", "jobs.yaml:4"],
        ["schedule", "[0", "8", "*", "*", "*]", "jobs.yaml:4"],
        ["timezone", "Europe/Paris", "jobs.yaml:2"],
    ]
    assert schedctl("show", "b", "--file", "jobs.yaml").code == 4
    assert schedctl("show", "--file", "nothing.yaml").code == 1


def test_diff_of_two_files(schedctl: Typist) -> None:
    Path("old.yaml").write_text(GOOD)
    Path("new.yaml").write_text(GOOD.replace("0 8", "30 8") + "  b: {schedule: '@daily', command: [echo]}\n")
    assert schedctl("diff", "old.yaml", "old.yaml").code == 0
    answer = schedctl("diff", "old.yaml", "new.yaml")
    assert answer.code == 1
    assert answer.out.splitlines() == [
        "+ b",
        "    added: @daily Europe/Paris",
        "    next run: Tue 00:00 Europe/Paris (in 15h)",
        "~ a",
        '    schedule: ["0 8 * * *"] → ["30 8 * * *"]',
        "    next run: Tue 08:00 Europe/Paris (in 23h) → Tue 08:30 Europe/Paris (in 23h)",
    ]
    Path("bad.yaml").write_text("jobs: [")
    assert schedctl("diff", "old.yaml", "bad.yaml").code == 2
    assert schedctl("diff", "a", "b", "c").code == 2


def test_init_writes_a_file_that_is_good(schedctl: Typist) -> None:
    answer = schedctl("init", "--timezone", "Asia/Tokyo")
    assert (answer.code, answer.out) == (0, "jobs.yaml\njobs.schema.json\n")
    assert yaml.safe_load(Path("jobs.yaml").read_text())["defaults"]["timezone"] == "Asia/Tokyo"
    assert "$schema=./jobs.schema.json" in Path("jobs.yaml").read_text().splitlines()[0]
    assert Path("jobs.schema.json").read_text() == schedctl("schema").out
    assert schedctl("check", "--strict").code == 0
    assert schedctl("init").code == 5
    assert schedctl("init", "missing/jobs.yaml").code == 1
    assert schedctl("init", "--timezone", "CST").code == 2
    assert "Europe/Paris" in schedctl("init", "-").out
    Path("jobs.schema.json").write_text("mine")
    assert schedctl("init", "other.yaml").out == "other.yaml\n"
    assert Path("jobs.schema.json").read_text() == "mine"


def test_schema(schedctl: Typist) -> None:
    assert schedctl("schema").data["$schema"] == "http://json-schema.org/draft-07/schema#"


CRONTAB = """\
MAILTO=ops@example.org
# Rotate the logs
5 4 * * * /usr/bin/rotate --all
@reboot /usr/bin/warm-up
"""


def test_import_crontab(schedctl: Typist) -> None:
    Path("tab").write_text(CRONTAB)
    answer = schedctl("import-crontab", "tab", "--timezone", "Europe/Paris")
    assert answer.code == 0
    made = yaml.safe_load(answer.out)["jobs"]
    assert made["rotate"]["schedule"] == "5 4 * * *"
    assert made["rotate"]["description"] == "Rotate the logs"
    assert "schedule" not in made["warm-up"]
    for word in ("tab:1: MAILTO", "@reboot", "run-now warm-up", "The switch"):
        assert word in answer.err
    Path("jobs.yaml").write_text(answer.out)
    assert schedctl("check").code == 0


def test_import_crontab_ends_with_1_when_lines_are_lost(schedctl: Typist) -> None:
    Path("tab").write_text(CRONTAB + "61 * * * * bad\n")
    answer = schedctl("import-crontab", "tab")
    assert answer.code == 1
    assert len(yaml.safe_load(answer.out)["jobs"]) == 2
    assert "lost: tab:5: 61 * * * * bad" in answer.err
    assert "✗ 1 line was lost" in answer.err
    found = schedctl("import-crontab", "tab", "-o", "json")
    assert found.code == 1
    assert [(one["line"], one["lost"]) for one in found.data["left_out"]] == [(1, False), (5, True)]


def test_import_crontab_reads_folders_and_stdin(schedctl: Typist, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("cron.d").mkdir()
    Path("cron.d/php").write_text("9 * * * * root /usr/bin/clean\n")
    Path("cron.d/.placeholder").write_text("# made by a package\n")
    found: Any = schedctl("import-crontab", "--system", "cron.d", "-o", "json").data
    assert len(found["jobs"]) == 1
    assert "user: root" in found["yaml"]
    assert found["left_out"] == []
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xff * * * * x\n1 1 * * * y\n")))
    assert len(schedctl("import-crontab", "-", "-o", "name").out.split()) == 1
    assert schedctl("import-crontab", "nothing").code == 4


def test_import_crontab_knows_where_lines_have_a_user(schedctl: Typist) -> None:
    Path("etc").mkdir()
    Path("etc/crontab").write_text("9 * * * * root /usr/bin/clean\n")
    Path("tab").write_text("9 * * * * root /usr/bin/clean\n")
    Path("mine").write_text("9 * * * * cd / && /usr/bin/clean\n")
    assert "user: root" in schedctl("import-crontab", "etc/crontab").out
    answer = schedctl("import-crontab", "tab")
    assert (answer.code, answer.out) == (2, "")
    assert "hint: add --system" in answer.err
    answer = schedctl("import-crontab", "mine", "--system")
    assert (answer.code, answer.out) == (2, "")
    assert "hint: leave out --system" in answer.err
    answer = schedctl("import-crontab", "--system")
    assert (answer.code, answer.out) == (2, "")
    assert "/etc/cron.d" in answer.err


def test_import_crontab_says_which_file_to_change(schedctl: Typist) -> None:
    Path("tab").write_text("9 * * * * root /usr/bin/clean\n")
    said = schedctl("import-crontab", "tab", "--system").err
    assert "comment the lines out (tab)" in said
    assert "crontab -e" not in said


@pytest.mark.parametrize("text", ["", "# nothing\n", "MAILTO=me\n"])
def test_import_crontab_of_nothing_is_no_switch(schedctl: Typist, text: str) -> None:
    Path("tab").write_text(text)
    answer = schedctl("import-crontab", "tab")
    assert (answer.code, answer.out) == (1, "")
    assert "✗ nothing that cron runs was found in tab" in answer.err
    assert "The switch" not in answer.err
    found = schedctl("import-crontab", "tab", "-o", "json")
    assert (found.code, found.data["jobs"], found.data["steps"]) == (1, [], [])
    Path("cron.d").mkdir()
    assert "was found in cron.d" in schedctl("import-crontab", "cron.d").err


def test_import_crontab_of_somebody_else(schedctl: Typist, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"1 1 * * * /usr/bin/y\n")))
    (job,) = yaml.safe_load(schedctl("import-crontab", "-", "--user", "nobody").out)["jobs"].values()
    assert (job["user"], job["workdir"]) == ("nobody", "/")
    assert schedctl("import-crontab", "-", "--user", "nobody", "--system").code == 2


def test_explain(schedctl: Typist) -> None:
    answer = schedctl("explain", "0 0 13 * 5", "--timezone", "Europe/Berlin")
    assert answer.code == 0
    assert answer.out.startswith("At 00:00 on day 13 of the month, and on Friday (either is enough).")
    assert "warning: `0 0 13 * 5`" in answer.out
    assert "  Fri 00:00 Europe/Berlin = Fri 00:00 Europe/Paris (in 3d15h)" in answer.out
    assert schedctl("explain", "0", "8", "*", "*", "1", "-o", "json").data["expressions"] == ["0 8 * * 1"]
    assert schedctl("explain", "0 8 * * 9").code == 1
    answer = schedctl("explain", "weekly-report")
    assert answer.code == 1
    assert "weekly-report is not a cron expression\n" in answer.err
    assert "for a job: schedctl describe weekly-report\n" in answer.err
    assert schedctl("explain", "0 8 * * 1", "--timezone", "CST").code == 2
    assert schedctl("explain").code == 2


def test_json_is_for_machines(schedctl: Typist) -> None:
    found = json.loads(schedctl("explain", "0 0 1 1 *", "--tz", "UTC", "--json").out)
    assert [one["utc"] for one in found["next"]] == [f"{year}-01-01T00:00:00Z" for year in (2027, 2028, 2029)]
