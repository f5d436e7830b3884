"""What a ping says: its address, what is told of which end of a run, and its body."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from scheduler.core.model import Attempt, Cause, Output, Run, Status
from scheduler.core.ping import CANCELED, FAIL, RETRY, START, SUCCESS, Ping, address, body_of, signal_of
from scheduler.core.queries import RunDetail

NOW = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
ID = "0198c2a0-0000-7000-8000-0000abcd1234"
RUN = Run(1, ID, "report", "k", Cause.SCHEDULE, Status.COMPLETED, NOW, "default", 0, attempt=1)
PING = Ping(1, "report", ID, 1, SUCCESS, NOW, NOW)


@pytest.mark.parametrize(
    ("url", "signal", "run", "whole"),
    [
        ("https://hc.example/abc", SUCCESS, ID, f"https://hc.example/abc?rid={ID}"),
        ("https://hc.example/abc/", SUCCESS, None, "https://hc.example/abc"),
        ("https://hc.example/abc", START, ID, f"https://hc.example/abc/start?rid={ID}"),
        ("https://hc.example/key/slug?create=1", FAIL, ID, f"https://hc.example/key/slug/fail?create=1&rid={ID}"),
        ("https://hc.example/abc", "3", ID, f"https://hc.example/abc/3?rid={ID}"),
        ("https://hc.example/abc", RETRY, ID, f"https://hc.example/abc/log?rid={ID}"),
        ("https://hc.example/abc", CANCELED, ID, f"https://hc.example/abc/log?rid={ID}"),
        ("http://u:p@[::1]:8000/a#part", START, None, "http://u:p@[::1]:8000/a/start"),
    ],
)
def test_the_word_stands_behind_the_path(url: str, signal: str, run: str | None, whole: str) -> None:
    assert address(url, signal, run) == whole


@pytest.mark.parametrize(
    ("status", "exit_code", "outcome", "signal"),
    [
        (Status.COMPLETED, 0, "completed", SUCCESS),
        (Status.COMPLETED, 7, "completed", SUCCESS),
        (Status.FAILED, 3, "exit", "3"),
        (Status.FAILED, None, "timeout", FAIL),
        (Status.FAILED, 0, "error", FAIL),
        (Status.FAILED, 256, "exit", FAIL),
        (Status.CANCELED, 143, "canceled", CANCELED),
        (Status.PENDING, 1, "exit", RETRY),
        (Status.PENDING, None, "snoozed", None),
        (Status.PENDING, None, None, None),
        (Status.RUNNING, None, None, None),
    ],
)
def test_what_is_told_of_an_end(status: Status, exit_code: int | None, outcome: str | None, signal: str | None) -> None:
    assert signal_of(replace(RUN, status=status, exit_code=exit_code), outcome) == signal


def detail(**attempt: object) -> RunDetail:
    made = Attempt(ID, 1, "n", 1, NOW, finished_at=NOW + timedelta(seconds=90), took=90.0, **attempt)  # type: ignore[arg-type]
    return RunDetail(RUN, (made,))


def output(text: str, omitted: int = 0, head: str = "") -> Output:
    return Output(ID, 1, head.encode(), text.encode(), omitted, True)


def test_the_body_is_what_it_printed_last_and_what_became_of_it() -> None:
    body = body_of(PING, detail(), output("two\nthree", head="one\n"))
    assert body.decode() == (
        "one\ntwo\nthree\n[schedulerd] report (abcd1234) completed after 1m30s at 2026-03-02 08:01:30 UTC\n"
    )


def test_a_failure_says_why() -> None:
    body = body_of(replace(PING, signal="3"), detail(error="exit code 3"), None)
    assert (
        body.decode() == "[schedulerd] report (abcd1234) failed after 1m30s at 2026-03-02 08:01:30 UTC: exit code 3\n"
    )


def test_a_retry_is_told_as_what_it_is_whatever_the_run_came_to_since() -> None:
    body = body_of(replace(PING, signal=RETRY), detail(error="exit code 1"), None)
    assert body.decode() == (
        "[schedulerd] report (abcd1234) failed at attempt 1 after 1m30s at 2026-03-02 08:01:30 UTC: exit code 1; "
        "a further one follows\n"
    )


def test_a_run_that_is_forgotten_is_still_told() -> None:
    assert body_of(PING, None, None) == b"[schedulerd] report (abcd1234) completed\n"


@pytest.mark.parametrize("limit", [10_000, 700, 80, 20])
def test_a_body_keeps_to_the_limit_with_whole_last_lines(limit: int) -> None:
    lines = [f"line {number} ünïcode" for number in range(3_000)]
    body = body_of(PING, detail(), output("\n".join(lines) + "\n"), limit)
    assert len(body) <= limit
    *kept, ours = body.decode().splitlines()
    assert ours.startswith("[schedulerd] report"[:limit])
    assert kept == lines[len(lines) - len(kept) :]
    assert bool(kept) == (limit > 80)


def test_of_output_with_a_gap_the_end_is_taken() -> None:
    body = body_of(PING, detail(), output("end\n", omitted=5_000, head="begin\n"))
    assert body.startswith(b"end\n[schedulerd]")


def test_one_line_longer_than_the_limit_is_cut_between_letters() -> None:
    body = body_of(PING, detail(), output("ü" * 20_000), 501)
    text = body.decode()
    assert len(body) <= 501
    assert text.startswith("üüü")
    assert "[schedulerd]" in text


def test_bytes_that_are_no_text_do_no_harm() -> None:
    raw = Output(ID, 1, b"", b"\xff\x00ok\n", 0, True)
    assert body_of(PING, detail(), raw).decode().startswith("\ufffdok\n[schedulerd]")
