"""Which types a glob means."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.core.type_globs import type_matches


@pytest.mark.parametrize(
    ("globs", "name", "right"),
    [
        ([], "anything", True),
        ([], "", True),
        (["*"], "", True),
        (["payment.*"], "payment.failed", True),
        (["payment.*"], "payment.intent.failed", True),
        (["payment.*"], "payment.", True),
        (["payment.*"], "payment", False),
        (["payment.*"], "refund.payment.failed", False),
        (["payment.*"], "Payment.failed", False),
        (["payment.failed"], "payment.failed", True),
        (["payment.failed"], "payment_failed", False),
        (["*.failed"], "payment.failed", True),
        (["a*a"], "a", False),
        (["a*b*c"], "abxbc", True),
        (["a*bc*c"], "abc", False),
        (["[ab]"], "a", False),
        (["a?"], "ab", False),
        (["x", "orders/*"], "orders/create", True),
    ],
)
def test_type(globs: list[str], name: str, right: bool) -> None:
    assert type_matches(globs, name) is right


@given(st.text("ab*", max_size=12), st.text("ab", max_size=12))
def test_as_a_regular_expression_would(glob: str, name: str) -> None:
    pattern = ".*".join(re.escape(one) for one in glob.split("*"))
    assert type_matches([glob], name) is (re.fullmatch(pattern, name) is not None)
