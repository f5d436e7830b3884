"""The protocol of locks, beats, fences and trust holds in every state of its model, and a mutation of it is found."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from model.check import CHECKS, MODEL, Check, missing, run
from scheduler.engine import beats
from tests.docs.markdown import DOCS

absent = missing()
needs_spin = pytest.mark.skipif(
    bool(absent) and os.environ.get("TESTS_REQUIRE_SPIN") != "1",
    reason=f"THE MODEL IS NOT CHECKED: there is no {' and no '.join(absent)} (apt-get install spin gcc)",
)


@needs_spin
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_the_protocol_holds_and_its_mutations_do_not(check: Check, tmp_path: Path) -> None:
    assert run(check, tmp_path).violated == check.violates


def test_each_mutation_of_the_model_is_checked() -> None:
    tunable = set(re.findall(r"#ifndef (\w+)\n#define \1 ", MODEL.read_text()))
    written = set(re.findall(r"#if(?:n?def|.*defined\() *(\w+)|#elif defined\((\w+)\)", MODEL.read_text()))
    mutations = {name for pair in written for name in pair if name} - tunable
    assert mutations == {check.name for check in CHECKS if check.name.isupper()}


def test_the_page_names_each_check_and_the_code_has_the_order_of_the_model() -> None:
    page = (DOCS / "model.md").read_text("utf-8")
    for check in CHECKS:
        assert check.name in page
    assert beats.TERM_SHARE < beats.KILL_SHARE < 1
    values = dict(re.findall(r"#define (TERM_AT|KILL_AT|LEASE) (\d+)", MODEL.read_text()))
    assert int(values["TERM_AT"]) < int(values["KILL_AT"]) < int(values["LEASE"])
