from __future__ import annotations

import pytest

from scheduler.core.trace import given, parent_of, span_of, trace_of, traceparent

RUN = "01a229c8-56d0-7001-864b-ac23c5563e5d"
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
HEADER = f"00-{TRACE}-{PARENT}-01"


def test_a_run_that_nobody_traces_begins_a_trace() -> None:
    assert traceparent(RUN, 1) == f"00-{RUN.replace('-', '')}-{span_of(RUN, 1)}-01"
    assert given(traceparent(RUN, 1)) == traceparent(RUN, 1)
    assert parent_of(None) is None


def test_a_run_goes_on_the_trace_of_its_request_with_spans_of_its_own() -> None:
    kept = given(HEADER)
    assert (trace_of(RUN, kept), parent_of(kept)) == (TRACE, PARENT)
    spans = {traceparent(RUN, attempt, kept)[36:52] for attempt in (1, 2, 3)}
    assert len(spans | {PARENT}) == 4
    assert {traceparent(RUN, attempt, kept)[:36] for attempt in (1, 2)} == {f"00-{TRACE}-"}


def test_who_does_not_sample_is_followed() -> None:
    assert traceparent(RUN, 1, given(HEADER[:-2] + "00")).endswith("-00")


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "nonsense",
        HEADER.upper(),
        HEADER + "-more",
        f"ff-{TRACE}-{PARENT}-01",
        f"00-{'0' * 32}-{PARENT}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-{PARENT}",
        HEADER.replace("4", "é"),
        HEADER + "\n" + HEADER,
    ],
)
def test_what_is_malformed_is_as_if_it_were_not_there(header: str | None) -> None:
    assert given(header) is None


def test_a_later_version_is_read_as_far_as_it_is_known() -> None:
    assert given(f"01-{TRACE}-{PARENT}-01-what-comes-then") == HEADER
