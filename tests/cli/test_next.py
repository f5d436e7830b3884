"""`schedctl next --cron`: right for any expression, zone and start, and a clean refusal for everything else."""

from __future__ import annotations

import json
import shlex
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cli.typed import Typist

CASES = [
    # expression, zone, from, [(utc, local)]
    (
        "15 2 * * *",
        "America/New_York",
        "2026-03-07T12:00:00Z",
        [("2026-03-08T07:00:00Z", "2026-03-08T03:00:00-04:00"), ("2026-03-09T06:15:00Z", "2026-03-09T02:15:00-04:00")],
    ),
    (
        "30 1 * * *",
        "America/New_York",
        "2026-11-01T00:00:00-04:00",
        [("2026-11-01T05:30:00Z", "2026-11-01T01:30:00-04:00"), ("2026-11-02T06:30:00Z", "2026-11-02T01:30:00-05:00")],
    ),
    (
        "*/30 * * * *",
        "America/New_York",
        "2026-11-01T05:00:00Z",
        [("2026-11-01T05:30:00Z", "2026-11-01T01:30:00-04:00"), ("2026-11-01T06:00:00Z", "2026-11-01T01:00:00-05:00")],
    ),
    ("0 8 * * 1", "Asia/Shanghai", "2026-03-02T00:00:00Z", [("2026-03-09T00:00:00Z", "2026-03-09T08:00:00+08:00")]),
    ("0 0 29 2 1", "UTC", "2026-01-01", [("2026-02-02T00:00:00Z", "2026-02-02T00:00:00+00:00")]),
    ("30 0 0 L * *", "Asia/Kathmandu", "2026-02-27", [("2026-02-27T18:15:30Z", "2026-02-28T00:00:30+05:45")]),
    ("@hourly", "Australia/Lord_Howe", "2026-04-04T15:00:00Z", [("2026-04-04T15:30:00Z", "2026-04-05T02:00:00+10:30")]),
    ("0 9 * * FRI#2", "Europe/London", "2026-03-13T09:00:00Z", [("2026-04-10T08:00:00Z", "2026-04-10T09:00:00+01:00")]),
    ("0 0 1 1 *", "UTC", "2026-01-01T00:00:00Z", [("2027-01-01T00:00:00Z", "2027-01-01T00:00:00+00:00")]),
    ("0 0 1 1 *", "UTC", "2025-12-31T23:59:59.999999Z", [("2026-01-01T00:00:00Z", "2026-01-01T00:00:00+00:00")]),
]


@pytest.fixture
def schedctl(capsys: pytest.CaptureFixture[str]) -> Typist:
    return Typist(capsys)


@pytest.mark.parametrize(("cron", "zone", "start", "right"), CASES)
def test_times(schedctl: Typist, cron: str, zone: str, start: str, right: list[tuple[str, str]]) -> None:
    answer = schedctl(
        "next", "--cron", cron, "--timezone", zone, "--from", start, "--count", str(len(right)), "-o", "json"
    )
    assert (answer.code, answer.err) == (0, "")
    assert [(one["utc"], one["local"]) for one in answer.data] == right
    assert all(set(one) == {"utc", "local", "note"} for one in answer.data)


REFUSED = {"A38": 1, "A40": 1, "B55": 2}
"""Dialects that mean something in the collection and are refused here: W, and zones that are abbreviations."""


OUTDATED = {"B20"}
"""tzdata has changed since: Cuba stays on summer time in the winter of 2026."""


def test_every_case_of_the_collection(schedctl: Typist) -> None:
    path = Path(__file__).parent.parent / "cases" / "schedule.jsonl"
    tried = 0
    for line in path.read_text("utf-8").splitlines():
        case = json.loads(line)
        given, right = case["input"], case["right"]
        if not isinstance(given.get("expression"), str) or "next" not in right or case["id"] in OUTDATED:
            continue
        arguments = ["next", "--cron", given["expression"], "--timezone", given["zone"], "--from", given["start"]]
        answer = schedctl(*arguments, "-n", str(len(right["next"])), "-o", "json")
        if case["id"] in REFUSED:
            assert answer.code == REFUSED[case["id"]], case["id"]
            continue
        shown = [one["utc"].replace("Z", "+00:00") for one in answer.data]
        assert shown == [datetime.fromisoformat(one).astimezone(UTC).isoformat() for one in right["next"]], case["id"]
        tried += 1
    assert tried >= 65


