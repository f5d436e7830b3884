"""docs/external-jobs.md says what is so."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from scheduler.config.load import load_texts
from scheduler.core.sign import LONGEST_TEXT, Word
from scheduler.web.ping_words import said
from scheduler.web.pings import BURST
from tests.docs.markdown import blocks

TEXT = (Path(__file__).parents[2] / "docs" / "external-jobs.md").read_text()


@pytest.mark.parametrize("example", blocks(TEXT, "yaml"))
def test_an_example_is_good(example: str) -> None:
    jobs = load_texts({"jobs.yaml": example}, "jobs.yaml").jobs
    assert all(job.external for job in jobs.values())


def test_the_table_of_paths_is_what_is_understood() -> None:
    paths = re.findall(r"^\| `(?:/ping/KEY/JOB|…/([\w]+))`", TEXT, re.MULTILINE)
    assert [said(path, b"").word for path in paths] == [
        Word.SUCCESS,
        Word.START,
        Word.FAIL,
        Word.SUCCESS,
        Word.LOG,
    ]
    assert said("255", b"").exit_code == 255
    for name in re.findall(r"^\| `(\w+)=SECONDS` \|", TEXT, re.MULTILINE):
        assert said("0", f"{name}=1.5".encode())
    assert f"Ping-Body-Limit: {LONGEST_TEXT}" in TEXT
    assert f"more than {BURST} pings" in TEXT


def test_the_lines_for_crontabs_name_the_same_job() -> None:
    lines = [line.split("*  ", 1)[1] for line in TEXT.splitlines() if line.strip().startswith("0 2 * * *  ")]
    assert len(lines) == 2
    wrapped, plain = (shlex.split(line) for line in lines)
    assert wrapped[:4] == ["schedctl", "exec", "backup-db7", "--"]
    assert wrapped[4:] == ["/usr/local/bin/backup", "--all"]
    assert [word for word in plain if word.startswith("$PING")] == ["$PING/backup-db7/start;", "$PING/backup-db7/$?"]
