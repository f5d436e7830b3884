"""`schedctl dead-letters`: looked at, tried again, let go."""

from __future__ import annotations

import pytest

from scheduler.core.model import FailReason
from scheduler.core.outcome import Failed
from tests.cli.screen import Screen


@pytest.fixture
def letters(screen: Screen) -> list[str]:
    """Ids of three runs with payloads that gave up, oldest first."""
    for number in range(3):
        screen("run-now", "ticket", "--payload", f'{{"order": {number}}}')
    for _ in range(3):
        screen.rig.tick(seconds=1)
        screen.rig.finish(Failed(FailReason.EXIT, "exit code 3", exit_code=3, retryable=False))
        screen.rig.tick(seconds=1)
    return [run.id for run in screen.rig.runs("ticket")]


def listed(screen: Screen) -> list[str]:
    return screen("dead-letters", "list", "-o", "name")


def test_they_are_listed_with_what_they_carry(screen: Screen, letters: list[str]) -> None:
    lines = screen("dead-letters")
    assert [line.split()[0] for line in lines] == ["RUN", *(one[-8:] for one in reversed(letters))]
    assert '{"order": 2}' in lines[1]
    assert "exit 3" in lines[1]
    assert screen.next == f"schedctl dead-letters retry {letters[2][-8:]}"
    assert screen("dead-letters", "--job", "report") == []
    assert "no dead letters of report" in screen.err
    assert len(screen.json("dead-letters")) == 3
    assert len(screen("dead-letters", "-n", "1")) == 2
    assert "there are more; -n 5 shows them" in screen.err


def test_status_says_where_they_are(screen: Screen, letters: list[str]) -> None:
    screen.rig.tick(minutes=1)
    assert "3 dead letters" in "\n".join(screen("status"))
    socket = str(screen.served.socket)
    look = f"schedctl --socket {socket} dead-letters list --job ticket"
    assert look in "\n".join(screen("status", "--socket", socket))


def test_a_discarded_one_is_no_dead_letter_any_more(screen: Screen, letters: list[str]) -> None:
    assert "is a dead letter until" in "\n".join(screen("runs", letters[1]))
    assert screen("dead-letters", "discard", letters[1][-8:]) == [letters[1]]
    assert "1 dead letter discarded" in screen.err
    text = "\n".join(screen("runs", letters[1]))
    assert "is a dead letter" not in text
    assert "as a dead letter it was discarded" in text
    assert "Discarded" in text
    assert listed(screen) == [letters[2], letters[0]]
    assert screen("dead-letters", "discard", letters[1]) == []
    assert screen.code == 5
    assert "is no dead letter: it was discarded" in screen.err
    assert sorted(screen("dead-letters", "discard", "--job", "ticket")) == sorted([letters[0], letters[2]])
    assert listed(screen) == []


def test_a_retried_one_runs_again_with_its_payload(screen: Screen, letters: list[str]) -> None:
    (again,) = screen("dead-letters", "retry", letters[0][-8:], "--reason", "API is back")
    assert screen.rig.run(again).retry_of == letters[0]
    assert screen.rig.run(again).note == "API is back"
    assert screen("dead-letters", "retry", letters[0]) == []
    assert (screen.code, f"it was retried by {again[-8:]}" in screen.err) == (5, True)
    assert len(screen("dead-letters", "retry", "--job", "ticket")) == 2
    assert "2 dead letters retried" in screen.err
    assert listed(screen) == []


def test_what_cannot_be_retried_is_told_and_is_bad(screen: Screen, letters: list[str]) -> None:
    screen.rig.reload("version: 1\ndefaults: {timezone: UTC}\njobs:\n  other: {command: [x]}\n")
    screen("list")  # What the reload logged is not the answer.
    assert screen("dead-letters", "retry", "--job", "ticket") == []
    assert screen.code == 1
    assert f"{letters[0][-8:]}: no job 'ticket'" in screen.err
    assert len(screen("dead-letters", "discard", "--job", "ticket")) == 3


@pytest.mark.parametrize("verb", ["retry", "discard"])
def test_only_dead_letters_are_meant(screen: Screen, letters: list[str], verb: str) -> None:
    screen("run-now", "report")
    (run,) = screen.rig.runs("report")
    for arguments, code in (
        ([], 2),
        ([letters[0], "--job", "ticket"], 2),
        (["deadbeef"], 4),
        (["ticket"], 4),
        ([run.id], 5),
        ([letters[0], run.id], 5),
    ):
        assert screen("dead-letters", verb, *arguments) == []
        assert screen.code == code, arguments
    screen("dead-letters", verb, "ticket")
    assert f"hint: for all of a job: schedctl dead-letters {verb} --job ticket\n" in screen.err
    assert len(listed(screen)) == 3


def test_a_word_that_is_no_command_is_not_taken_for_one(screen: Screen, letters: list[str]) -> None:
    screen("dead-letters", "discrad", letters[0])
    assert screen.code == 2
    assert len(listed(screen)) == 3