def test_notes_tell_of_clock_changes_and_are_null_otherwise(schedctl: Typist) -> None:
    answer = schedctl(
        *("next", "--cron", "15 2 * * *", "--timezone", "America/New_York", "--from", "2026-03-07T12:00Z", "--json")
    )
    notes = [one["note"] for one in answer.data]
    assert notes[0] == "clocks go forward: 02:15 does not exist, runs right after the gap"
    assert notes[1:] == [None] * 9


def test_several_expressions_are_their_union(schedctl: Typist) -> None:
    answer = schedctl(
        *("next", "--cron", "0 8 * * *", "--cron", "0 20 * * *", "--cron", "0 8 * * *", "--tz", "UTC"),
        *("--from", "2026-03-02", "-n", "3", "-o", "name"),
    )
    assert answer.out.split() == ["2026-03-02T08:00:00Z", "2026-03-02T20:00:00Z", "2026-03-03T08:00:00Z"]


def test_h_hashes_the_name(schedctl: Typist) -> None:
    def minute(name: str) -> str:
        arguments = ("next", "--cron", "H 3 * * *", "--tz", "UTC", "--from", "2026-03-02", "-n", "1", "-o", "name")
        return str(schedctl(*arguments, "--name", name).out)

    assert minute("a") == minute("a")
    assert len({minute(name) for name in "abcdefgh"}) > 1


def test_day_match(schedctl: Typist) -> None:
    def days(how: str) -> list[str]:
        arguments = ("next", "--cron", "0 0 13 * 5", "--tz", "UTC", "--from", "2026-01-01", "-n", "2", "-o", "name")
        return [line[:10] for line in schedctl(*arguments, "--day-match", how).out.split()]

    assert days("cron") == days("or") == ["2026-01-02", "2026-01-09"]
    assert days("and") == ["2026-02-13", "2026-03-13"]


def test_the_calendar_ends(schedctl: Typist) -> None:
    answer = schedctl(
        "next", "--cron", "0 0 1 1 *", "--tz", "UTC", "--from", "9000-01-01T00:00Z", "-n", "5000", "--json"
    )
    assert answer.code == 0
    assert 900 < len(answer.data) < 1000
    assert "before the end of the calendar" in answer.err


def test_rare_times_are_found(schedctl: Typist) -> None:
    arguments = (
        "next",
        "--cron",
        "0 0 29 2 1",
        "--day-match",
        "and",
        "--tz",
        "UTC",
        "--from",
        "2026-01-01",
        "-n",
        "12",
    )
    years = [line[:4] for line in schedctl(*arguments, "-o", "name").out.split()]
    assert years[:2] == ["2044", "2072"]
    assert len(years) == 12


@pytest.mark.parametrize(
    "cron", ["", "x", "* * * *", "60 * * * *", "0 0 30 2 *", "@reboot", "0 0 W * *", "* * * * * * *", "０ 8 * * *"]
)
def test_a_bad_expression_is_exit_1_with_reason_and_hint(schedctl: Typist, cron: str) -> None:
    answer = schedctl("next", "--cron", cron, "--timezone", "UTC", "-o", "json")
    assert (answer.code, answer.out) == (1, "")
    reason, hint = answer.err.splitlines()
    assert reason.startswith("schedctl: ")
    assert hint.startswith("hint: ")


@pytest.mark.parametrize(
    "arguments",
    [
        ("--timezone", "CST"),
        ("--timezone", "Mars/Olympus"),
        ("--timezone", "+02:00"),
        ("--timezone", "\x00"),
        ("--from", "soon"),
        ("--from", "2026-02-30"),
        ("--from", ""),
        ("--from", "99999-01-01"),
        ("--count", "0"),
        ("--count", "-1"),
        ("--count", "x"),
        ("--count", "1.5"),
        ("--count", "1000000000"),
        ("--day-match", "both"),
        ("JOB",),
        ("--no-such-option",),
    ],
)
def test_bad_usage_is_exit_2(schedctl: Typist, arguments: tuple[str, ...]) -> None:
    answer = schedctl("next", "--cron", "* * * * *", *arguments)
    assert (answer.code, answer.out) == (2, "")
    assert "Error: " in answer.err


FIELD = st.text("0123456789*/,-LHW#?MONFRIjan ", max_size=6)


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    database=None,
)
@given(
    cron=st.lists(FIELD, min_size=4, max_size=7).map(" ".join) | st.text(max_size=30),
    start=st.datetimes(datetime(1901, 1, 1), datetime(8000, 1, 1)).map(lambda one: one.isoformat() + "Z"),
)
def test_never_a_traceback(schedctl: Typist, cron: str, start: str) -> None:
    # `--cron=`: a value that begins with a dash is still a value
    answer = schedctl("next", f"--cron={cron}", "--tz", "Europe/Berlin", "--from", start, "-n", "2", "-o", "json")
    assert answer.code in (0, 1)
    if answer.code == 0:
        assert all(one["utc"] > start[:19] for one in answer.data)
    else:
        assert answer.err.startswith("schedctl: ")


def test_the_table_names_zone_and_what_to_type_next(schedctl: Typist) -> None:
    answer = schedctl("next", "--cron", "15 2 * * *", "--tz", "America/New_York", "--from", "2026-03-08", "-n", "1")
    assert answer.out.splitlines() == [
        "TIME (America/New_York)  TIME (UTC)  LEFT      NOTE",
        "Sun 03:00                Sun 07:00   in 5d23h  clocks go forward: 02:15 does not exist, "
        "runs right after the gap",
    ]
    assert answer.err == "next: schedctl explain --timezone America/New_York '15 2 * * *'\n"


def test_utc_is_told_once(schedctl: Typist) -> None:
    answer = schedctl("next", "--cron", "15 2 * * *", "--tz", "UTC", "-n", "1")
    assert answer.out.splitlines() == ["TIME (UTC)  LEFT    NOTE", "Tue 02:15   in 18h"]


def test_what_is_to_type_next_means_the_same_schedule(schedctl: Typist) -> None:
    arguments = ("--cron", "H 3 * * *", "--cron", "0 0 13 * 5", "--tz", "UTC", "--day-match", "and", "--name", "a b")
    said = schedctl("next", *arguments).err.splitlines()[-1].removeprefix("next: ")
    assert said == "schedctl explain --timezone UTC --day-match and --name 'a b' 'H 3 * * *' '0 0 13 * 5'"
    explained = schedctl(*shlex.split(said)[1:])
    again = schedctl(*shlex.split(explained.err.splitlines()[-1])[2:], "-n", "3", "-o", "name").out
    assert again == schedctl("next", *arguments, "-n", "3", "-o", "name").out


@pytest.mark.parametrize("option", ["--day-match=and", "--name=a"])
def test_options_of_an_expression_are_refused_for_a_job(schedctl: Typist, option: str) -> None:
    answer = schedctl("next", "a", option)
    assert answer.code == 2
    assert f"{option.partition('=')[0]} belongs to --cron" in answer.err


@pytest.mark.parametrize("cron", ["H 3 * * *", "h(0-9) 3 * * *"])
def test_h_needs_a_name_and_says_how_to_give_it(schedctl: Typist, cron: str) -> None:
    for arguments in (("next", "--cron", cron), ("explain", cron)):
        answer = schedctl(*arguments, "--tz", "UTC")
        assert answer.code == 1
        assert answer.err.endswith("hint: say whose times are meant: --name JOB\n")
        assert schedctl(*arguments, "--tz", "UTC", "--name", "a").code == 0


def test_other_mistakes_keep_their_hints(schedctl: Typist) -> None:
    assert "--name" not in schedctl("next", "--cron", "H 99 * * *", "--name", "a").err
    assert "--name" not in schedctl("next", "--cron", "@hourly x").err


def test_the_zone_is_that_of_the_machine(schedctl: Typist, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    answer = schedctl("next", "--cron", "0 9 * * *", "--from", "2026-03-02T00:00:00Z", "-n", "1", "--json")
    assert answer.data[0]["utc"] == "2026-03-03T00:00:00Z"
    monkeypatch.setenv("TZ", "nonsense")
    answer = schedctl("next", "--cron", "0 9 * * *", "--from", "2026-03-02T00:00:00Z", "-n", "1", "--json")
    assert answer.data[0]["utc"] == "2026-03-02T09:00:00Z"
